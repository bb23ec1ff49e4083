package verdict

import (
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
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
			"or more would have been detected with 80 % probability", single("new", 12, 300), 40},
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

// many is a run of these pages, each of n trials, of which some are slower by so many ms.
func many(id string, n int, pages []string, slower map[string]float64) *lab.Run {
	r := &lab.Run{ID: id}
	for _, page := range pages {
		r.Plan.Pages = append(r.Plan.Pages, lab.PlanPage{Name: page, Page: "https://a.test/" + page})
		one := single(id, n, slower[page])
		for _, t := range one.Trials {
			t.Cell = page
			r.Trials = append(r.Trials, t)
		}
	}
	return r
}

// Runs of many pages are compared page by page. One that the reference does not have is said, and judged by nobody.
func TestBetweenMany(t *testing.T) {
	all := []string{"home", "cart", "search"}
	reference := many("old", 12, all, nil)
	for name, c := range map[string]struct {
		run               *lab.Run
		verdict, headline string
		detail            string
		each              []string // verdicts; "" for what is not compared
	}{
		"none":     {many("new", 12, all, nil), lab.NoChange, "No difference of more than 5 % from the reference was found", "3 of 3 pages", []string{lab.NoChange, lab.NoChange, lab.NoChange}},
		"one":      {many("new", 12, all, map[string]float64{"cart": 300}), lab.Slower, "The run is slower than the reference for cart, by more than 5 %", "slower: cart", []string{lab.NoChange, lab.Slower, lab.NoChange}},
		"both":     {many("new", 12, all, map[string]float64{"cart": 300, "home": -300}), lab.Mixed, "slower than the reference for cart and faster for home", "faster: home", []string{lab.Faster, lab.Slower, lab.NoChange}},
		"a new":    {many("new", 12, []string{"cart", "help"}, nil), lab.NoChange, "No difference", "1 of 2 pages and users are compared; not in the reference: help", []string{lab.NoChange, ""}},
		"few":      {many("new", 4, all, nil), lab.Unknown, "Too few trials", "not known: home, cart, search", []string{lab.Unknown, lab.Unknown, lab.Unknown}},
		"a margin": {many("new", 12, all, map[string]float64{"cart": 300}), lab.NoChange, "No difference", "", []string{lab.NoChange, lab.NoChange, lab.NoChange}},
	} {
		if name == "a margin" { // of the page
			c.run.Plan.Margin, c.run.Plan.Pages[1].Margin = 3, 60
		}
		got, each := BetweenMany(reference, c.run, 5, 1, nil)
		var verdicts []string
		for _, one := range each {
			v := ""
			if one != nil {
				v = one.Verdict
			}
			verdicts = append(verdicts, v)
		}
		if got.Verdict != c.verdict || !strings.Contains(got.Headline, c.headline) || !strings.Contains(got.Detail, c.detail) || !slices.Equal(verdicts, c.each) {
			t.Errorf("%s: %s %q %q %q; want %s %q %q %q", name, got.Verdict, got.Headline, got.Detail, verdicts, c.verdict, c.headline, c.detail, c.each)
		}
	}
}

// The margin of a metric holds in place of that of all, in a comparison of arms and in one of runs; and a trial that is
// of no statistic is none of a run's.
func TestMargins(t *testing.T) {
	arms := run(12, 300)
	arms.Plan.Margin = 3
	if got := Of(arms, 1); got.Verdict != lab.Slower {
		t.Fatalf("without margins of metrics the verdict is %s; want slower", got.Verdict)
	}
	arms.Plan.Margins = map[string]float64{}
	for _, g := range metric.Guards() {
		arms.Plan.Margins[g.String()] = 60
	}
	if got := Of(arms, 1); got.Verdict != lab.Equivalent || !strings.Contains(got.Headline, "within the plan's margins") {
		t.Errorf("with margins of 60 %% the verdict is %s: %s; want equivalent", got.Verdict, got.Headline)
	}
	delete(arms.Plan.Margins, "speed_index_ms")
	if got := Of(arms, 1); got.Verdict != lab.Slower || got.Telling().Metric != "speed_index_ms" {
		t.Errorf("with the margin of SpeedIndex gone the verdict is %s; want slower, by SpeedIndex", got.Verdict)
	}
	later := single("new", 12, 300)
	later.Plan.Margins = arms.Plan.Margins
	got := Between(single("old", 12, 0), later, 5, 1, nil)
	if n := slices.IndexFunc(got.Effects, func(e lab.Effect) bool { return e.Metric == "speed_index_ms" }); got.Verdict != lab.Slower || got.Effects[n].Finding != lab.Slower ||
		!strings.Contains(got.Detail, "1 of 4 guarded metrics is slower") || !strings.HasSuffix(got.Headline, "by more than its margin") {
		t.Errorf("two runs = %s %q %q; want slower by SpeedIndex alone", got.Verdict, got.Headline, got.Detail)
	}
	warm := single("old", 12, 0)
	for _, trial := range warm.Trials[:6] {
		trial.Warmup = true
		for i := range trial.Measurements {
			trial.Measurements[i].Value *= 3
		}
	}
	if got := Between(warm, single("new", 12, 0), 5, 1, nil); got.Pairs != 6 || got.Verdict != lab.NoChange {
		t.Errorf("with six warm-ups there are %d pairs, and the verdict is %s; want 6, none", got.Pairs, got.Verdict)
	}
}

// A guard that could not be tested, since no trial says which recording it replayed, is not known, and not without a
// difference.
func TestUntestedIsUnknown(t *testing.T) {
	r := run(12, 300)
	r.Plan.Recordings, r.Plan.Timing = 6, "recorded"
	if got := Of(r, 1); got.Verdict != lab.Unknown {
		t.Errorf("the verdict is %s: %s; want unknown", got.Verdict, got.Headline)
	}
}
