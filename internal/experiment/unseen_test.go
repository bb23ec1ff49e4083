package experiment

import (
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// A change whose time is known badly voids a trial where it lies between the
// start and the end, and is worse than the plan allows.
func TestJudgeUnseen(t *testing.T) {
	const ms = lab.Time(time.Millisecond)
	normal := FilmStatus{Period: time.Second / 60, Normal: 17 * time.Millisecond}
	for _, c := range []struct {
		name  string
		from  lab.Time
		took  lab.Time
		bound time.Duration
		want  string
	}{
		{"one look missed", 2000 * ms, 35 * ms, 0, ""},
		{"two looks missed", 2000 * ms, 51 * ms, 0, "1.05 s after the start is known to within 51.0 ms only, 42.0 are allowed"},
		{"before the start", 900 * ms, 80 * ms, 0, ""},
		{"over the start", 960 * ms, 80 * ms, 0, "known to within 80.0 ms"},
		{"after the end", 5001 * ms, 80 * ms, 0, ""},
		{"the plan allows more", 2000 * ms, 80 * ms, 100 * time.Millisecond, ""},
		{"the plan allows less", 2000 * ms, 35 * ms, 30 * time.Millisecond, "35.0 ms only, 30.0 are allowed"},
	} {
		film := normal
		film.Unseen = []lab.Unseen{{From: c.from, To: c.from + c.took, Missed: int(c.took / (17 * ms))}}
		trial := &lab.Trial{Events: []lab.Event{
			{Name: "navigate", Earliest: 1000 * ms, Latest: 1001 * ms}, {Name: "end", Earliest: 5000 * ms, Latest: 5000 * ms},
		}}
		got := strings.Join(judge(trial, facts{film: film, bound: c.bound}), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: judge() = %q, want %q", c.name, got, c.want)
		}
	}
}
