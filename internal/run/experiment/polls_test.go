package experiment

import (
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/lab"
)

// TestRestWithAPendingPoll: a page is still from 0.9 s on, with a request that waits. It takes ten seconds to
// know that this is a poll; the page came to rest before. If its answer comes, it was none, and the page
// rests after it.
func TestRestWithAPendingPoll(t *testing.T) {
	for name, c := range map[string]struct {
		answered  time.Duration // 0 for never
		end, rest [2]time.Duration
	}{
		"a poll":        {0, [2]time.Duration{10400 * time.Millisecond, 10600 * time.Millisecond}, [2]time.Duration{2400 * time.Millisecond, 2600 * time.Millisecond}},
		"a slow answer": {5 * time.Second, [2]time.Duration{6500 * time.Millisecond, 6700 * time.Millisecond}, [2]time.Duration{6500 * time.Millisecond, 6700 * time.Millisecond}},
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			const asked, known = 400 * time.Millisecond, 10400 * time.Millisecond
			w := world{changes: []time.Duration{200 * time.Millisecond, 900 * time.Millisecond}}
			w.traffic = func(since time.Duration) Traffic {
				switch {
				case c.answered > 0 && since >= c.answered:
					return Traffic{LastActivity: w.pressed.Add(c.answered)}
				case since < known:
					return Traffic{LastActivity: w.pressed.Add(asked), InFlight: 1, Waits: []Wait{{7, w.pressed.Add(asked)}}}
				}
				return Traffic{LastActivity: w.pressed.Add(asked), Waits: []Wait{{7, w.pressed.Add(asked)}}}
			}
			p := plan()
			p.Limit = 30 * time.Second
			got, err := w.runner().Trial(t.Context(), p, 1, dir)
			if err != nil || got.Ended != lab.EndStable {
				t.Fatalf("%s: ended by %q, %v; want %q", name, got.Ended, err, lab.EndStable)
			}
			end := got.Events[len(got.Events)-1].Latest.Sub(w.pressed)
			if end < c.end[0] || end > c.end[1] || w.rested < c.rest[0] || w.rested > c.rest[1] {
				t.Errorf("%s: ended after %v, and at rest after %v; want %v and %v", name, end, w.rested, c.end, c.rest)
			}
		})
	}
}

// TestMoreIsExpected: a page that has asked for a tenth of its recording is waited for, although screen,
// network and processes are still, as on a machine that has no time for it.
func TestMoreIsExpected(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := world{changes: []time.Duration{200 * time.Millisecond}}
		w.traffic = func(since time.Duration) Traffic {
			if since < 8*time.Second {
				return Traffic{Recorded: 90, Asked: 10, LastActivity: w.pressed.Add(100 * time.Millisecond)}
			}
			return Traffic{Recorded: 90, Asked: 90, LastActivity: w.pressed.Add(8 * time.Second)}
		}
		p := plan()
		p.Limit = 30 * time.Second
		got, err := w.runner().Trial(t.Context(), p, 1, dir)
		if err != nil || !got.Valid || got.Asked != 90 {
			t.Errorf("Trial() = asked for %d, valid %v, %q, %v; want 90 and valid", got.Asked, got.Valid, got.Invalid, err)
		}
	})
}
