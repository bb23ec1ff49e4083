package verdict

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// working is a run whose treatment shows as late as its control, and whose main thread works so many ms more.
func working(shift, more float64) *lab.Run {
	r := run(10, shift)
	r.Plan.Measure = &lab.Measure{Guards: []string{"main_thread_ms"}}
	for i, trial := range r.Trials {
		work := 100 + float64(i%5)/10
		if trial.Arm == lab.Treatment {
			work += more
		}
		trial.Measurements = append(trial.Measurements, lab.Measurement{Name: "main_thread_ms", Unit: "ms", Value: work})
	}
	return r
}

// TestFilmBesideWork: a verdict of the browser's work alone says what the film would have shown, and where the work is.
func TestFilmBesideWork(t *testing.T) {
	for _, c := range []struct {
		name              string
		run               *lab.Run
		verdict, headline string
		beside            bool
	}{
		{"more work", working(0, 6), lab.Slower, "works more, and the film shows no difference", true},
		{"less work", working(0, -6), lab.Faster, "works less, and the film shows no difference", true},
		{"both", working(300, 6), lab.Slower, "Treatment (link 3g) is slower", false},
		{"neither", working(0, 0), lab.NoChange, "No difference", false},
	} {
		got := Of(c.run, 1)
		beside := strings.Contains(got.Detail, "on the film, SpeedIndex of ")
		if got.Verdict != c.verdict || !strings.Contains(got.Headline, c.headline) || beside != c.beside {
			t.Errorf("%s: %s, %q, %q; want %s, %q, and the film's words: %v", c.name, got.Verdict, got.Headline, got.Detail,
				c.verdict, c.headline, c.beside)
		}
		before := got.Detail
		sign := 1.0
		if c.verdict == lab.Faster {
			sign = -1
		}
		Locate(got, &lab.Causes{Rows: []lab.Cause{
			{Kind: lab.CauseWait, What: "GET /api", Unit: "ms", Shift: 9, Named: true},
			{Kind: lab.CauseThread, Main: true, Group: "style and layout", What: "/other.css", Unit: "ms", Shift: -sign, Named: true},
			{Kind: lab.CauseThread, Main: true, Group: "run scripts", What: "/app.js", Unit: "ms", Shift: 5.5 * sign, Named: true},
		}})
		if placed := strings.Contains(got.Detail[len(before):], "in /app.js (run scripts, "); placed != c.beside {
			t.Errorf("%s: Locate() made %q of %q; want the script: %v", c.name, got.Detail, before, c.beside)
		}
	}
	Locate(nil, &lab.Causes{})
	got := Of(working(0, 6), 1)
	before := got.Detail
	if Locate(got, nil); got.Detail != before {
		t.Errorf("Locate() without causes made %q of %q", got.Detail, before)
	}
}
