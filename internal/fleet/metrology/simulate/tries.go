package simulate

import (
	"math"
	"math/rand/v2"

	"eidetic/analysis/stats"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/metrology"
	"eidetic/internal/metric"
)

// Steady are boxes of which nothing changes, one for each way in which noise may be unkind.
func Steady() []Box {
	return []Box{
		{Name: "normal", Trials: 8, Within: 0.03, Frame: 16.7, Thrown: 0.05},
		{Name: "heavy tails", Trials: 8, Within: 0.03, Between: 0.01, Tails: 3, Thrown: 0.05},
		{Name: "correlated 0.3", Trials: 8, Within: 0.012, Between: 0.011, Correlation: 0.375, Thrown: 0.05},
		{Name: "uneven", Trials: 8, Within: 0.02, Between: 0.01, Uneven: true, Thrown: 0.1},
		{Name: "all of it", Trials: 8, Within: 0.015, Between: 0.012, Correlation: 0.375, Tails: 5, Uneven: true, Thrown: 0.1, Frame: 16.7},
	}
}

// OfNoise is a box whose readings have a standard deviation of about so much, two thirds of its square from the trials.
func OfNoise(deviation float64) Box {
	const trials, ofTrials = 8, 2.0 / 3
	within := deviation * math.Sqrt(ofTrials*trials/(math.Pi/2))
	return Box{Trials: trials, Within: within, Between: deviation * math.Sqrt(1-ofTrials), Correlation: 0.3, Tails: 5, Thrown: 0.05}
}

// Called is the index of the first of n readings after which a box is called drifting or bad, and what is said to have
// changed; n if it is not.
func Called(l metrology.Limits, readings []metrology.Reading) (at int, of string) {
	w := metrology.NewWatchWith(l)
	for i, r := range readings {
		w.Add(r)
		if j := w.Judgement(); j.Health == fleet.HealthDrifting || j.Health == fleet.HealthBad {
			return i, j.Of
		}
	}
	return len(readings), ""
}

// False counts the boxes that are called although nothing changed, of so many that are each read so often after their
// baselines.
func False(l metrology.Limits, b Box, boxes, readings int, r *rand.Rand) (called int) {
	n := l.Baseline + readings
	for range boxes {
		if at, _ := Called(l, b.Readings(r, n, Change{})); at < n {
			called++
		}
	}
	return called
}

// Delays are the readings that it took to call a change, of boxes that were not called before; MaxInt where none of
// within readings called it.
func Delays(l metrology.Limits, b Box, boxes, within int, change Change, r *rand.Rand) (delays []int) {
	for range boxes {
		n := change.At + within
		switch at, _ := Called(l, b.Readings(r, n, change)); {
		case at < change.At:
		case at == n:
			delays = append(delays, math.MaxInt)
		default:
			delays = append(delays, at-change.At+1)
		}
	}
	return delays
}

// Crossing is a comparison of two boxes of which the second is slower by a factor, and of a page that became slower by
// another one.
type Crossing struct {
	A, B    Box
	Runs    int     // reference runs of each
	Trials  int     // of each compared run
	Factor  float64 // of the box
	Slowed  float64 // of the page
	Margin  float64 // share
	Ignored bool    // take the ratio of the boxes for certain, which is wrong, to show what its uncertainty is worth
}

// Crossed is what came of many.
type Crossed struct {
	Tried, Covered, Different int
	Width                     float64 // mean of the intervals, relative
}

// Try makes so many comparisons of the first guard.
func (c Crossing) Try(times int, r *rand.Rand) (out Crossed, err error) {
	guard := metric.Guards()[0].String()
	for i := range times {
		a, b := c.A.Readings(r, c.Runs, Change{}), c.B.Readings(r, c.Runs, Change{Level: c.Factor})
		ratio, err := metrology.Bias(metrology.Calibrate(a), metrology.Calibrate(b), guard)
		if err != nil {
			return out, err
		}
		scale := stats.Scale{Ratio: ratio.Value, Error: ratio.StandardError, Degrees: max(ratio.Degrees, 1)}
		if c.Ignored {
			scale.Error = 0
		}
		got, err := stats.Across(c.A.run(r, c.Trials, 1), c.B.run(r, c.Trials, c.Factor*c.Slowed), c.Margin,
			stats.Plan{Seed: uint64(i), Permutations: 999, Scale: &scale})
		if err != nil {
			return out, err
		}
		out.Tried++
		if low, high := got.Percent.Low, got.Percent.High; low <= 100*(c.Slowed-1) && 100*(c.Slowed-1) <= high {
			out.Covered++
		}
		if got.Test.P <= 0.05 {
			out.Different++
		}
		out.Width += (got.Percent.High - got.Percent.Low) / float64(times)
	}
	return out, nil
}

// run draws the trials of one run.
func (b Box) run(r *rand.Rand, trials int, level float64) []float64 {
	between := b.Between * b.noise(r)
	values := make([]float64, trials)
	for i := range values {
		values[i] = 750 * level * math.Exp(between+float64(b.Within*b.noise(r)))
	}
	return values
}

// Rate is a share with the 95 % interval of Clopper and Pearson (1934).
type Rate struct{ Share, Low, High float64 }

// RateOf is that of so many of n.
func RateOf(k, n int) Rate {
	tail := func(p float64, from, to int) (sum float64) { // of the binomial distribution
		for i := from; i <= to; i++ {
			lower, _ := math.Lgamma(float64(n + 1))
			a, _ := math.Lgamma(float64(i + 1))
			b, _ := math.Lgamma(float64(n - i + 1))
			sum += math.Exp(lower - a - b + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
		}
		return sum
	}
	solve := func(above func(p float64) bool) float64 {
		low, high := 1e-12, 1-1e-12
		for range 60 {
			if middle := (low + high) / 2; above(middle) {
				high = middle
			} else {
				low = middle
			}
		}
		return low
	}
	out := Rate{Share: float64(k) / float64(n), High: 1}
	if k > 0 {
		out.Low = solve(func(p float64) bool { return 1-tail(p, 0, k-1) >= 0.025 })
	}
	if k < n {
		out.High = solve(func(p float64) bool { return tail(p, 0, k) <= 0.025 })
	}
	return out
}
