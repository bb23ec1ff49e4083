package experiment

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	const unknown = -1
	begin := time.Unix(1000, 0)
	var p Pace
	for _, c := range []struct {
		trial, of int
		after     time.Duration
		want      time.Duration
	}{
		{0, 6, 0, unknown},                             // the recording
		{3, 6, 20 * time.Second, unknown},              // a run that goes on
		{3, 6, 25 * time.Second, unknown},              // and says something else
		{4, 6, 30 * time.Second, 30 * time.Second},     // 10 s for a trial
		{4, 6, 34 * time.Second, 26 * time.Second},     // a part of it is over
		{4, 6, 90 * time.Second, 0},                    // it lasts longer than those before
		{5, 7, 90 * time.Second, 3 * 35 * time.Second}, // 70 s for two, and one trial more
		{7, 7, 120 * time.Second, 25 * time.Second},    // 100 s for four
		{9, 7, 140 * time.Second, 0},                   // more than were said
	} {
		got, known := p.Left(c.trial, c.of, begin.Add(c.after))
		if !known {
			got = unknown
		}
		if got != c.want {
			t.Errorf("trial %d of %d after %v: %v left, want %v", c.trial, c.of, c.after, got, c.want)
		}
	}
}
