package stats

import (
	"fmt"
	"math"
	"slices"
)

// ShiftInBlocks estimates how much larger the treatment is than the control where
// trials were run in blocks, and tests for a difference, both with AlignedRank's
// statistic: the estimate is the shift that, taken off the treatment, leaves the
// statistic at its mean (Hodges and Lehmann 1963), the interval holds the shifts that
// the test does not reject at 1 − confidence. So the interval excludes 0 if and only if
// P is at most 1 − confidence, and it covers a constant shift with at least the
// confidence, whatever drifts or alternates on the machine, because the order of the
// arms was drawn by lot. Beyond the shift there is no assumption on the values.
//
// Confidence is what the test reached at the bounds, a little more than what was
// asked for, as P takes steps. If the blocks are too few for the confidence, the
// interval is the one of the highest that they can have.
func ShiftInBlocks(all []Block, confidence float64, permutations int, seed uint64) (Interval, Test, error) {
	if !(confidence > 0 && confidence < 1) {
		return Interval{}, Test{}, fmt.Errorf("shift in blocks: confidence %v: it must be between 0 and 1", confidence)
	}
	zero, err := AlignedRank(all, permutations, seed)
	if err != nil {
		return Interval{}, Test{}, fmt.Errorf("shift in blocks: %w", err)
	}
	span := spread(all)
	if math.IsInf(16*span, 0) {
		return Interval{}, Test{}, fmt.Errorf("shift in blocks: %w: values %v apart", ErrPairs, span)
	}
	i := inversion{blocks: all, permutations: permutations, seed: seed, alpha: 1 - confidence, span: span}
	if span == 0 {
		return Interval{Confidence: 1 - i.at(1).p}, zero, nil
	}
	out := Interval{Value: i.centre()}
	// At so large a shift no value of one arm lies between those of the other.
	far := 8 * span
	least := max(i.at(-far).p, i.at(far).p)
	if least > i.alpha {
		i.alpha = least
		control, _ := paired(all)
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d pairs are too few for %g %% confidence: the interval has %.3g %%", len(control), 100*confidence, 100*(1-least)))
	}
	// What the test says of 0 decides on which side of the bounds 0 lies.
	in, left, right := [2]float64{out.Value, out.Value}, -far, far
	switch held := zero.P > i.alpha; {
	case held:
		in[0], in[1] = min(out.Value, 0), max(out.Value, 0)
	case out.Value > 0:
		left = 0
	case out.Value < 0:
		right = 0
	}
	var beyond [2]float64
	out.Low, beyond[0] = i.bound(i.at(in[0]), i.at(left))
	out.High, beyond[1] = i.bound(i.at(in[1]), i.at(right))
	out.Confidence = 1 - max(beyond[0], beyond[1])
	return out, zero, nil
}

// inversion looks for the shifts that the test does not reject.
type inversion struct {
	blocks       []Block
	permutations int
	seed         uint64
	alpha, span  float64
}

// tried is a shift with the ranks that it leaves, and their p.
type tried struct {
	shift float64
	ranks []rankBlock
	p     float64
}

func (i *inversion) at(shift float64) tried {
	ranks := alignedRanks(i.blocks, shift)
	return tried{shift, ranks, testRanks(ranks, i.permutations, i.seed).P}
}

// z is the standardised statistic, which falls where the shift grows.
func (i *inversion) z(shift float64) float64 {
	statistic, mean, variance := score(alignedRanks(i.blocks, shift))
	if variance == 0 {
		return 0
	}
	return (statistic - mean) / math.Sqrt(variance)
}

// centre is the shift in the middle of those with which the statistic is at its mean.
func (i *inversion) centre() float64 {
	const rounding = 1e-9
	above := bisect(-8*i.span, 8*i.span, func(shift float64) bool { return i.z(shift) > rounding })
	from := bisect(-8*i.span, 8*i.span, func(shift float64) bool { return i.z(shift) >= -rounding })
	return (above + from) / 2
}

// bound finds the last shift that is not rejected on the way from in, which is not,
// to out, which is, and the p-value beyond it. The normal approximation says where to
// look; P itself decides, and is computed once for each order of the values.
func (i *inversion) bound(in, out tried) (shift, beyond float64) {
	if in.p <= i.alpha || out.p > i.alpha {
		return in.shift, out.p
	}
	try := func(shift float64) (held bool) {
		t := tried{shift: shift, ranks: alignedRanks(i.blocks, shift)}
		switch {
		case slices.EqualFunc(t.ranks, in.ranks, rankBlock.equal):
			t.p = in.p
		case slices.EqualFunc(t.ranks, out.ranks, rankBlock.equal):
			t.p = out.p
		default:
			t.p = testRanks(t.ranks, i.permutations, i.seed).P
		}
		if held = t.p > i.alpha; held {
			in = t
		} else {
			out = t
		}
		return held
	}
	cut := normalQuantile(1 - i.alpha/2)
	probe := bisect(in.shift, out.shift, func(shift float64) bool { return math.Abs(i.z(shift)) < cut })
	step := (probe - in.shift) / 64
	held, rejected := false, false
	for step != 0 && !(held && rejected) && (probe-in.shift)*(out.shift-probe) > 0 {
		if try(probe) {
			held, probe = true, in.shift+step
		} else {
			rejected, probe = true, out.shift-step
		}
		step *= 2
	}
	for math.Abs(out.shift-in.shift) > precision*i.span {
		try((in.shift + out.shift) / 2)
	}
	return in.shift, out.p
}

// precision of estimates and bounds, relative to the spread of the values.
const precision = 1e-12

// bisect finds where between from and to holds becomes false.
func bisect(from, to float64, holds func(float64) bool) float64 {
	for least := precision * math.Abs(to-from); math.Abs(to-from) > least; {
		if middle := (from + to) / 2; holds(middle) {
			from = middle
		} else {
			to = middle
		}
	}
	return (from + to) / 2
}

func (b rankBlock) equal(other rankBlock) bool {
	return b.treatment == other.treatment && slices.Equal(b.ranks, other.ranks)
}

// spread is the distance from the least to the greatest of all values.
func spread(all []Block) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, b := range all {
		for _, v := range slices.Concat(b.Control, b.Treatment) {
			low, high = min(low, v), max(high, v)
		}
	}
	return high - low
}
