package stats

import (
	"fmt"
	"math"
	"slices"
)

// ShiftInBlocks estimates how much larger the treatment is than the control where
// trials were run in blocks, and tests for a difference, both with AlignedRank's
// statistic: the estimate is the shift that, taken off the treatment, leaves the
// statistic at its mean (Hodges and Lehmann 1963), the interval reaches from the least
// to the greatest shift that the test does not reject at 1 − confidence. As the test
// of the true shift is exact, a constant shift lies in it with at least the
// confidence, whatever drifts or alternates on the machine, because the order of the
// arms was drawn by lot. Beyond the shift there is no assumption on the values.
//
// With few or uneven blocks p may rise again further out, so that shifts are rejected
// within the interval. If 0 is one of them, the test's P is raised to that of the
// interval's end beyond 0: P is at most 1 − confidence if and only if the interval
// excludes 0. That makes the test more cautious, never less.
//
// Confidence is what the test reached at the bounds, a little more than what was
// asked for, as P takes steps. If the blocks are too few for the confidence, the
// interval is the one of the highest that they can have.
func ShiftInBlocks(all []Block, confidence float64, permutations int, seed uint64) (Interval, Test, error) {
	return shiftInGroups([][]Block{all}, nil, confidence, permutations, seed)
}

// shiftInGroups is ShiftInBlocks with one shift for several groups of blocks, each of which is
// aligned and ranked by itself, and counts by its weight.
func shiftInGroups(groups [][]Block, weights []float64, confidence float64, permutations int, seed uint64) (Interval, Test, error) {
	return shiftOf(func(float64) [][]Block { return groups }, weights, false, confidence, permutations, seed)
}

// shiftOf is shiftInGroups of values that are adjusted, where they are, as if a shift were the true one. at gives them.
// The test is of those for the shift 0, and each end of the interval of those for that end, so that both invert
// tests whose values do not depend on which arm a trial had.
func shiftOf(
	at func(shift float64) [][]Block, weights []float64, adjusted bool, confidence float64, permutations int, seed uint64,
) (Interval, Test, error) {
	if !(confidence > 0 && confidence < 1) {
		return Interval{}, Test{}, fmt.Errorf("shift in blocks: confidence %v: it must be between 0 and 1", confidence)
	}
	groups := at(0)
	all := slices.Concat(groups...)
	zero, err := alignedRank(groups, weights, permutations, seed)
	if err != nil {
		return Interval{}, Test{}, fmt.Errorf("shift in blocks: %w", err)
	}
	span := spread(all)
	if math.IsInf(16*span, 0) {
		return Interval{}, Test{}, fmt.Errorf("shift in blocks: %w: values %v apart", ErrPairs, span)
	}
	i := inversion{
		groups: groups, weights: weights, blocks: all, permutations: permutations, seed: seed, alpha: settled(1 - confidence), span: span,
	}
	if span == 0 {
		return Interval{Confidence: 1 - i.p(i.ranks(1))}, zero, nil
	}
	out := Interval{Value: i.centre()}
	if adjusted {
		for range fitRounds {
			i.refit(at, out.Value)
			out.Value = i.centre()
		}
		span = i.span
	}
	// At so large a shift no value of one arm lies between those of the other.
	far := 8 * span
	least := max(i.p(i.ranks(-far)), i.p(i.ranks(far)))
	if least > i.alpha {
		i.alpha = least
		control, _ := paired(all)
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d pairs are too few for %g %% confidence: the interval has %.3g %%",
			len(control), 100*confidence, 100*(1-least)))
	}
	low, high := i.bound(out.Value, -far), i.bound(out.Value, far)
	if adjusted {
		low, high = i.refitted(at, low, out.Value, -1), i.refitted(at, high, out.Value, 1)
	}
	out.Low, out.High, out.Confidence = low.shift, high.shift, 1-max(low.beyond, high.beyond)
	switch held := zero.P > i.alpha; {
	case held: // also if it is the very end of an interval, where values tie
		out.Low, out.High = min(out.Low, 0), max(out.High, 0)
	case out.Low <= 0 && out.Value >= 0:
		zero.P = max(zero.P, low.p)
	case out.High >= 0 && out.Value <= 0:
		zero.P = max(zero.P, high.p)
	}
	return out, zero, nil
}

// refit looks at the values as they are if shift is the true one.
func (i *inversion) refit(at func(float64) [][]Block, shift float64) {
	i.groups = at(shift)
	i.blocks = slices.Concat(i.groups...)
	i.span = spread(i.blocks)
}

// refitted looks for an end of the interval again, with the values as they are if that end is the true shift.
func (i *inversion) refitted(at func(float64) [][]Block, e end, centre, sign float64) end {
	again := *i
	for range fitRounds {
		again.refit(at, e.shift)
		next := again.bound(centre, centre+sign*(8*again.span+math.Abs(centre)))
		if math.Abs(next.shift-e.shift) <= 1e-6*i.span {
			return next
		}
		e = next
	}
	return e
}

// inversion looks for the shifts that the test does not reject.
type inversion struct {
	blocks       []Block
	groups       [][]Block // the same, where groups of them are ranked by themselves; nil for one group
	weights      []float64 // of the groups; nil are equal ones
	permutations int
	seed         uint64
	alpha, span  float64
}

func (i *inversion) ranks(shift float64) []rankBlock {
	return rankedGroups(i.ranked(), i.weights, shift)
}

// ranked are the groups of blocks that are ranked by themselves.
func (i *inversion) ranked() [][]Block {
	if i.groups == nil {
		return [][]Block{i.blocks}
	}
	return i.groups
}

func (i *inversion) p(ranks []rankBlock) float64 { return testRanks(ranks, i.permutations, i.seed).P }

// z is the standardised statistic, which falls where the shift grows.
func (i *inversion) z(shift float64) float64 {
	statistic, mean, variance := score(i.ranks(shift))
	if variance == 0 {
		return 0
	}
	return (statistic - mean) / math.Sqrt(variance)
}

// centre is the shift in the middle of those with which the statistic is at its mean. In few and
// uneven blocks the statistic may cross its mean more than once. The search begins at
// bounds that move with the treatment, so that it ends at the same crossing wherever that is.
func (i *inversion) centre() float64 {
	const rounding = 1e-9
	low, high := i.differences()
	above := bisect(low, high, func(shift float64) bool { return i.z(shift) > rounding })
	from := bisect(low, high, func(shift float64) bool { return i.z(shift) >= -rounding })
	return (above + from) / 2
}

// differences bounds the differences between a treatment's and a control's value, with room.
func (i *inversion) differences() (low, high float64) {
	control, treatment := newExtent(), newExtent()
	for _, b := range i.blocks {
		control.add(b.Control)
		treatment.add(b.Treatment)
	}
	room := 1 + (control.high - control.low) + (treatment.high - treatment.low)
	return treatment.low - control.high - room, treatment.high - control.low + room
}

// extent is the smallest and the largest of some values.
type extent struct{ low, high float64 }

func newExtent() extent { return extent{math.Inf(1), math.Inf(-1)} }

func (e *extent) add(values []float64) {
	for _, v := range values {
		e.low, e.high = min(e.low, v), max(e.high, v)
	}
}

// end is an end of the interval.
type end struct {
	shift     float64
	p, beyond float64 // within the interval, and outside of it
}

// fewTrials are so many that p takes large steps, and that all shifts are looked at.
const fewTrials = 40

// bound is the shift furthest from the centre, on the way to far, that is not rejected.
func (i *inversion) bound(centre, far float64) end {
	trials := 0
	for _, b := range i.blocks {
		trials += len(b.Control) + len(b.Treatment)
	}
	if trials <= fewTrials {
		return i.scan(i.cells(far, centre), nil)
	}
	// With many trials p is almost a function of z, and z falls almost steadily: the
	// normal approximation says where to look, P itself decides.
	cut := normalQuantile(1 - i.alpha/2)
	at := func(z float64) float64 {
		return bisect(centre, far, func(shift float64) bool { return math.Abs(i.z(shift)) < z })
	}
	_, _, variance := score(i.ranks(centre))
	for margin := 0.02 + 3/math.Sqrt(variance); ; margin *= 2 {
		outer, inner := far, centre
		if margin < 1 {
			outer, inner = at(cut*(1+margin)), at(cut*(1-margin))
		}
		cells := i.cells(outer, inner)
		last := len(cells) - 1
		if margin < 1 && (last < 0 || cells[0].p(i) > i.alpha || cells[last].p(i) <= i.alpha) {
			continue
		}
		// The first crossing that bisection finds, and what it shows of p beyond z.
		rejected, held := 0, last
		for held-rejected > 1 {
			if middle := (held + rejected) / 2; cells[middle].p(i) > i.alpha {
				held = middle
			} else {
				rejected = middle
			}
		}
		return i.scan(cells[:held+1], cells[held])
	}
}

// scan goes through cells from outside in to the first that is not rejected. With one
// that is known to be held, those whose z is clearly larger are taken for rejected.
func (i *inversion) scan(cells []*cell, known *cell) end {
	for n, c := range cells {
		z, kurtosis := c.moments(i)
		switch {
		case n < len(cells)-1 && math.Pow(z, 4) > kurtosis/i.alpha: // P(|Z| ≥ z) ≤ E Z⁴ ÷ z⁴
			continue
		case known != nil && c != known:
			_, _, variance := score(c.ranks(i))
			if at, _ := known.moments(i); z > at+sameP*i.heaviest()/math.Sqrt(variance) {
				continue
			}
		}
		p := c.p(i)
		if n == len(cells)-1 && p <= i.alpha {
			// Every shift but the centre is rejected: all differences within blocks are equal.
			room := 4 * precision * i.span
			return end{c.inner + math.Copysign(room, c.outer-c.inner), 1, p}
		}
		if p > i.alpha {
			beyond := 0.0
			if n > 0 {
				beyond = min(cells[n-1].p(i), i.alpha)
			}
			return end{c.outer, p, beyond}
		}
	}
	return end{}
}

// sameP is how far the rank sums of shifts of equal P may differ beyond fewTrials: P takes
// steps where the sum reaches another whole number, on either side of its mean.
const sameP = 2.0

// precision of estimates and bounds, relative to the spread of the values.
const precision = 1e-12

// heaviest is the largest weight.
func (i *inversion) heaviest() float64 {
	if i.weights == nil {
		return 1
	}
	return slices.Max(i.weights)
}

// bisect finds where between from and to holds becomes false.
func bisect(from, to float64, holds func(float64) bool) float64 {
	for least := precision * math.Abs(to-from); math.Abs(to-from) > least; {
		middle := (from + to) / 2
		switch {
		case middle == from || middle == to: // far from 0 no number lies between
			return middle
		case holds(middle):
			from = middle
		default:
			to = middle
		}
	}
	return (from + to) / 2
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
