package main

import (
	"math"
	"slices"

	moremath "github.com/aclements/go-moremath/stats"
)

// otava is the method of Apache Otava, formerly Hunter, written anew from its paper (Fleming, Kołaczkowski, Kumar, Das,
// McCarthy, Pattabhi and Ingo 2023: Hunter, Using Change Point Detection to Hunt for Performance Regressions, §4):
// E-divisive in windows that overlap by half, with Student's t-test in place of the permutations and ten times the
// level; then, of all points that were found, the weakest is taken away until each is significant by
// the t-test between its neighbours.
func otava(series []float64) (points []int) {
	const window, level = 50, 0.001
	for start := 0; start < len(series); {
		end := min(start+window, len(series))
		last := 0
		for _, at := range divide(series[start:end], 10*level) {
			if at += start; !slices.Contains(points, at) {
				points = append(points, at)
			}
			last = max(last, at)
		}
		start = max(last, start+window/2)
	}
	slices.Sort(points)
	for len(points) > 0 {
		worst, most := 0, -1.0
		for i, at := range points {
			from, to := 0, len(series)
			if i > 0 {
				from = points[i-1]
			}
			if i+1 < len(points) {
				to = points[i+1]
			}
			if p := student(series[from:at], series[at:to]); p > most {
				worst, most = i, p
			}
		}
		if most < level {
			break
		}
		points = slices.Delete(points, worst, worst+1)
	}
	return points
}

// divide is E-divisive with the t-test.
func divide(series []float64, level float64) (points []int) {
	ends := []int{0, len(series)}
	for {
		best, at := math.Inf(-1), -1
		for i := 1; i < len(ends); i++ {
			segment := series[ends[i-1]:ends[i]]
			for k := 2; k+2 <= len(segment); k++ {
				if q := energy(segment[:k], segment[k:]); q > best {
					best, at = q, ends[i-1]+k
				}
			}
		}
		if at < 0 {
			return points
		}
		k, _ := slices.BinarySearch(ends, at)
		if student(series[ends[k-1]:at], series[at:ends[k]]) > level {
			return points
		}
		points, ends = append(points, at), slices.Insert(ends, k, at)
	}
}

// energy is E-divisive's Q.
func energy(a, b []float64) float64 {
	sum := func(x, y []float64) (s float64) {
		for _, v := range x {
			for _, w := range y {
				s += math.Abs(v - w)
			}
		}
		return s
	}
	m, n := float64(len(a)), float64(len(b))
	return m * n / (m + n) * (2*sum(a, b)/(m*n) - sum(a, a)/(m*(m-1)) - sum(b, b)/(n*(n-1)))
}

// student is the two-sided p of Student's t-test.
func student(a, b []float64) float64 {
	t, err := moremath.TwoSampleTTest(moremath.Sample{Xs: a}, moremath.Sample{Xs: b}, moremath.LocationDiffers)
	if err != nil { // too few values, or all equal
		return 1
	}
	return t.P
}
