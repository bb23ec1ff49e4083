package verdict

import (
	"math/rand/v2"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// known is a run of so many pairs whose SpeedIndex varies with what was known before each load. The arms differ by
// shift, and by before in what was known.
func known(pairs int, shift, before float64) *lab.Run {
	r := rand.New(rand.NewPCG(1, 2))
	run := &lab.Run{Plan: lab.Plan{Trials: pairs, Treatment: &lab.Arm{}, Primary: metric.SpeedIndex.String(), Covariates: lab.Covariates()}}
	for n := range 2 * pairs {
		x, arm := 30*r.NormFloat64(), []string{lab.Control, lab.Treatment}[n%2]
		value, told := 900+x+4*r.NormFloat64(), 400+x
		if arm == lab.Treatment {
			value, told = value+shift, told+before
		}
		run.Trials = append(run.Trials, &lab.Trial{
			Number: n + 1, Arm: arm, Block: 1 + n/10, Valid: true, Before: map[string]float64{lab.CovariateSettle: told},
			Measurements: []lab.Measurement{{Name: metric.SpeedIndex.String(), Unit: "ms", Value: value}},
		})
	}
	return run
}

func TestAdjustedByCovariates(t *testing.T) {
	run := known(20, 8, 0)
	c := Of(run, 1)
	e := c.Effects[0]
	if c.Verdict != lab.Slower || e.Adjustment == nil || e.Adjustment.RawP < Level || e.Adjustment.Explained < 0.9 ||
		e.Adjustment.Raw.High-e.Adjustment.Raw.Low < 3*(e.Shift.High-e.Shift.Low) {
		t.Fatalf("Of() = %s: %s, effect %+v with %+v; want slower by what the covariate shows", c.Verdict, c.Detail, e, e.Adjustment)
	}
	if !strings.Contains(c.Detail, "% of the variance; unadjusted ") {
		t.Errorf("Detail = %q; want both numbers", c.Detail)
	}
	// A run of before there were covariates, one that switched them off, and trials that have none: the raw test.
	for name, change := range map[string]func(*lab.Run){
		"no covariates":    func(r *lab.Run) { r.Plan.Covariates = nil },
		"none":             func(r *lab.Run) { r.Plan.Covariates = []string{lab.CovariateNone} },
		"unknown in trial": func(r *lab.Run) { drop(r) },
	} {
		raw := known(20, 8, 0)
		change(raw)
		got := Of(raw, 1)
		if a := got.Effects[0]; got.Verdict != lab.NoChange || a.Adjustment != nil || a.P != e.Adjustment.RawP || a.Shift != e.Adjustment.Raw {
			t.Errorf("%s: Of() = %s with %+v; want the raw test %+v", name, got.Verdict, a, e.Adjustment)
		}
	}
}

func drop(run *lab.Run) {
	for _, t := range run.Trials {
		t.Before = nil
	}
}

// An arm that changes a covariate, as a slower start of the browser would, is not adjusted by it: that would hide what
// it did.
func TestCovariateThatDiffersIsDropped(t *testing.T) {
	run := known(20, 60, 60)
	c := Of(run, 1)
	if c.Verdict != lab.Slower || c.Effects[0].Adjustment != nil || len(c.Covariates) != 1 || !c.Covariates[0].Dropped {
		t.Fatalf("Of() = %s, effect %+v, covariates %+v; want slower, unadjusted, and the covariate dropped", c.Verdict, c.Effects[0], c.Covariates)
	}
	if told := Dropped(c); !strings.Contains(told, lab.CovariateSettle+" (p < 0.001)") {
		t.Errorf("Dropped() = %q; want the covariate with its p", told)
	}
	if told := Dropped(Of(known(20, 8, 0), 1)); told != "" {
		t.Errorf("Dropped() = %q where the arms are alike; want nothing", told)
	}
}

// An interval that leaves out 0 beside "no difference" is explained where it stands.
func TestIntervalBesideNoDifference(t *testing.T) {
	e := lab.Effect{Metric: metric.SpeedIndex.String(), Unit: "ms", Guard: true, Finding: lab.NoChange, Pairs: 20, Control: 900,
		Shift: lab.Range{Value: 100, Low: 9, High: 165, Confidence: 0.95}, P: 0.033, Adjusted: 0.13}
	c := &lab.Comparison{Verdict: lab.NoChange, Pairs: 20, Effects: []lab.Effect{e, e, e, e}}
	if _, detail := words(c, ofArms(c)); !strings.Contains(detail, "leaves out 0 since it is of this metric alone: one of 4 guarded metrics") ||
		!strings.Contains(detail, "(uncorrected 0.033)") {
		t.Errorf("words() = %q; want why the interval leaves out 0", detail)
	}
	c.Effects[0].Shift.Low = -9
	if _, detail := words(c, ofArms(c)); strings.Contains(detail, "leaves out 0") {
		t.Errorf("words() = %q; want nothing of an interval that holds 0", detail)
	}
}
