package credentials

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/lab"
)

const (
	// keptFile holds tokens and sessions, auditFile the log, in the store's folder.
	keptFile  = "credentials.json"
	auditFile = "audit.jsonl"
	// maxKept bounds the file of tokens and sessions; a full store has a tenth of it.
	maxKept = 1 << 20
	// savePeriod is how often the time of the last use is written. A token that a script
	// uses every second must not write the disk every second.
	savePeriod = time.Minute
)

// Options are what a store is made of.
type Options struct {
	// Own is the box's own token, which has the scope admin; empty if there is none.
	Own lab.Secret
	// Dir is the folder to keep everything in; empty keeps it in memory.
	Dir string
	Now func() time.Time // the wall clock; nil is time.Now
	Log *slog.Logger     // nil discards
}

// Store holds the tokens, the sessions and the log. Its methods may be called from any
// goroutine.
type Store struct {
	Options
	mu       sync.Mutex
	tokens   []*token
	sessions map[string]*session // by digest
	saved    time.Time
	dirty    bool
	delays   *delays
	audit    *audit
}

// token is a named token as it is kept.
type token struct {
	Token
	Digest string `json:"sha256"`
}

// session is a browser's session as it is kept.
type session struct {
	Digest string `json:"sha256"`
	// Token is the ID of the token that opened it; for the box's own token, ownID.
	Token   string    `json:"token"`
	Opened  time.Time `json:"opened"`
	Used    time.Time `json:"used"`
	Address string    `json:"from"`
}

// kept is the content of the file.
type kept struct {
	Tokens   []*token   `json:"tokens"`
	Sessions []*session `json:"sessions"`
}

// Open reads what an earlier process kept. A damaged file is put aside: the box's own token
// still works, and all others are gone. A folder that cannot be used is logged, and the
// store then lives in memory: a box with a broken disk still measures.
func Open(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{Options: o, sessions: map[string]*session{}, delays: newDelays(o.Now), saved: o.Now()}
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			o.Log.Error("tokens, sessions and the audit log live in memory", "error", err)
			s.Dir = ""
		}
	}
	s.audit = openAudit(s.Dir, o.Log)
	if s.Dir != "" {
		s.load()
	}
	return s
}

// Close writes what was not written yet.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.dirty {
		err = s.save()
	}
	return errors.Join(err, s.audit.close())
}

// load reads the file, and puts a damaged one aside.
func (s *Store) load() {
	path := filepath.Join(s.Dir, keptFile)
	all, err := readKept(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		aside := path + ".damaged"
		s.Log.Error("the tokens cannot be read; the file is put aside, and only the box's own token works", "aside", aside, "error", err)
		if err := os.Rename(path, aside); err != nil {
			s.Log.Error("the damaged file of tokens stays", "error", err)
		}
		return
	}
	s.tokens = all.Tokens
	for _, one := range all.Sessions {
		one.notLater(s.Now().UTC())
		s.sessions[one.Digest] = one
	}
}

// notLater moves the times of a session that are in the future to now: the clock was wrong when the
// session was used, or is wrong now, and in either case it must not last for years.
func (s *session) notLater(now time.Time) {
	for _, at := range []*time.Time{&s.Opened, &s.Used} {
		if at.After(now) {
			*at = now
		}
	}
}

// readKept decodes the file and checks it: nothing in it may have a scope or a digest that
// this package did not write.
func readKept(path string) (all kept, err error) {
	f, err := os.Open(path)
	if err != nil {
		return all, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKept+1))
	if err != nil {
		return all, err
	}
	return decodeKept(text)
}

func decodeKept(text []byte) (all kept, err error) {
	if len(text) > maxKept {
		return kept{}, fmt.Errorf("more than %d bytes", maxKept)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return kept{}, err
	}
	if len(all.Tokens) > MaxTokens || len(all.Sessions) > maxSessions {
		return kept{}, fmt.Errorf("%d tokens and %d sessions: too many", len(all.Tokens), len(all.Sessions))
	}
	for i, t := range all.Tokens {
		if t == nil || t.Scope.rank() == 0 || len(t.Digest) != len(digest("")) || t.ID == "" {
			return kept{}, fmt.Errorf("tokens[%d] is not a token", i)
		}
	}
	for i, one := range all.Sessions {
		if one == nil || len(one.Digest) != len(digest("")) {
			return kept{}, fmt.Errorf("sessions[%d] is not a session", i)
		}
	}
	return all, nil
}

// save writes the file; s.mu is held.
func (s *Store) save() error {
	s.saved = s.Now()
	if s.Dir == "" {
		s.dirty = false
		return nil
	}
	all := kept{Tokens: s.tokens}
	for _, one := range s.sessions {
		all.Sessions = append(all.Sessions, one)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(s.Dir, keptFile), append(text, '\n'), 0o600); err != nil {
		s.dirty = true
		return fmt.Errorf("keep the tokens: %w", err)
	}
	s.dirty = false
	return nil
}

// saveLater notes that something small changed, and writes it if the last write is long
// enough ago; s.mu is held.
func (s *Store) saveLater() {
	s.dirty = true
	if s.Now().Sub(s.saved) < savePeriod {
		return
	}
	if err := s.save(); err != nil {
		s.Log.Warn("the last use of a token was not written", "error", err)
	}
}

// WithoutSessions returns the file of tokens and sessions without the sessions. It returns an
// error for a file that this package did not write. Only digests of tokens are in it.
func WithoutSessions(text []byte) ([]byte, error) {
	all, err := decodeKept(text)
	if err != nil {
		return nil, fmt.Errorf("the file of tokens: %w", err)
	}
	all.Sessions = nil
	return json.Marshal(all)
}
