package verdict

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"eidetic/analysis/stats/simulate"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// looking makes a run of a plan with looks, as the experiment has it after its trials.
func looking(all *lab.Run, pairs int) *lab.Run {
	r := *all
	r.Trials = nil
	for _, t := range all.Trials {
		if t.Number <= 2*pairs {
			r.Trials = append(r.Trials, t)
		}
	}
	return &r
}

// simulated makes a run of so many pairs on a simulated machine, whose treatment takes shift longer.
func simulated(seed uint64, plan lab.Plan, shift float64) *lab.Run {
	run := &lab.Run{Plan: plan}
	run.Plan.Treatment = &lab.Arm{}
	rng := rand.New(rand.NewPCG(seed, 7))
	for i, b := range simulate.Usual().Experiment(rng, plan.Trials, shift) {
		for n := range b.Control {
			for _, one := range []struct {
				arm   string
				value float64
			}{{lab.Control, b.Control[n]}, {lab.Treatment, b.Treatment[n]}} {
				t := &lab.Trial{Number: len(run.Trials) + 1, Arm: one.arm, Block: i + 1, Valid: true}
				for _, g := range metric.Guards()[:1] {
					t.Measurements = append(t.Measurements, lab.Measurement{Name: g.String(), Unit: "ms", Value: one.value})
				}
				run.Trials = append(run.Trials, t)
			}
		}
	}
	return run
}

// carriedOut looks at a run as its plan says, and returns it as it ended.
func carriedOut(all *lab.Run) (*lab.Run, *lab.Comparison) {
	all.Looks = nil
	after := all.Plan.LooksAfter()
	for at, pairs := range after[:len(after)-1] {
		r := looking(all, pairs)
		known := Look(r, at, 1)
		all.Looks = r.Looks
		if known {
			return r, Of(r, 1)
		}
	}
	return all, Of(all, 1)
}

// The looks spend the level once, little of it at the beginning.
func TestLevels(t *testing.T) {
	for _, pairs := range [][]int{{40}, {20, 40}, {5, 10, 15, 20}, {7, 15, 33, 40, 100}} {
		levels, sum := Levels(pairs), 0.0
		for i, l := range levels {
			if sum += l; i > 0 && l <= levels[i-1] {
				t.Errorf("Levels(%v) = %v; want growing ones", pairs, levels)
			}
		}
		if math.Abs(sum-Level) > 1e-12 || len(levels) != len(pairs) {
			t.Errorf("Levels(%v) = %v with the sum %v; want one for each look, %v in all", pairs, levels, sum, Level)
		}
	}
}

// What the looks spend and what is left for the end is the level, whichever looks took place.
func TestLevelsAreSpentOnce(t *testing.T) {
	run := simulated(3, lab.Plan{Trials: 40, Looks: 4}, 0)
	if Look(looking(run, 10), 2, 1) {
		t.Fatal("equal arms are told apart")
	}
	spent := 0.0
	for at, pairs := range []int{10, 20} { // the third look is left out
		r := looking(run, pairs)
		Look(r, at, 1)
		run.Looks = r.Looks
		spent += r.Looks[at].Level
	}
	if got := levelLeft(run) + spent; math.Abs(got-Level) > 1e-12 {
		t.Errorf("looks %+v leave %v; want %v in all", run.Looks, levelLeft(run), Level)
	}
}

func TestLookEndsWhatIsClear(t *testing.T) {
	for _, c := range []struct {
		name, verdict, headline, detail string
		shift, margin                   float64
		early                           bool
	}{
		{"slower", lab.Slower, "Treatment (the same as the control) is slower", "; known at look ", 120, 0, true},
		{"faster", lab.Faster, "is faster", "; known at look ", -120, 0, true},
		{"equal", lab.NoChange, "No difference", "or more would have been detected", 0, 0, false},
		{"equivalent", lab.Equivalent, "is equivalent to the control within 6 %", "all guarded metrics are within the margin", 0, 6, true},
		{"slower by more", lab.Slower, "is slower", "; known at look ", 250, 6, true},
		{"at the margin", lab.Unknown, "Whether the treatment differs by more than 6 % is not known", " more pairs would tell", 85, 6, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, got := carriedOut(simulated(11, lab.Plan{Trials: 40, Looks: 4, Margin: c.margin}, c.shift))
			if got.Verdict != c.verdict || !strings.Contains(got.Headline, c.headline) || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("%s: %q, %q; want %s, %q, %q", got.Verdict, got.Headline, got.Detail, c.verdict, c.headline, c.detail)
			}
			if early := len(run.Trials) < 80; early != c.early {
				t.Errorf("the run ended after %d trials, looks %+v; want early = %v", len(run.Trials), run.Looks, c.early)
			}
			if (got.Verdict == lab.Unknown) != (got.Missing > 0) {
				t.Errorf("%s, and %d pairs are missing", got.Verdict, got.Missing)
			}
		})
	}
}

// missing says how many pairs would do: as many more, if the shift is as it seems, mostly do.
func TestMissingPairs(t *testing.T) {
	const shift, margin = 60, 6
	run := simulated(21, lab.Plan{Trials: 10, Margin: margin}, shift)
	c := Of(run, 1)
	if c.Verdict != lab.Unknown || c.Missing < 2 || c.Missing > 200 {
		t.Fatalf("%s, %d pairs are missing: %s; want an unknown verdict and a number", c.Verdict, c.Missing, c.Detail)
	}
	known := 0
	for seed := range uint64(8) {
		if c := Of(simulated(100+seed, lab.Plan{Trials: 150, Margin: margin}, shift), 1); c.Verdict == lab.Equivalent {
			known++
		}
	}
	if known < 5 {
		t.Errorf("%d of 8 runs of 150 pairs know; want most", known)
	}
	if few := Of(simulated(1, lab.Plan{Trials: 4}, 0), 1); few.Missing != 2 {
		t.Errorf("4 pairs lack %d; want 2, as a verdict needs %d", few.Missing, Least)
	}
}

// A primary metric is the only guard, whatever its kind; without it there is no verdict.
func TestPrimary(t *testing.T) {
	r := run(10, 300)
	r.Plan.Primary = "unique_frames"
	c := Of(r, 1)
	if e := c.Effects[0]; e.Metric != "unique_frames" || !e.Guard || c.Verdict != e.Finding || e.Adjusted != e.P {
		t.Errorf("%+v; want the primary metric first, its p-value uncorrected", e)
	}
	for _, e := range c.Effects[1:] {
		if e.Guard {
			t.Errorf("%s is a guard beside the primary metric", e.Metric)
		}
	}
	r.Plan.Primary = "none_such_ms"
	if c := Of(r, 1); c.Verdict != lab.Unknown || !strings.Contains(c.Detail, "none_such_ms") {
		t.Errorf("%s, %q; want no verdict, and the name of the metric", c.Verdict, c.Detail)
	}
}

// Looks at equal arms call no more of them different than one look does. The benchmark in
// internal/tell/verdict/bench simulates more of them.
func TestLooksKeepTheLevel(t *testing.T) {
	const runs = 40
	alarms := 0
	for seed := range uint64(runs) {
		if _, c := carriedOut(simulated(seed, lab.Plan{Trials: 30, Looks: 3}, 0)); c.Verdict != lab.NoChange {
			alarms++
		}
	}
	// Fewer than one in a thousand fair samples have more than 7 alarms.
	if alarms > 7 {
		t.Errorf("%d of %d A/A runs have a verdict; want at most 5 %%", alarms, runs)
	}
}
