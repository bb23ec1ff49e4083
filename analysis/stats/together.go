package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Group is the blocks of one of several pages that are compared together, with the step of their
// values as in Plan.
type Group struct {
	Blocks     []Block
	Step       float64
	Covariates []Covariate // as in Plan
	Weight     int         // by how much its trials count, from 1 to MaxWeight; 0 is 1
}

// MaxWeight bounds the weights of groups.
const MaxWeight = 10_000

// ErrBase is returned for groups whose change cannot be told in percent.
var ErrBase = errors.New("the control's median is 0: there is no relative change")

// CompareTogether compares the arms over several groups: by how many percent is the treatment larger
// in all of them? With v in percent of the control's median in its group, the statistic is
//
//	T(δ) = Σ over groups  weight · Σ over the treatment's trials  rank of (v − δ − median of its block) in its group
//
// where each group is aligned and ranked by itself, as AlignedRank does with the blocks of one. Groups with
// equally many trials and one weight so count alike, however large, noisy or far from normal their values are; one
// that lost trials counts less (van Elteren 1960 has the same sum, without the alignment). P is the
// share of reassignments within the blocks of all groups with a T(0) as far from its mean, and so
// is right whatever the machine does. Shift, in percent, is the δ that leaves T at its mean, with the interval
// of the δ that the test does not reject, as in ShiftInBlocks.
//
// If the groups differ in their true changes, P and interval are those of a common change between them:
// a change of few groups among many moves them little. Each group's own comparison tells that.
//
// Delta is the mean of the groups', by their weights. Control is 100.
func CompareTogether(groups []Group, p Plan) (Comparison, error) {
	p = p.filled()
	var c Comparison
	weights, sum, err := weightsOf(groups)
	if err != nil {
		return Comparison{}, err
	}
	scaled := make([][]Block, len(groups))
	for n, g := range groups {
		if err := checkBlocks(g.Blocks, 1); err != nil {
			return Comparison{}, fmt.Errorf("group %d: %w", n+1, err)
		}
		var every Block
		for _, b := range g.Blocks {
			every.Control, every.Treatment = append(every.Control, b.Control...), append(every.Treatment, b.Treatment...)
		}
		base := math.Abs(Median(every.Control))
		if base == 0 {
			return Comparison{}, fmt.Errorf("group %d: %w", n+1, ErrBase)
		}
		step := g.Step
		if step == 0 {
			step = resolution(g.Blocks)
		}
		// Each arm of each group is dithered by numbers of its own.
		scaled[n] = inPercent(ditherBlocks(g.Blocks, step, p.Seed+2*uint64(n)), base)
		c.Delta += CliffsDelta(every.Control, every.Treatment) * weights[n] / sum
		control, _ := paired(g.Blocks)
		c.Pairs += len(control)
	}
	if c.Shift, c.Test, err = shiftInGroups(scaled, weights, p.Confidence, p.Permutations, p.Seed); err != nil {
		return Comparison{}, err
	}
	if at := adjustedGroups(scaled, groups); at != nil {
		a := &Adjustment{Raw: c.Shift, RawTest: c.Test, MinimalEffect: minimalEffect(c.Shift, p.Family)}
		for _, g := range groups {
			for _, v := range g.Covariates {
				if !slices.Contains(a.Names, v.Name) {
					a.Names = append(a.Names, v.Name)
				}
			}
		}
		if c.Shift, c.Test, err = p.adjusted(at, weights); err != nil {
			return Comparison{}, err
		}
		a.explained(slices.Concat(scaled...), slices.Concat(at(c.Shift.Value)...))
		c.Adjustment = a
	}
	c.Control, c.Treatment = 100, 100+c.Shift.Value
	c.DeltaSize = DeltaSize(c.Delta)
	p.conclude(&c)
	return c, nil
}

// weightsOf are the weights of groups without their common divisor, so that equal ones are 1, and their sum.
func weightsOf(groups []Group) (weights []float64, sum float64, err error) {
	common := 0
	for n, g := range groups {
		if g.Weight < 0 || g.Weight > MaxWeight {
			return nil, 0, fmt.Errorf("group %d: weight %d: from 1 to %d", n+1, g.Weight, MaxWeight)
		}
		for a := max(g.Weight, 1); a != 0; { // Euclid
			common, a = a, common%a
		}
	}
	for _, g := range groups {
		w := float64(max(g.Weight, 1) / common)
		weights, sum = append(weights, w), sum+w
	}
	return weights, sum, nil
}

// adjustedGroups takes each group's covariates out of it; nil where no group has any.
func adjustedGroups(scaled [][]Block, groups []Group) func(shift float64) [][]Block {
	regressions, any := make([]*regression, len(groups)), false
	for n, g := range groups {
		regressions[n] = newRegression(scaled[n], g.Covariates)
		any = any || regressions[n] != nil
	}
	if !any {
		return nil
	}
	return func(shift float64) [][]Block {
		out := slices.Clone(scaled)
		for n, r := range regressions {
			if r != nil {
				out[n] = r.at(shift)
			}
		}
		return out
	}
}

// inPercent are the values of blocks in percent of a base.
func inPercent(blocks []Block, base float64) []Block {
	out := make([]Block, len(blocks))
	for i, b := range blocks {
		out[i] = Block{slices.Clone(b.Control), slices.Clone(b.Treatment)}
		for _, values := range [][]float64{out[i].Control, out[i].Treatment} {
			for k := range values {
				values[k] *= 100 / base
			}
		}
	}
	return out
}
