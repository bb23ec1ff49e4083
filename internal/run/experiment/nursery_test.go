package experiment

import (
	"testing"
	"time"

	"eidetic/internal/lab"
)

func TestNursery(t *testing.T) {
	all := map[int]time.Duration{1: 0}
	n := nursery{processes: func() map[int]time.Duration {
		out := map[int]time.Duration{}
		for pid := range all {
			out[pid] = 0
		}
		return out
	}}
	at := func(after time.Duration) lab.Time { return lab.Time(time.Hour + after) }
	for _, step := range []struct {
		after, want time.Duration
		born, ended int
	}{
		{after: 0, want: 0},
		{after: 200 * time.Millisecond, want: 200 * time.Millisecond},
		{after: 400 * time.Millisecond, born: 2, want: 0},
		{after: 450 * time.Millisecond, born: 3, want: 50 * time.Millisecond}, // looked at a moment ago
		{after: 600 * time.Millisecond, want: 0},
		{after: 900 * time.Millisecond, ended: 2, want: 300 * time.Millisecond},
		{after: 6 * time.Second, born: 4, want: birthLimit}, // it never stops
	} {
		if step.born != 0 {
			all[step.born] = 0
		}
		delete(all, step.ended)
		if got := n.quietFor(at(step.after)); got != step.want {
			t.Errorf("after %v: quiet for %v, want %v", step.after, got, step.want)
		}
	}
	if got := new(nursery).quietFor(at(0)); got < time.Second {
		t.Errorf("unknown processes are quiet for %v", got)
	}
}
