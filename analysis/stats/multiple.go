package stats

import (
	"cmp"
	"math"
	"slices"
)

// Holm adjusts p-values so that the chance of any false alarm among them stays
// below the level that the adjusted ones are compared with (Holm 1979). For
// guards: metrics of which none may get worse. NaN stays NaN and does not count.
func Holm(p []float64) []float64 {
	return adjust(p, func(sorted []float64) {
		m, most := float64(len(sorted)), 0.0
		for i, v := range sorted {
			most = max(most, (m-float64(i))*v)
			sorted[i] = min(most, 1)
		}
	})
}

// WeightedHolm is Holm's correction of hypotheses that have shares of the level (Holm 1979, §4): the
// smallest p ÷ weight counts first, and what is rejected leaves its share to the others. Weights are
// positive; only their ratios count. With equal ones it is Holm.
func WeightedHolm(p, weights []float64) []float64 {
	ratios, left := make([]float64, len(p)), 0.0
	for i := range p {
		ratios[i] = p[i] / weights[i]
		if !math.IsNaN(p[i]) {
			left += weights[i]
		}
	}
	out := slices.Repeat([]float64{math.NaN()}, len(p))
	most := 0.0
	for _, i := range ascending(ratios) {
		most = max(most, min(ratios[i]*left, 1))
		out[i] = most
		left -= weights[i]
	}
	return out
}

// BenjaminiHochberg adjusts p-values so that the expected share of false alarms
// among those below a level stays below it (Benjamini and Hochberg 1995). For
// explorations: trace categories, many pages. NaN stays NaN and does not count.
func BenjaminiHochberg(p []float64) []float64 {
	return adjust(p, func(sorted []float64) {
		m, least := float64(len(sorted)), 1.0
		for i := len(sorted) - 1; i >= 0; i-- {
			least = min(least, m/float64(i+1)*sorted[i])
			sorted[i] = least
		}
	})
}

// adjust applies f to the sorted p-values and puts the results back in order.
func adjust(p []float64, f func(sorted []float64)) []float64 {
	order := ascending(p)
	out := slices.Repeat([]float64{math.NaN()}, len(p))
	sorted := make([]float64, len(order))
	for k, i := range order {
		sorted[k] = p[i]
	}
	f(sorted)
	for k, i := range order {
		out[i] = sorted[k]
	}
	return out
}

// ascending lists the indices of values from the least on, without those of NaN.
func ascending(values []float64) (order []int) {
	for i, v := range values {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	return order
}
