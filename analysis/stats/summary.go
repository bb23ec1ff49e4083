// Package stats holds the statistics of trials. Numbers flow in, numbers with
// their warnings flow out; it is pure, and where chance is needed the seed is
// an argument.
//
// Nothing here assumes a distribution: load times are skewed, quantised to
// frames and have outliers. Warnings are data beside the result, as in
// golang.org/x/perf/benchmath, and never errors.
package stats

import (
	"fmt"
	"math"
	"slices"

	"eidetic/internal/lab"
)

// Summarise describes values, whose order does not matter: median, quartiles
// (linear interpolation, R's type 7), extremes, and the order-statistic
// interval that covers the median at 95 % or more. The caller fills in
// Metric, Unit and Arm. NaN and infinities are left out with a warning.
func Summarise(values []float64) lab.Summary {
	xs := make([]float64, 0, len(values))
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			xs = append(xs, v)
		}
	}
	var s lab.Summary
	if n := len(values) - len(xs); n > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d of %d values are not finite numbers and were left out", n, len(values)))
	}
	s.N = len(xs)
	if s.N == 0 {
		s.Warnings = append(s.Warnings, "no values")
		return s
	}
	slices.Sort(xs)
	s.Min, s.Max = xs[0], xs[s.N-1]
	s.Median, s.Q1, s.Q3 = Quantile(xs, 0.5), Quantile(xs, 0.25), Quantile(xs, 0.75)
	lo, hi, ok := medianRanks(s.N, 0.95)
	s.Low, s.High = xs[lo], xs[hi]
	if !ok {
		s.Warnings = append(s.Warnings, fmt.Sprintf("n = %d is too small for a 95 %% interval of the median: make at least 6 trials. "+
			"Its bounds are the smallest and the largest value", s.N))
	}
	if s.N > 1 && s.Min == s.Max {
		s.Warnings = append(s.Warnings, "all values are equal")
	}
	return s
}

// Quantile returns the p-quantile, 0 ≤ p ≤ 1, of sorted values by linear
// interpolation between order statistics (R's type 7, NumPy's default). It is
// NaN for no values.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	h := p * float64(len(sorted)-1)
	i := int(math.Floor(h))
	if i >= len(sorted)-1 {
		return sorted[len(sorted)-1]
	}
	a, b := sorted[i], sorted[i+1]
	return a + float64((h-float64(i))*(b-a))
}

// Median returns the median of values in any order, NaN for none.
func Median(values []float64) float64 { return Quantile(slices.Sorted(slices.Values(values)), 0.5) }

// medianRanks returns the 0-based ranks of the narrowest symmetric interval of
// order statistics that covers the median with at least the confidence. The
// coverage of [x(k), x(n+1−k)] is 1 − 2·P(B ≤ k−1) with B ~ Binomial(n, ½)
// (David and Nagaraja, Order Statistics, §7.1). It is false if n is too small
// even for the extremes.
func medianRanks(n int, confidence float64) (lo, hi int, ok bool) {
	// Logarithms keep the binomial terms finite for any n.
	lgN, _ := math.Lgamma(float64(n + 1))
	tail, k := 0.0, 0 // tail = P(B ≤ k−1)
	for 2*(k+1) <= n {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		tail += math.Exp(lgN - a - b - float64(n)*math.Ln2)
		if 1-2*tail < confidence {
			break
		}
		k++
	}
	if k == 0 {
		return 0, n - 1, false
	}
	return k - 1, n - k, true
}
