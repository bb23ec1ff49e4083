package credentials

import (
	"testing"
	"time"

	"eidetic/internal/lab"
)

// A session that was opened while the clock was years ahead ends a week after the clock is right, and
// tokens do not depend on the clock.
func TestClockThatWasAhead(t *testing.T) {
	now := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	o := Options{Own: lab.NewSecret("correct-horse-battery"), Dir: t.TempDir(), Now: func() time.Time { return now }}
	s := Open(o)
	secret, _, ok := s.OpenSession(o.Own.Reveal(), "192.0.2.7")
	_, token, err := s.Create("nightly", Run)
	if err != nil || !ok {
		t.Fatalf("OpenSession() = %v, Create() = %v", ok, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	now = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	s = Open(o)
	defer s.Close()
	who, ok := s.Session(secret)
	if !ok || who.Expires.After(now.Add(SessionIdle)) {
		t.Errorf("the session ends at %v (known: %v), want within %v from %v", who.Expires, ok, SessionIdle, now)
	}
	now = now.Add(SessionIdle + time.Hour)
	if _, ok := s.Session(secret); ok {
		t.Error("the session is still there after a week without use")
	}
	if _, ok := s.Token(token, "192.0.2.7"); !ok {
		t.Error("the token is not known any more")
	}
}
