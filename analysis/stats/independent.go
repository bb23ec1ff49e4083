package stats

import (
	"fmt"
	"math"
	"slices"
)

// maxDifferences bounds the differences of all values of one sample to all of the other.
const maxDifferences = 4 << 20

// Independent compares two samples that were taken at different times, and so
// share no block: with Wilcoxon's rank sum test, and the Hodges–Lehmann estimate
// of two samples.
//
// A difference of no more than margin, in the metric's unit and in either direction,
// counts as no difference: P is that of the test of the difference within the margin that
// fits the values best (an interval null hypothesis; Wellek, Testing Statistical Hypotheses of
// Equivalence and Noninferiority, §2). The margin does not change the shift that is
// returned. The margin stands for what changed around the device between the two samples, of which
// the values themselves say nothing.
func Independent(control, treatment []float64, margin float64, p Plan) (Comparison, error) {
	if !(margin >= 0) || math.IsInf(margin, 1) {
		return Comparison{}, fmt.Errorf("independent samples: margin %v: a number of at least 0", margin)
	}
	p = p.filled()
	all := []Block{{control, treatment}}
	if err := checkBlocks(all, 2); err != nil {
		return Comparison{}, fmt.Errorf("independent samples: %w", err)
	}
	c := p.describe(all)
	c.Pairs = min(len(control), len(treatment))
	a, b := control, treatment
	if p.Step > 0 {
		a, b = ditherByValue(control, p.Step, p.Seed), ditherByValue(treatment, p.Step, p.Seed)
	}
	var err error
	if c.Shift, err = ShiftOfTwo(a, b, p.Confidence); err != nil {
		return Comparison{}, err
	}
	allowed := slices.Clone(control)
	for i := range allowed {
		allowed[i] += min(max(c.Shift.Value, -margin), margin)
	}
	if c.Test, err = AlignedRank([]Block{{allowed, treatment}}, p.Permutations, p.Seed); err != nil {
		return Comparison{}, err
	}
	if math.Abs(c.Shift.Value) <= margin {
		c.Test.P = 1 // the values fit a difference that does not count
	}
	p.conclude(&c)
	c.MinimalEffect += margin
	return c, nil
}

// ShiftOfTwo estimates how much larger the treatment is than the control where
// their values are no pairs: the median of all differences tⱼ−cᵢ, with the
// interval that inverts Wilcoxon's rank sum test (Hollander, Wolfe and Chicken,
// Nonparametric Statistical Methods, §4.2–4.3). The test's distribution is
// exact up to 100 values and normal beyond.
func ShiftOfTwo(control, treatment []float64, confidence float64) (Interval, error) {
	m, n := len(control), len(treatment)
	if !(confidence > 0 && confidence < 1) || m < 1 || n < 1 || m > maxDifferences/n {
		return Interval{}, fmt.Errorf("shift of two samples: confidence %v of %d and %d values: it must be between 0 and 1, of at most "+
			"%d differences", confidence, m, n, maxDifferences)
	}
	differences := make([]float64, 0, m*n)
	for _, t := range treatment {
		for _, c := range control {
			d := t - c
			if math.IsNaN(d) || math.IsInf(d, 0) {
				return Interval{}, fmt.Errorf("shift of two samples: %w: %v and %v", ErrPairs, c, t)
			}
			differences = append(differences, d)
		}
	}
	slices.Sort(differences)
	out := Interval{Value: Quantile(differences, 0.5)}
	k, reached := rankSumCut(m, n, confidence)
	if k == 0 {
		k = 1
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d and %d values are too few for %g %% confidence: the interval holds all "+
			"differences, with %.3g %%", m, n, 100*confidence, 100*reached))
	}
	out.Low, out.High, out.Confidence = differences[k-1], differences[len(differences)-k], reached
	return out, nil
}

// rankSumCut returns the largest k for which [D(k), D(mn+1−k)] has at least the
// confidence 1 − 2·P(U ≤ k−1), and that confidence; k is 0, with what k = 1
// would have, if there is none.
func rankSumCut(m, n int, confidence float64) (k int, reached float64) {
	if m+n > 100 {
		product := float64(m) * float64(n)
		k = int(math.Floor(product/2 - normalQuantile((1+confidence)/2)*math.Sqrt(product*float64(m+n+1)/12)))
		return max(k, 1), confidence
	}
	ways := mannWhitney(m, n)
	total := 1.0
	for i := 1; i <= min(m, n); i++ {
		total *= float64(max(m, n)+i) / float64(i)
	}
	tail := 0.0
	for k = 0; 2*(k+1) <= m*n; k++ {
		tail += ways[k] / total // now P(U ≤ k)
		if 1-2*tail < confidence {
			break
		}
		reached = 1 - 2*tail
	}
	if k == 0 {
		return 0, max(1-2*ways[0]/total, 0)
	}
	return k, reached
}

// mannWhitney counts the orders of m and n values for each U of 0 … mn/2: the
// coefficients of the Gaussian binomial ∏ (1−q^(n+i)) ÷ (1−q^i), i = 1 … m.
func mannWhitney(m, n int) []float64 {
	ways := make([]float64, m*n/2+1)
	ways[0] = 1
	for i := 1; i <= m; i++ {
		for u := len(ways) - 1; u >= n+i; u-- {
			ways[u] -= ways[u-n-i]
		}
		for u := i; u < len(ways); u++ {
			ways[u] += ways[u-i]
		}
	}
	return ways
}
