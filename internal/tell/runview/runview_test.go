package runview_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/internal/tell/runview"
)

// A run of two arms has the words of its comparison, and each pair's difference is that of its two trials.
func TestCompared(t *testing.T) {
	run := reporttest.Compared(3, 10, 400)
	run.Trials[4].Valid, run.Trials[4].Invalid = false, []string{"the clock stepped"}
	reporttest.Compare(run)
	run.Trials = append(run.Trials, &lab.Trial{Number: 21, Arm: lab.Control, Warmup: true, Valid: true})
	v, err := runview.Of(run, runview.Choice{Metric: "unique_fps"})
	if err != nil {
		t.Fatal(err)
	}
	if v.Headline != run.Comparison.Headline || v.Detail != run.Comparison.Detail || v.Verdict != lab.Slower {
		t.Errorf("the words are %+v, want those of %+v", v.Words, run.Comparison)
	}
	var names []string
	for _, m := range v.Metrics {
		names = append(names, fmt.Sprint(m.Metric, " ", m.Label, " ", m.Guard, " ", m.Effect.Words))
		if len(m.Values) != len(v.Trials) {
			t.Errorf("%s has %d values for %d trials", m.Metric, len(m.Values), len(v.Trials))
		}
	}
	want := []string{"speed_index_ms SpeedIndex true slower", "time_to_stable_ms Looks finished true slower", "first_visual_change_ms First visual change true slower",
		"last_visual_change_ms Last visual change true slower", "unique_fps Unique frame rate false no difference found"}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("metrics (−want +got):\n%s", d)
	}
	if len(v.Pairs) != run.Comparison.Pairs {
		t.Errorf("%d pairs, want the comparison's %d", len(v.Pairs), run.Comparison.Pairs)
	}
	for _, p := range v.Pairs {
		c, b := run.Trials[p.Control-1], run.Trials[p.Treatment-1]
		if c.Arm != lab.Control || b.Arm != lab.Treatment || !c.Valid || !b.Valid || c.Block != b.Block {
			t.Errorf("pair %+v is of %s and %s, in blocks %d and %d", p, c.Arm, b.Arm, c.Block, b.Block)
		}
	}
	if last := v.Trials[20]; last.Valid || last.Extra != "warm-up" {
		t.Errorf("the warm-up is %+v; want one that does not count", last)
	}
	for _, s := range v.Metrics[0].Arms { // as the report has them
		for _, known := range run.Summary {
			if known.Metric == "speed_index_ms" && known.Arm == s.Arm && (known.N != s.N || math.Abs(known.Median-s.Median) > 1e-9) {
				t.Errorf("%+v, the run's summary is %+v", s, known)
			}
		}
	}
}

// While a run is in progress it has medians of the trials so far, and no verdict.
func TestInProgress(t *testing.T) {
	run := reporttest.Compared(3, 6, 400)
	run.Comparison, run.Summary, run.State = nil, nil, "running"
	v, err := runview.Of(run, runview.Choice{})
	if err != nil || v.Headline != "" || len(v.Metrics) != 4 || v.Metrics[0].Metric != "speed_index_ms" || v.Metrics[0].Effect != nil || len(v.Metrics[0].Arms) != 2 || len(v.Pairs) != 6 {
		t.Errorf("%+v, %v; want four metrics of two arms, six pairs and no verdict", v, err)
	}
}

// Of a run of many what all have together is shown, or one of them, by the name that its cells have.
func TestMany(t *testing.T) {
	run := reporttest.Many(2, 8, 900)
	v, err := runview.Of(run, runview.Choice{})
	if err != nil || len(v.Cells) != 6 || len(v.Metrics) != 0 || len(v.Together) == 0 || len(v.Pairs) != 0 || v.Report != "report.html" {
		t.Fatalf("%+v, %v; want six cells and what they have together", v, err)
	}
	if got, want := v.Together[0], run.Comparison.Telling(); got.Metric != want.Metric || got.Unit != "%" || got.Shift != want.Shift {
		t.Errorf("the first effect on all together is %+v, want %+v", got, want)
	}
	for i, c := range v.Cells {
		one, err := runview.Of(run, runview.Choice{Cell: c.Name})
		if err != nil || one.Headline != c.Headline || len(one.Trials) != 16 || len(one.Metrics) != 4 || one.Report != fmt.Sprintf("cell-%02d.html", i+1) || one.Page != c.URL {
			t.Errorf("cell %s: %v %+v", c.Name, err, one)
		}
	}
}

// Names that a run does not have are said to be unknown.
func TestUnknown(t *testing.T) {
	run := reporttest.Run(1, 3)
	for _, c := range []runview.Choice{{Cell: "home / anna"}, {Step: "search"}, {Metric: "nope_ms"}} {
		_, err := runview.Of(run, c)
		if unknown := (*runview.UnknownError)(nil); !errors.As(err, &unknown) {
			t.Errorf("%+v: %v, want an UnknownError", c, err)
		}
	}
}

// A run of 100 trials has a view that is small, and one without trials has empty lists and no null.
func TestSize(t *testing.T) {
	for _, c := range []struct {
		run  *lab.Run
		most int
	}{{reporttest.Compared(1, 50, 100), 40_000}, {reporttest.Run(1, 0), 1_000}} {
		v, err := runview.Of(c.run, runview.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil || len(b) > c.most {
			t.Errorf("%d trials: %d bytes, %v; want at most %d", len(c.run.Trials), len(b), err, c.most)
		}
		for _, list := range []string{"trials", "metrics", "pairs", "warnings", "arms"} {
			if strings.Contains(string(b), fmt.Sprintf("%q:null", list)) {
				t.Errorf("the view of %d trials has no list %s", len(c.run.Trials), list)
			}
		}
	}
}
