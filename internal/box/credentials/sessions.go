package credentials

import (
	"crypto/rand"
	"time"
)

const (
	// SessionAge is how long a session lasts at most, and SessionIdle how long it lasts
	// without a request.
	SessionAge  = 30 * 24 * time.Hour
	SessionIdle = 7 * 24 * time.Hour
	// maxSessions bounds the sessions; a new one ends one of the token that has most: that which was unused for longest.
	maxSessions = 200
)

// OpenSession opens a session for whoever holds this token and returns the secret for the
// cookie. ok is false for a wrong token. A session that cannot be written lasts until the
// next start.
func (s *Store) OpenSession(token, from string) (secret string, who Identity, ok bool) {
	who, ok = s.identify(token, from)
	s.count(from, ok)
	if !ok {
		return "", Identity{}, false
	}
	secret = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endOld()
	now := s.Now().UTC()
	one := &session{Digest: digest(secret), Token: who.token, Opened: now, Used: now, Address: from}
	s.sessions[one.Digest] = one
	if err := s.save(); err != nil {
		s.Log.Warn("a session lasts until the next start only", "error", err)
	}
	who.Expires, who.session = one.expires(), one.Digest
	return secret, who, true
}

// Session returns who a session's secret belongs to.
func (s *Store) Session(secret string) (who Identity, ok bool) {
	if secret == "" {
		return Identity{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[digest(secret)]
	if one == nil {
		return Identity{}, false
	}
	now := s.Now().UTC()
	who, ok = s.holder(one.Token)
	if !ok || !now.Before(one.expires()) {
		delete(s.sessions, one.Digest)
		s.saveLater()
		return Identity{}, false
	}
	one.Used = now
	s.saveLater()
	who.Expires, who.session = one.expires(), one.Digest
	return who, true
}

// Valid says whether somebody who was identified earlier would be now: whether the token was
// not revoked, and the session has not ended.
func (s *Store) Valid(who Identity) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.holder(who.token)
	if who.session == "" {
		return ok
	}
	one := s.sessions[who.session]
	return ok && one != nil && s.Now().Before(one.expires())
}

// holder is whoever opened a session with the token of this ID; s.mu is held.
func (s *Store) holder(id string) (Identity, bool) {
	if id == s.ownID() {
		return s.own(), !s.Own.IsZero()
	}
	t := s.byID(id)
	if t == nil {
		return Identity{}, false
	}
	return t.identity(), true
}

// CloseSession ends a session; one that does not exist is no error. With an error the
// session is ended here, but the next start would know it again.
func (s *Store) CloseSession(secret string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := digest(secret)
	if s.sessions[key] == nil {
		return nil
	}
	delete(s.sessions, key)
	return s.save()
}

// expires is the end of the session if it is not used again.
func (s *session) expires() time.Time {
	age, idle := s.Opened.Add(SessionAge), s.Used.Add(SessionIdle)
	if idle.Before(age) {
		return idle
	}
	return age
}

// endOld makes room for one session; s.mu is held.
func (s *Store) endOld() {
	now := s.Now()
	of := map[string]int{} // by token
	for key, one := range s.sessions {
		if _, ok := s.holder(one.Token); !ok || !now.Before(one.expires()) {
			delete(s.sessions, key)
			continue
		}
		of[one.Token]++
	}
	if len(s.sessions) < maxSessions {
		return
	}
	var victim *session
	for _, one := range s.sessions {
		if more := victim == nil || of[one.Token] > of[victim.Token]; more || of[one.Token] == of[victim.Token] && one.Used.Before(victim.Used) {
			victim = one
		}
	}
	delete(s.sessions, victim.Digest)
}
