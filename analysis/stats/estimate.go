package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// Interval is an estimate with the bounds of a confidence interval.
type Interval struct {
	Value      float64  `json:"value"`
	Low        float64  `json:"low"`
	High       float64  `json:"high"`
	Confidence float64  `json:"confidence"` // that the method reaches for this n, at least what was asked for
	Warnings   []string `json:"warnings,omitempty"`
}

// CliffsDelta is P(treatment > control) − P(treatment < control) over all
// pairs of values, −1 … 1 (Cliff 1993).
func CliffsDelta(control, treatment []float64) float64 {
	if len(control) == 0 || len(treatment) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(control))
	sum := 0
	for _, t := range treatment {
		below := sort.SearchFloat64s(sorted, t)
		above := len(sorted) - sort.Search(len(sorted), func(i int) bool { return sorted[i] > t })
		sum += below - above
	}
	return float64(sum) / float64(len(control)*len(treatment))
}

// DeltaSize puts |δ| into words, with the limits of Romano and others (2006):
// negligible < 0.147 ≤ small < 0.33 ≤ medium < 0.474 ≤ large.
func DeltaSize(delta float64) string {
	switch d := math.Abs(delta); {
	case d < 0.147:
		return "negligible"
	case d < 0.33:
		return "small"
	case d < 0.474:
		return "medium"
	default:
		return "large"
	}
}

// MinimalEffect is the smallest true difference that an experiment with a 95 %
// interval of the given half-width would have found with the power (0.8: four
// times of five): half-width · (z₀.₉₇₅ + z_power) ÷ z₀.₉₇₅, 1.43 half-widths at 0.8.
// A family of metrics that share the level of 5 % needs more: each is held to its
// share of it, as Bonferroni's and the first step of Holm's correction do. It belongs
// beside every "no change".
func MinimalEffect(halfWidth, power float64, family int) float64 {
	level := 0.05 / float64(max(family, 1))
	return halfWidth * (normalQuantile(1-level/2) + normalQuantile(power)) / normalQuantile(0.975)
}

// Dither spreads values that are quantised to frames: each gets a seeded
// uniform amount of −step/2 … step/2, so that ties at frame times do not hide
// what is between them. Values are not changed in place.
func Dither(values []float64, step float64, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 0x646974686572)) // "dither"
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v + float64(step*(r.Float64()-0.5))
	}
	return out
}

// ditherByValue is Dither with amounts that are drawn for each value, and for its place among those that equal it,
// instead of for its place in the sample: equal samples stay equal, on whichever side of a comparison they stand.
func ditherByValue(values []float64, step float64, seed uint64) []float64 {
	equals := map[float64]*rand.Rand{}
	out := make([]float64, len(values))
	for i, v := range values {
		r := equals[v]
		if r == nil {
			r = rand.New(rand.NewPCG(seed, math.Float64bits(v)))
			equals[v] = r
		}
		out[i] = v + float64(step*(r.Float64()-0.5))
	}
	return out
}

// normalQuantile is the inverse of the standard normal distribution.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// normalCDF is the standard normal distribution.
func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
