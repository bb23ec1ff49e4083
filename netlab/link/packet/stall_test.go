package packet

import (
	"testing"
	"time"

	"eidetic/internal/lab"
)

// TestStall: the profile's stall happens, at another moment in each trial, and the
// report says when.
func TestStall(t *testing.T) {
	s := newSim(t, "rtt=20ms,stall=100ms@200ms-900ms")
	seen := map[time.Duration]bool{}
	for range 5 {
		s.Restart()
		begun, before := s.now, len(s.got())
		s.down(1500, 100, time.Millisecond)
		s.until(begun.Add(2 * time.Second).Sub(1))
		r := s.Report()
		if r.Stalled == nil || r.Stalled.For != 100*time.Millisecond {
			t.Fatalf("Report().Stalled = %+v, want a stall of 100ms", r.Stalled)
		}
		from := begun.Add(r.Stalled.At)
		seen[r.Stalled.At] = true
		for _, d := range s.got()[before:] {
			if d.at >= from && d.at < from.Add(r.Stalled.For) {
				t.Fatalf("a packet left %v after the stall began, want none for 100ms", d.at.Sub(from))
			}
		}
		if n := len(s.got()) - before; n != 1500 {
			t.Errorf("%d packets left, want 1500", n)
		}
		if sum := lab.LateAt(r.Late, s.now); sum < 99*time.Millisecond || sum > 101*time.Millisecond {
			t.Errorf("the lateness adds up to %v, want 99ms to 101ms", sum)
		}
		s.sides[1].come = nil
	}
	if len(seen) < 4 {
		t.Errorf("in five trials the stall began at %d different moments, want at least 4", len(seen))
	}
}
