package credentials

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"slices"
	"strings"
	"time"
)

// Token is a named token, without its secret.
type Token struct {
	ID      string    `json:"id" doc:"Identifier, for revoking it" example:"k3v7m2qx"`
	Name    string    `json:"name" doc:"What you call it" example:"nightly"`
	Scope   Scope     `json:"scope" enum:"read,run,admin" doc:"What it may do"`
	Created time.Time `json:"created" doc:"When it was made"`
	// Used and From are those of the last use; Used is nil before the first.
	Used *time.Time `json:"used,omitempty" doc:"When it was last used; absent if never"`
	From string     `json:"from,omitempty" doc:"Address of the last use" example:"192.0.2.7"`
}

// Create makes a token and returns its secret, which is shown once and not kept.
func (s *Store) Create(name string, scope Scope) (made Token, secret string, err error) {
	name, err = checkName(name)
	if err != nil {
		return Token{}, "", err
	}
	if scope.rank() == 0 {
		return Token{}, "", ErrScope
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.tokens, func(t *token) bool { return strings.EqualFold(t.Name, name) }) {
		return Token{}, "", ErrTaken
	}
	if len(s.tokens) >= MaxTokens {
		return Token{}, "", ErrMany
	}
	secret = prefix + strings.ToLower(rand.Text())
	t := &token{Token{ID: s.freeID(), Name: name, Scope: scope, Created: s.Now().UTC()}, digest(secret)}
	s.tokens = append(s.tokens, t)
	if err := s.save(); err != nil { // a token that the next start forgets is not made
		s.tokens = s.tokens[:len(s.tokens)-1]
		return Token{}, "", err
	}
	return t.Token, secret, nil
}

// freeID returns an identifier that no token has; s.mu is held.
func (s *Store) freeID() string {
	for {
		id := strings.ToLower(rand.Text()[:8])
		if s.byID(id) == nil {
			return id
		}
	}
}

// byID returns nil if there is no such token; s.mu is held.
func (s *Store) byID(id string) *token {
	i := slices.IndexFunc(s.tokens, func(t *token) bool { return t.ID == id })
	if i < 0 {
		return nil
	}
	return s.tokens[i]
}

// List returns the named tokens, oldest first.
func (s *Store) List() []Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Token, 0, len(s.tokens))
	for _, t := range s.tokens {
		all = append(all, t.Token)
	}
	slices.SortFunc(all, func(a, b Token) int { return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID)) })
	return all
}

// Revoke ends a token and its sessions at once. It returns the token that was revoked, or
// ErrNoToken. With any other error the token is ended, too, but not on the disk: the next
// start would know it again.
func (s *Store) Revoke(id string) (Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byID(id)
	if t == nil {
		return Token{}, ErrNoToken
	}
	s.tokens = slices.DeleteFunc(s.tokens, func(t *token) bool { return t.ID == id })
	for key, one := range s.sessions {
		if one.Token == id {
			delete(s.sessions, key)
		}
	}
	return t.Token, s.save()
}

// identify returns who a token belongs to. The caller counts.
func (s *Store) identify(secret, from string) (who Identity, ok bool) {
	d := digest(secret)
	if s.isOwn(d) {
		return s.own(), true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Digests are compared, so the time tells nothing about a secret.
	i := slices.IndexFunc(s.tokens, func(t *token) bool { return t.Digest == d })
	if i < 0 {
		return Identity{}, false
	}
	t, now := s.tokens[i], s.Now().UTC()
	t.Used, t.From = &now, from
	s.saveLater()
	return t.identity(), true
}

// own is whoever has the box's own token.
func (s *Store) own() Identity { return Identity{Name: OwnToken, Scope: Admin, token: s.ownID()} }

// identity is whoever has the token.
func (t *token) identity() Identity { return Identity{Name: t.Name, Scope: t.Scope, token: t.ID} }

func (s *Store) isOwn(d string) bool {
	return !s.Own.IsZero() && subtle.ConstantTimeCompare([]byte(d), []byte(digest(s.Own.Reveal()))) == 1
}

// ownID stands for the box's own token in sessions. It changes with the token, so that a
// new token ends the sessions of the old one.
func (s *Store) ownID() string { return "own-" + digest("session of " + s.Own.Reveal())[:16] }
