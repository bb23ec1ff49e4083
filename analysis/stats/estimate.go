package stats

import (
	"fmt"
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

// maxWalsh bounds the pairs whose n(n+1)/2 averages are kept.
const maxWalsh = 3000

// HodgesLehmann estimates how much larger the treatment is than the control:
// the median of the Walsh averages (dᵢ+dⱼ)/2, i ≤ j, of the paired differences,
// with the interval that inverts Wilcoxon's signed-rank test (Hollander, Wolfe
// and Chicken, Nonparametric Statistical Methods, §3.2–3.3). The test's
// distribution is exact up to 100 pairs and normal beyond.
func HodgesLehmann(control, treatment []float64, confidence float64) (Interval, error) {
	if err := checkPairs(control, treatment, 1); err != nil {
		return Interval{}, fmt.Errorf("Hodges–Lehmann estimate: %w", err)
	}
	if !(confidence > 0 && confidence < 1) || len(control) > maxWalsh {
		return Interval{}, fmt.Errorf("Hodges–Lehmann estimate: confidence %v of %d pairs: it must be between 0 and 1, of at most %d pairs", confidence, len(control), maxWalsh)
	}
	n := len(control)
	walsh := make([]float64, 0, n*(n+1)/2)
	for i := range n {
		for j := i; j < n; j++ {
			walsh = append(walsh, (treatment[i]-control[i]+treatment[j]-control[j])/2)
		}
	}
	slices.Sort(walsh)
	out := Interval{Value: Quantile(walsh, 0.5)}
	k, reached := signedRankCut(n, confidence)
	if k == 0 {
		k = 1
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d pairs are too few for %g %% confidence: the interval holds all differences, with %.3g %%", n, 100*confidence, 100*reached))
	}
	out.Low, out.High, out.Confidence = walsh[k-1], walsh[len(walsh)-k], reached
	return out, nil
}

// signedRankCut returns the largest k for which [W(k), W(M+1−k)], M = n(n+1)/2,
// has at least the confidence 1 − 2·P(T⁺ ≤ k−1), and that confidence; k is 0,
// with what k = 1 would have, if there is none.
func signedRankCut(n int, confidence float64) (k int, reached float64) {
	if n > 100 {
		m := float64(n) * float64(n+1)
		k = int(math.Floor(m/4 - normalQuantile((1+confidence)/2)*math.Sqrt(m*float64(2*n+1)/24)))
		return max(k, 1), confidence
	}
	// counts[t] is the share of the 2ⁿ sign patterns with rank sum t.
	counts := make([]float64, n*(n+1)/2+1)
	counts[0] = 1
	for r := 1; r <= n; r++ {
		for t := len(counts) - 1; t >= 0; t-- {
			counts[t] /= 2
			if t >= r {
				counts[t] += counts[t-r] / 2
			}
		}
	}
	tail := 0.0
	for k = 0; 2*(k+1) <= len(counts)-1; k++ {
		tail += counts[k] // now P(T⁺ ≤ k)
		if 1-2*tail < confidence {
			break
		}
		reached = 1 - 2*tail
	}
	if k == 0 {
		return 0, max(1-2*counts[0], 0)
	}
	return k, reached
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

// normalQuantile is the inverse of the standard normal distribution.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// normalCDF is the standard normal distribution.
func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
