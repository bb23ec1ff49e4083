package stats

import (
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
	var order []int
	out := make([]float64, len(p))
	for i, v := range p {
		out[i] = math.NaN()
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
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
