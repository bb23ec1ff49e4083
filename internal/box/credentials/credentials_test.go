package credentials

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

const own = "correct-horse-battery"

// clock is a wall clock that a test moves.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.at }

func (c *clock) open(t *testing.T, dir string) *Store {
	t.Helper()
	s := Open(Options{Own: lab.NewSecret(own), Dir: dir, Now: c.now})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestScopes(t *testing.T) {
	for _, c := range []struct {
		has, needs Scope
		want       bool
	}{
		{Read, Read, true}, {Read, Run, false}, {Read, Admin, false}, {Run, Read, true}, {Run, Run, true}, {Run, Admin, false},
		{Admin, Admin, true}, {"", Read, false}, {"root", Read, false}, {Admin, "", false},
	} {
		if got := c.has.Allows(c.needs); got != c.want {
			t.Errorf("%q.Allows(%q) = %v, want %v", c.has, c.needs, got, c.want)
		}
	}
}

func TestTokensSurviveARestart(t *testing.T) {
	c, dir := newClock(), filepath.Join(t.TempDir(), "credentials")
	s := c.open(t, dir)
	made, secret, err := s.Create(" nightly ", Run)
	if err != nil || made.Name != "nightly" || made.Scope != Run || made.Used != nil {
		t.Fatalf("Create() = %+v, %v", made, err)
	}
	if _, ok := s.Token(secret, "192.0.2.7"); !ok {
		t.Error("the new token is not known")
	}
	text, err := os.ReadFile(filepath.Join(dir, keptFile))
	if err != nil || strings.Contains(string(text), secret) || strings.Contains(string(text), own) {
		t.Errorf("the file holds a secret, or cannot be read (%v): %s", err, text)
	}
	if info, err := os.Stat(filepath.Join(dir, keptFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the file = %v, %v; want 0600", info.Mode(), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = c.open(t, dir)
	if who, ok := s.Token(secret, "192.0.2.8"); !ok || who.Name != "nightly" || who.Scope != Run {
		t.Errorf("Token() after a restart = %+v, %v", who, ok)
	}
	if all := s.List(); len(all) != 1 || all[0].Used == nil || all[0].From != "192.0.2.8" {
		t.Errorf("List() = %+v; want one token with its last use", all)
	}
	if _, err := s.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Token(secret, ""); ok {
		t.Error("a revoked token works")
	}
	if _, ok := c.open(t, dir).Token(secret, ""); ok {
		t.Error("a revoked token works after a restart")
	}
	if _, err := s.Revoke(made.ID); !errors.Is(err, ErrNoToken) {
		t.Errorf("Revoke() of a revoked token = %v, want ErrNoToken", err)
	}
}

func TestOwnTokenIsAdmin(t *testing.T) {
	s := newClock().open(t, "")
	if who, ok := s.Token(own, ""); !ok || who.Name != OwnToken || who.Scope != Admin {
		t.Errorf("Token(own) = %+v, %v; want the admin %q", who, ok, OwnToken)
	}
	none := Open(Options{})
	for _, secret := range []string{"", own} {
		if _, ok := none.Token(secret, ""); ok {
			t.Errorf("a store without tokens accepts %q", secret)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	s := newClock().open(t, "")
	for i := range MaxTokens {
		if _, _, err := s.Create(fmt.Sprintf("token %d", i), Read); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		scope Scope
		want  error
	}{
		{"", Read, ErrName}, {" \t", Read, ErrName}, {"Box", Read, ErrName}, {"a\nb", Read, ErrName}, {"a\x1b[2J", Read, ErrName},
		{strings.Repeat("n", MaxName+1), Read, ErrName}, {"x", "root", ErrScope}, {"x", "", ErrScope}, {"TOKEN 1", Run, ErrTaken},
		{"one more", Run, ErrMany},
	} {
		if _, _, err := s.Create(c.name, c.scope); !errors.Is(err, c.want) {
			t.Errorf("Create(%q, %q) = %v, want %v", c.name, c.scope, err, c.want)
		}
	}
}

func TestSessions(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	s := c.open(t, dir)
	made, token, err := s.Create("page", Read)
	if err != nil {
		t.Fatal(err)
	}
	ofToken, who, ok := s.OpenSession(token, "192.0.2.7")
	if !ok || who.Name != "page" || !who.Expires.Equal(c.at.Add(SessionIdle)) {
		t.Fatalf("OpenSession() = %+v, %v", who, ok)
	}
	ofBox, _, _ := s.OpenSession(own, "192.0.2.7")
	other, _, _ := s.OpenSession(own, "192.0.2.7")
	if _, _, ok := s.OpenSession("nope", ""); ok {
		t.Error("a wrong token opens a session")
	}
	text, err := os.ReadFile(filepath.Join(dir, keptFile))
	if err != nil || strings.Contains(string(text), ofBox) {
		t.Errorf("the file holds a session's secret, or cannot be read (%v)", err)
	}
	s = c.open(t, dir)
	for _, secret := range []string{ofToken, ofBox, other} {
		if _, ok := s.Session(secret); !ok {
			t.Error("a session ended with the process")
		}
	}
	whoOther, _ := s.Session(other)
	if !s.Valid(whoOther) || !s.Valid(who) {
		t.Error("Valid() = false for an open session")
	}
	if err := s.CloseSession(other); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Session(other); ok || s.Valid(whoOther) {
		t.Error("a session that was closed works")
	}
	if _, ok := s.Session(ofBox); !ok {
		t.Error("a log-out ended another session")
	}
	if _, err := s.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Session(ofToken); ok || s.Valid(who) {
		t.Error("the session of a revoked token works")
	}
	for _, secret := range []string{"", "nope", own, token} {
		if _, ok := s.Session(secret); ok {
			t.Errorf("%q is a session", secret)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := Open(Options{Own: lab.NewSecret("another-own-token"), Dir: dir, Now: c.now}).Session(ofBox); ok {
		t.Error("a session outlives the box's token that opened it")
	}
}

func TestSessionsExpire(t *testing.T) {
	c := newClock()
	s := c.open(t, "")
	idle, _, _ := s.OpenSession(own, "")
	used, _, _ := s.OpenSession(own, "")
	for range 4 {
		c.at = c.at.Add(SessionIdle - time.Hour)
		if _, ok := s.Session(used); !ok {
			t.Fatalf("a session in use ended after %v", c.at.Sub(newClock().at))
		}
	}
	if _, ok := s.Session(idle); ok {
		t.Error("a session that nobody used has not ended")
	}
	c.at = newClock().at.Add(SessionAge)
	if _, ok := s.Session(used); ok {
		t.Errorf("a session lasts longer than %v", SessionAge)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	c := newClock()
	s := c.open(t, "")
	first, _, _ := s.OpenSession(own, "")
	for range maxSessions {
		c.at = c.at.Add(time.Second)
		if _, _, ok := s.OpenSession(own, ""); !ok {
			t.Fatal("a right token opens no session")
		}
	}
	if _, ok := s.Session(first); ok || len(s.sessions) != maxSessions {
		t.Errorf("%d sessions (the oldest is there: %v), want %d without it", len(s.sessions), ok, maxSessions)
	}
}

// Whoever logs in again and again ends the own sessions, and nobody else's.
func TestSessionsOfOthersStay(t *testing.T) {
	c := newClock()
	s := c.open(t, "")
	boss, _, _ := s.OpenSession(own, "")
	made, secret, err := s.Create("guest", Read)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * maxSessions {
		c.at = c.at.Add(time.Second)
		if _, _, ok := s.OpenSession(secret, ""); !ok {
			t.Fatalf("the token %s opens no session", made.Name)
		}
	}
	if _, ok := s.Session(boss); !ok || len(s.sessions) != maxSessions {
		t.Errorf("%d sessions (the other token's is there: %v), want %d with it", len(s.sessions), ok, maxSessions)
	}
}

func TestDelayGrows(t *testing.T) {
	c := newClock()
	s := c.open(t, "")
	for range freeTries {
		if got := s.Wait("192.0.2.7"); got != 0 {
			t.Fatalf("Wait() = %v before %d wrong tokens, want 0", got, freeTries)
		}
		s.Token("nope", "192.0.2.7")
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if got := s.Wait("192.0.2.7"); got != want*time.Second {
			t.Errorf("Wait() = %v, want %v s", got, int(want))
		}
		c.at = c.at.Add(want * time.Second)
		if got := s.Wait("192.0.2.7"); got != 0 {
			t.Errorf("Wait() = %v after the delay, want 0", got)
		}
		s.OpenSession("nope", "192.0.2.7")
	}
	if got := s.Wait("192.0.2.8"); got != 0 {
		t.Errorf("Wait() of another address = %v, want 0", got)
	}
	s.Token(own, "192.0.2.7")
	if got := s.Wait("192.0.2.7"); got != 0 {
		t.Errorf("Wait() after the right token = %v, want 0", got)
	}
	for range freeTries {
		s.Token("nope", "2001:db8::1")
	}
	if s.Wait("2001:db8::2") == 0 || s.Wait("2001:db8:0:1::1") != 0 {
		t.Error("a /64 of IPv6 does not count as one source, or two of them do")
	}
	for i := range maxDelayed + 10 {
		s.Token("nope", fmt.Sprintf("10.0.%d.%d", i/256, i%256))
	}
	if got := len(s.delays.byAddr); got > maxDelayed {
		t.Errorf("%d addresses are remembered, want at most %d", got, maxDelayed)
	}
}

func TestDamagedFileIsPutAside(t *testing.T) {
	for _, text := range []string{"nonsense", `{"tokens":[null]}`, `{"tokens":[{"id":"a","scope":"root"}]}`, `{"sessions":[{}]}`,
		strings.Repeat(" ", maxKept+1)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, keptFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newClock().open(t, dir)
		if _, ok := s.Token(own, ""); !ok || len(s.List()) != 0 {
			t.Errorf("%.20q: the box's own token does not work, or there are others", text)
		}
		if _, err := os.Stat(filepath.Join(dir, keptFile+".damaged")); err != nil {
			t.Error(err)
		}
	}
}

func FuzzDecodeKept(f *testing.F) {
	f.Add([]byte(`{"tokens":[{"id":"a","name":"n","scope":"read","sha256":"` + digest("x") + `"}],"sessions":[]}`))
	f.Add([]byte(`{"sessions":[{"sha256":"` + digest("x") + `","token":"a"}]}`))
	f.Add([]byte(`{"tokens":[null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer testlab.Input(t)()
		all, err := decodeKept(text)
		if err != nil {
			return
		}
		for _, one := range all.Tokens {
			if one.Scope.rank() == 0 {
				t.Errorf("a token of scope %q", one.Scope)
			}
		}
	})
}
