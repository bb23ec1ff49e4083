package history

import (
	"math"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

func TestSteadyOf(t *testing.T) {
	// run has four trials more than are valid, a median, and quartiles of 27 around it.
	run := func(metric string, median float64) store.Past {
		return store.Past{Trials: 16, Valid: 12, Summary: []lab.Summary{
			{Metric: "last_visual_change_ms", Median: 1},
			{Metric: metric, Median: median, Q1: median - 13.49, Q3: median + 13.49},
		}}
	}
	load := func(median float64) store.Past { return run("speed_index_ms", median) }
	none := math.NaN()
	for name, c := range map[string]struct {
		past                     []store.Past
		metric                   string
		leftOut, within, between float64
	}{
		"no run":             {nil, "", 0, none, none},
		"one run":            {[]store.Past{load(1000)}, "speed_index_ms", 25, 2, none},
		"runs that agree":    {[]store.Past{load(1000), load(1000), load(1000), load(1000)}, "speed_index_ms", 25, 2, 0},
		"runs that differ":   {[]store.Past{load(1000), load(900), load(1100), load(1000), load(1200)}, "speed_index_ms", 25, 2, 100 / 1.349 / 10},
		"of a journey":       {[]store.Past{run("journey_ms", 500)}, "journey_ms", 25, 4, none},
		"nothing was valid":  {[]store.Past{{Trials: 10}}, "", 100, none, none},
		"a page that is bad": {[]store.Past{load(0)}, "", 25, none, none},
	} {
		got := SteadyOf(c.past)
		if got.Metric != c.metric || got.Runs != len(c.past) || math.Abs(got.LeftOut-c.leftOut) > 1e-9 {
			t.Errorf("%s: %q of %d runs, %v %% left out; want %q of %d, %v", name, got.Metric, got.Runs, got.LeftOut, c.metric, len(c.past), c.leftOut)
		}
		for what, pair := range map[string]struct {
			got  *float64
			want float64
		}{"within": {got.Within, c.within}, "between": {got.Between, c.between}} {
			switch {
			case math.IsNaN(pair.want):
				if pair.got != nil {
					t.Errorf("%s: %s %v, want none", name, what, *pair.got)
				}
			case pair.got == nil:
				t.Errorf("%s: no %s, want %v", name, what, pair.want)
			case math.Abs(*pair.got-pair.want) > 1e-6:
				t.Errorf("%s: %s %v, want %v", name, what, *pair.got, pair.want)
			}
		}
	}
}
