package stats

import (
	"math"
	"slices"
)

// Mode is a hill of a distribution.
type Mode struct {
	At    float64 `json:"at"`    // the value at its top
	Share float64 `json:"share"` // of the values, between the valleys around it
}

// Modes finds the hills of the distribution of values: a Gaussian kernel
// density with Silverman's bandwidth (0.9·min(s, IQR/1.34)·n^−0.2, 1986), but
// not below least (half a frame, where times are quantised), of which a top
// counts where the valleys on both sides go below two thirds of the lower top
// and it holds at least a tenth of the values. Two arms with different numbers
// of modes differ in shape: that is a change of mode, and no shift of a median
// describes it.
func Modes(values []float64, least float64) []Mode {
	if len(values) == 0 {
		return nil
	}
	xs := slices.Sorted(slices.Values(values))
	n := float64(len(xs))
	h := max(bandwidth(xs), least)
	if h <= 0 || xs[0] == xs[len(xs)-1] {
		return []Mode{{At: Quantile(xs, 0.5), Share: 1}}
	}
	const grid = 512
	low, high := xs[0]-float64(3*h), xs[len(xs)-1]+float64(3*h)
	at := func(i int) float64 { return low + (high-low)*float64(i)/(grid-1) }
	density := make([]float64, grid)
	for i := range density {
		for _, x := range xs {
			z := (at(i) - x) / h
			density[i] += math.Exp(-z * z / 2)
		}
	}
	share := func(from, to float64) float64 {
		a, _ := slices.BinarySearch(xs, from)
		b, _ := slices.BinarySearch(xs, to)
		return float64(b-a) / n
	}
	// tops and valleys alternate: valleys[i] lies left of tops[i].
	tops, valleys := []int{}, []int{0}
	for i := 1; i < grid-1; i++ {
		if density[i] > density[i-1] && density[i] >= density[i+1] {
			tops = append(tops, i)
			valleys = append(valleys, i)
		}
		if last := len(valleys) - 1; len(tops) > 0 && density[i] < density[valleys[last]] {
			valleys[last] = i
		}
	}
	valleys[len(valleys)-1] = grid - 1
	// Merge the least of the hills into its neighbour until all of them count.
	for len(tops) > 1 {
		worst, worth := -1, 1.0
		for i := range tops {
			v := min(share(at(valleys[i]), at(valleys[i+1]))/0.1, 1.0)
			for _, side := range []struct{ valley, other int }{{i, i - 1}, {i + 1, i + 1}} {
				if side.other < 0 || side.other >= len(tops) || density[tops[side.other]] < density[tops[i]] {
					continue // the lower of two tops is judged by the valley between them
				}
				if density[valleys[side.valley]] > 2.0/3*density[tops[i]] {
					v = 0
				}
			}
			if v < worth || v < 1 && v == worth && worst >= 0 && density[tops[i]] < density[tops[worst]] {
				worst, worth = i, v
			}
		}
		if worst < 0 {
			break
		}
		// It joins the neighbour beyond the higher valley.
		gone := worst
		if worst == 0 || worst < len(tops)-1 && density[valleys[worst+1]] >= density[valleys[worst]] {
			gone = worst + 1
		}
		tops = slices.Delete(tops, worst, worst+1)
		valleys = slices.Delete(valleys, gone, gone+1)
	}
	modes := make([]Mode, len(tops))
	for i, top := range tops {
		modes[i] = Mode{At: at(top), Share: share(at(valleys[i]), at(valleys[i+1]))}
	}
	return modes
}

// bandwidth is Silverman's rule of thumb; where more than half of the values
// are equal it falls back to the standard deviation.
func bandwidth(sorted []float64) float64 {
	n := float64(len(sorted))
	mean, squares := 0.0, 0.0
	for _, x := range sorted {
		mean += x / n
	}
	for _, x := range sorted {
		squares += float64((x - mean) * (x - mean))
	}
	spread := math.Sqrt(squares / max(n-1, 1))
	if iqr := (Quantile(sorted, 0.75) - Quantile(sorted, 0.25)) / 1.34; iqr > 0 {
		spread = min(spread, iqr)
	}
	return 0.9 * spread * math.Pow(n, -0.2)
}
