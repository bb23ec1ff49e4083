package verdict

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// single makes a run that has only a control.
func single(id string, trials int, shift float64) *lab.Run {
	r := run(trials, shift)
	r.ID = id
	var kept []*lab.Trial
	for _, t := range r.Trials {
		if (t.Arm == lab.Treatment) == (shift != 0) {
			t.Arm = lab.Control
			kept = append(kept, t)
		}
	}
	r.Trials = kept
	return r
}

func TestBetween(t *testing.T) {
	mixed := single("new", 10, 300)
	for _, trial := range mixed.Trials {
		trial.Measurements[2].Value -= 600
	}
	for _, c := range []struct {
		name, verdict, headline, detail string
		run                             *lab.Run
		margin                          float64
	}{
		{"slower", lab.Slower, "The run is slower than the reference, by more than 5 %",
			"10 and 12 trials, p < 0.001); 4 of 4 guarded metrics are slower", single("new", 12, 300), 5},
		{"no margin", lab.Slower, "The run is slower than the reference", "SpeedIndex +", single("new", 12, 300), 0},
		{"within the margin", lab.NoChange, "No difference of more than 40 % from the reference was found",
			"or more would have been found four times of five", single("new", 12, 300), 40},
		{"faster", lab.Faster, "The run is faster than the reference, by more than 5 %", "SpeedIndex −", single("new", 12, -300), 5},
		{"mixed", lab.Mixed, "The run is slower in some metrics and faster in others", "; 10 and 10 trials", mixed, 5},
		{"few", lab.Unknown, "Too few trials to tell whether the run is slower than the reference",
			"10 valid trials of the reference and 5 of the run, at least 6 of each are needed; so far SpeedIndex +", single("new", 5, 300), 5},
		{"none", lab.Unknown, "Too few trials", "10 valid trials of the reference and 0 of the run", &lab.Run{ID: "new"}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Between(single("old", 10, 0), c.run, c.margin, 1, nil)
			if got.Verdict != c.verdict || got.Headline != c.headline && !strings.HasPrefix(got.Headline, c.headline) ||
				!strings.Contains(got.Detail, c.detail) {
				t.Errorf("Between() = %s: %q, %q", got.Verdict, got.Headline, got.Detail)
			}
			if c.margin == 0 && strings.Contains(got.Headline, "%") {
				t.Errorf("the headline mentions a margin of 0: %q", got.Headline)
			}
			if got.Control != "old" || got.Treatment != "new" {
				t.Errorf("compared %q with %q", got.Control, got.Treatment)
			}
		})
	}
}

// The minimal effect is larger than the margin. Trials of a treatment and invalid trials
// are not compared.
func TestBetweenNumbers(t *testing.T) {
	reference := single("old", 10, 0)
	reference.Trials[3].Valid = false
	reference.Trials[3].Measurements[0].Value = 1e6
	two := run(10, 300)
	got := Between(reference, two, 10, 1, nil)
	if got.Verdict != lab.NoChange || got.Pairs != 9 || got.LeftOut != 1 || len(got.Effects) != 5 {
		t.Fatalf("%+v", got)
	}
	for _, e := range got.Effects[:4] {
		if e.MinimalEffect < 0.1*e.Control || e.MinimalEffect > 0.15*e.Control || e.Control > 1100 {
			t.Errorf("%s: %+v", e.Metric, e)
		}
	}
}
