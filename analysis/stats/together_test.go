package stats_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"eidetic/analysis/stats"
	"eidetic/analysis/stats/simulate"
)

// groups are so many pages on a simulated machine, of loads and noise of their own, of which the treatment
// takes share percent longer on the first so many.
func groups(r *rand.Rand, pages, pairs, slower int, share float64) (all []stats.Group) {
	for n := range pages {
		machine := simulate.Usual()
		machine.Load, machine.Spread, machine.Drift = 400*float64(1+n*n), 15*float64(1+n*n), 50*float64(n)
		shift := 0.0
		if n < slower {
			shift = share / 100 * machine.Load
		}
		all = append(all, stats.Group{Blocks: machine.Experiment(r, pairs, shift), Step: simulate.Frame})
	}
	return all
}

// Of one group it is Compare, in percent of the control.
func TestTogetherOfOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g := groups(r, 1, 12, 1, 4)
	one, err := stats.Compare(g[0].Blocks, stats.Plan{Seed: 3, Step: g[0].Step})
	if err != nil {
		t.Fatal(err)
	}
	all, err := stats.CompareTogether(g, stats.Plan{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	approx := cmpopts.EquateApprox(1e-9, 1e-9)
	if d := cmp.Diff(one.Percent, all.Shift, approx); d != "" || math.Abs(one.Test.P-all.Test.P) > 1e-12 || one.Pairs != all.Pairs || one.Delta != all.Delta {
		t.Errorf("p %v and %v, δ %v and %v, percent (-one +together):\n%s", one.Test.P, all.Test.P, one.Delta, all.Delta, d)
	}
}

// Neither the unit of a group's values nor the order of groups counts, and each has the same weight.
func TestTogetherWeighsEvenly(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	g := groups(r, 3, 10, 3, 3)
	for i := range g { // without ties, as those are decided by lot, for each place of a group
		for k, b := range g[i].Blocks {
			g[i].Blocks[k] = stats.Block{Control: stats.Dither(b.Control, simulate.Frame, uint64(i)), Treatment: stats.Dither(b.Treatment, simulate.Frame, uint64(9+k))}
		}
		g[i].Step = 1e-9
	}
	want, err := stats.CompareTogether(g, stats.Plan{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	other := slices.Clone(g)
	slices.Reverse(other)
	for i := range other {
		var blocks []stats.Block
		for _, b := range other[i].Blocks {
			scale := func(values []float64) (out []float64) {
				for _, v := range values {
					out = append(out, v*math.Pow(10, float64(i)))
				}
				return out
			}
			blocks = append(blocks, stats.Block{Control: scale(b.Control), Treatment: scale(b.Treatment)})
		}
		other[i].Blocks = blocks
	}
	got, err := stats.CompareTogether(other, stats.Plan{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.Shift, got.Shift, cmpopts.EquateApprox(1e-6, 1e-6)); d != "" || math.Abs(want.Test.P-got.Test.P) > 1e-9 {
		t.Errorf("p %v and %v, shift:\n%s", want.Test.P, got.Test.P, d)
	}
	if _, err := stats.CompareTogether(append(g, stats.Group{Blocks: []stats.Block{{Control: []float64{0, 0}, Treatment: []float64{1, 2}}}}), stats.Plan{}); !errors.Is(err, stats.ErrBase) {
		t.Errorf("a group whose control is 0: %v; want ErrBase", err)
	}
	if _, err := stats.CompareTogether([]stats.Group{{Blocks: []stats.Block{{Control: []float64{math.NaN()}, Treatment: []float64{1}}}}}, stats.Plan{}); err == nil {
		t.Error("a group without pairs of numbers was compared")
	}
}

// TestTogetherHolds: of simulated experiments on four pages, 95 % of the intervals hold the common change, no more than
// 5 % without one find one, and a change that one page alone would show in few experiments is found in most. Shares are
// within 3.3 standard deviations.
func TestTogetherHolds(t *testing.T) {
	const experiments, pages, pairs, change = 120, 4, 6, 4.0
	r := rand.New(rand.NewPCG(9, 9))
	covered, alarms, found, alone := 0, 0, 0, 0
	for range experiments {
		none, err := stats.CompareTogether(groups(r, pages, pairs, 0, 0), stats.Plan{Seed: r.Uint64()})
		if err != nil {
			t.Fatal(err)
		}
		g := groups(r, pages, pairs, pages, change)
		some, err := stats.CompareTogether(g, stats.Plan{Seed: r.Uint64()})
		if err != nil {
			t.Fatal(err)
		}
		one, err := stats.Compare(g[2].Blocks, stats.Plan{Seed: 1, Step: g[2].Step})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []stats.Comparison{none, some} {
			if excluded := c.Shift.Low > 0 || c.Shift.High < 0; excluded != (c.Test.P <= 0.05) {
				t.Fatalf("p = %v, but the interval is %+v", c.Test.P, c.Shift)
			}
		}
		count := func(n *int, is bool) {
			if is {
				*n++
			}
		}
		count(&alarms, none.Test.P <= 0.05)
		count(&covered, some.Shift.Low <= change && change <= some.Shift.High)
		count(&found, some.Test.P <= 0.05)
		count(&alone, one.Test.P <= 0.05)
	}
	band := 3.3 * math.Sqrt(0.05*0.95*experiments)
	if float64(alarms) > 0.05*experiments+band || float64(experiments-covered) > 0.05*experiments+band {
		t.Errorf("%d alarms without a change, %d intervals hold it, of %d", alarms, covered, experiments)
	}
	if found < 2*alone || found < experiments/2 {
		t.Errorf("a change of %v %% was found %d times together and %d times on one page, of %d", change, found, alone, experiments)
	}
	t.Logf("of %d: %d alarms, %d covered, %d found together, %d alone", experiments, alarms, covered, found, alone)
}

// closed is the closed test of weighted Bonferroni tests, by going through all intersections: an independent
// way to what WeightedHolm computes.
func closed(p, weights []float64) []float64 {
	out := make([]float64, len(p))
	for set := 1; set < 1<<len(p); set++ {
		sum, least := 0.0, math.Inf(1)
		for i := range p {
			if set>>i&1 == 1 {
				sum += weights[i]
			}
		}
		for i := range p {
			if set>>i&1 == 1 {
				least = min(least, p[i]*sum/weights[i])
			}
		}
		for i := range p {
			if set>>i&1 == 1 {
				out[i] = max(out[i], min(least, 1))
			}
		}
	}
	return out
}

// WeightedHolm is the closed test, and with equal weights Holm's correction.
func TestWeightedHolm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 8).Draw(t, "p")
		weights, equal := make([]float64, len(p)), make([]float64, len(p))
		for i := range weights {
			weights[i], equal[i] = rapid.Float64Range(0.01, 1).Draw(t, "weight"), 0.3
		}
		approx := cmpopts.EquateApprox(1e-9, 1e-9)
		if d := cmp.Diff(closed(p, weights), stats.WeightedHolm(p, weights), approx); d != "" {
			t.Fatalf("p %v, weights %v (-closed test +got):\n%s", p, weights, d)
		}
		if d := cmp.Diff(stats.Holm(p), stats.WeightedHolm(p, equal), approx); d != "" {
			t.Fatalf("p %v with equal weights (-Holm +got):\n%s", p, d)
		}
	})
	got := stats.WeightedHolm([]float64{0.02, math.NaN(), 0.01}, []float64{0.5, 0.25, 0.5})
	if d := cmp.Diff([]float64{0.02, math.NaN(), 0.02}, got, cmpopts.EquateNaNs()); d != "" {
		t.Error("NaN does not count:", d)
	}
}

// Weights decide between groups that go opposite ways; equal ones, whatever they are, change nothing, and the test
// keeps its level with others.
func TestTogetherWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	g := groups(r, 2, 10, 1, 30)
	g[1].Blocks = groups(r, 2, 10, 2, -30)[1].Blocks
	with := func(a, b int) stats.Comparison {
		t.Helper()
		weighted := slices.Clone(g)
		weighted[0].Weight, weighted[1].Weight = a, b
		c, err := stats.CompareTogether(weighted, stats.Plan{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if d := cmp.Diff(with(0, 0), with(70, 70)); d != "" {
		t.Errorf("equal weights change the comparison (-without +with):\n%s", d)
	}
	if first, second := with(20, 1), with(1, 20); !(first.Shift.Low > 0 && second.Shift.High < 0) {
		t.Errorf("the group that weighs 20 times as much has no say: %+v, %+v", first.Shift, second.Shift)
	}
	for _, wrong := range []int{-1, stats.MaxWeight + 1} {
		bad := slices.Clone(g)
		bad[1].Weight = wrong
		if _, err := stats.CompareTogether(bad, stats.Plan{}); err == nil {
			t.Errorf("a weight of %d is taken", wrong)
		}
	}
	const experiments = 150
	alarms := 0
	for range experiments {
		flat := groups(r, 3, 6, 0, 0)
		for i := range flat {
			flat[i].Weight = []int{1, 3, 10}[i]
		}
		c, err := stats.CompareTogether(flat, stats.Plan{Seed: r.Uint64()})
		if err != nil {
			t.Fatal(err)
		}
		if c.Test.P <= 0.05 {
			alarms++
		}
	}
	if alarms > 16 { // 7.5 are expected, and 16 are 3.2 standard deviations more
		t.Errorf("%d of %d experiments without a difference find one", alarms, experiments)
	}
}
