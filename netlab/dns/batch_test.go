package dns

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// What a full socket does not take is tried again until the time is over, and
// once more after that: on a machine that stalls it may be over at once.
func TestPatience(t *testing.T) {
	for name, c := range map[string]struct {
		tick  time.Duration // between looks at the clock
		full  int           // tries that find no room
		tries int
		err   error
	}{
		"room":               {tick: time.Millisecond, tries: 1},
		"room after a stall": {tick: time.Hour, full: 1, tries: 2},
		"no room":            {tick: time.Millisecond, full: 1 << 30, tries: 46, err: syscall.EAGAIN},
		"none after a stall": {tick: time.Hour, full: 1 << 30, tries: 2, err: syscall.EAGAIN},
		"nobody there":       {tick: time.Millisecond, full: -1, tries: 1, err: syscall.ENETUNREACH},
	} {
		t.Run(name, func(t *testing.T) {
			var now lab.Time
			s := &Server{c: Config{Clock: func() lab.Time { now = now.Add(c.tick); return now }}, ctx: context.Background()}
			tries := 0
			err := s.patiently(func() error {
				switch tries++; {
				case c.full < 0:
					return syscall.ENETUNREACH
				case tries <= c.full:
					return syscall.EAGAIN
				}
				return nil
			})
			if tries != c.tries || !errors.Is(err, c.err) {
				t.Errorf("%d tries and %v, want %d and %v", tries, err, c.tries, c.err)
			}
		})
	}
}
