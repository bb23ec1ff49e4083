package stats

import (
	"fmt"
	"math"
)

// OBrienFleming returns the bounds for |z| at looks after the given numbers of
// pairs, ascending, the last one the planned total: C·√(last/look), C such that a
// true "no difference" crosses any of them with probability alpha (O'Brien
// and Fleming 1979, for unequal steps). Early looks ask for much, the last for
// hardly more than a test without looks: four even looks at 5 % have 4.05 2.86 2.34 2.02.
//
// The crossing probability is computed by the recursion of Armitage, McPherson
// and Rowe (1969) on a grid; bounds are good to about 1e−4.
func OBrienFleming(looks []int, alpha float64) ([]float64, error) {
	if len(looks) == 0 || len(looks) > 50 || !(alpha > 0 && alpha < 1) {
		return nil, fmt.Errorf("sequential bounds: %d looks at level %v: 1 … 50 looks and a level between 0 and 1 are possible",
			len(looks), alpha)
	}
	times := make([]float64, len(looks))
	for i, n := range looks {
		if n < 1 || i > 0 && n <= looks[i-1] {
			return nil, fmt.Errorf("sequential bounds: looks %v must be positive and ascending", looks)
		}
		times[i] = float64(n) / float64(looks[len(looks)-1])
	}
	low, high := 0.5, 20.0
	for range 60 {
		c := (low + high) / 2
		if crossing(times, c) > alpha {
			low = c
		} else {
			high = c
		}
	}
	bounds := make([]float64, len(times))
	for i, t := range times {
		bounds[i] = high / math.Sqrt(t)
	}
	return bounds, nil
}

// crossing is the probability that a Brownian motion leaves [−c, c] at one of
// the times: O'Brien and Fleming's bounds are constant on its scale.
func crossing(times []float64, c float64) float64 {
	const steps = 400 // Simpson's rule over [−c, c]
	h := 2 * c / steps
	at := func(i int) float64 { return -c + float64(float64(i)*h) }
	weight := func(i int) float64 {
		switch {
		case i == 0 || i == steps:
			return h / 3
		case i%2 == 1:
			return 4 * h / 3
		default:
			return 2 * h / 3
		}
	}
	density := func(x, variance float64) float64 {
		return math.Exp(-x*x/(2*variance)) / math.Sqrt(2*math.Pi*variance)
	}
	// inside[i] is the density of being at grid point i, never having left.
	inside := make([]float64, steps+1)
	left := 2 * normalCDF(-c/math.Sqrt(times[0]))
	for i := range inside {
		inside[i] = density(at(i), times[0])
	}
	for k := 1; k < len(times); k++ {
		step := times[k] - times[k-1]
		kernel := make([]float64, 2*steps+1)
		for d := range kernel {
			kernel[d] = density(float64(float64(d-steps)*h), step)
		}
		next := make([]float64, steps+1)
		for i, p := range inside {
			mass := p * weight(i)
			left += float64(mass * (normalCDF((-c-at(i))/math.Sqrt(step)) + normalCDF((at(i)-c)/math.Sqrt(step))))
			if k+1 < len(times) {
				for j := range next {
					next[j] += float64(mass * kernel[j-i+steps])
				}
			}
		}
		inside = next
	}
	return left
}
