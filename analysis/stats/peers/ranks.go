package peers

import (
	"math"
	"slices"

	moremath "github.com/aclements/go-moremath/stats"

	"eidetic/analysis/stats"
)

// mannWhitney is the two-sided p-value of the Mann-Whitney U test: exact up to 50
// values in each sample, 25 with ties, and normal with the corrections for ties and
// continuity beyond. It is 1 where there is none.
func mannWhitney(control, treatment []float64) float64 {
	r, err := moremath.MannWhitneyUTest(control, treatment, moremath.LocationDiffers)
	if err != nil { // no values, or all of them are equal
		return 1
	}
	return r.P
}

// sitespeedMannWhitney is the p-value of "the treatment is greater", as SciPy's
// mannwhitneyu computes it with method auto and without continuity correction: exact
// if a sample has at most 8 values and nothing is tied, else normal with the
// correction for ties.
func sitespeedMannWhitney(control, treatment []float64) float64 {
	if !varies(control) || !varies(treatment) { // statistical.py: "No variability"
		return 1
	}
	u, deviation, tied := rankSum(control, treatment)
	if min(len(control), len(treatment)) <= 8 && max(len(control), len(treatment)) <= moremath.MannWhitneyExactLimit && !tied {
		r, err := moremath.MannWhitneyUTest(treatment, control, moremath.LocationGreater)
		if err != nil {
			return 1
		}
		return r.P
	}
	return upperTail((u - float64(len(control)*len(treatment))/2) / deviation)
}

// sitespeedWilcoxon is the p-value of "the treatment is greater", as SciPy's
// wilcoxon computes it with zero_method zsplit and without continuity correction:
// exact up to 50 pairs without ties and zeros, else normal with the correction for
// ties. It is 1 for samples that are no pairs.
func sitespeedWilcoxon(control, treatment []float64) float64 {
	if len(control) != len(treatment) || !varies(control) || !varies(treatment) {
		return 1
	}
	n := len(control)
	sizes := make([]float64, n)
	for i := range sizes {
		sizes[i] = math.Abs(treatment[i] - control[i])
	}
	ranks := stats.Ranks(sizes)
	sum, zeros := 0.0, false
	for i, r := range ranks {
		switch {
		case treatment[i] > control[i]:
			sum += r
		case treatment[i] == control[i]:
			sum, zeros = sum+r/2, true
		}
	}
	ties := tieSum(ranks)
	if n <= 50 && !zeros && ties == 0 {
		return signedRankTail(n, int(sum))
	}
	m := float64(n)
	variance := (m*(m+1)*(2*m+1) - ties/2) / 24
	if variance <= 0 {
		return 1
	}
	return upperTail((sum - m*(m+1)/4) / math.Sqrt(variance))
}

// signedRankTail is P(T⁺ ≥ sum).
func signedRankTail(n, sum int) (p float64) {
	for _, share := range signedRankShares(n)[sum:] {
		p += share
	}
	return p
}

// pinpoint is the smaller of its two p-values. They are not corrected for being two.
// Its high threshold, below which it asks for more values instead of calling the
// samples the same, does not matter to whether they differ.
func pinpoint(control, treatment []float64) float64 {
	if len(control) == 0 || len(treatment) == 0 {
		return 1
	}
	return min(pinpointMannWhitney(control, treatment), pinpointKolmogorovSmirnov(control, treatment))
}

// pinpointMannWhitney is the normal approximation for all sizes, with the corrections for
// ties and continuity (mann_whitney_u.py).
func pinpointMannWhitney(control, treatment []float64) float64 {
	u, deviation, _ := rankSum(control, treatment)
	if deviation == 0 {
		return 1
	}
	product := float64(len(control) * len(treatment))
	return 2 * upperTail(math.Abs(max(u, product-u)-product/2-0.5)/deviation)
}

// pinpointKolmogorovSmirnov is the asymptotic test with Stephens's correction for small
// samples (kolmogorov_smirnov.py).
func pinpointKolmogorovSmirnov(control, treatment []float64) float64 {
	a, b := slices.Sorted(slices.Values(control)), slices.Sorted(slices.Values(treatment))
	m, n := float64(len(a)), float64(len(b))
	below := func(sorted []float64, v float64) float64 {
		at, _ := slices.BinarySearchFunc(sorted, v, func(x, v float64) int {
			if x <= v {
				return -1
			}
			return 1
		})
		return float64(at)
	}
	distance := 0.0
	for _, v := range slices.Concat(a, b) {
		distance = max(distance, math.Abs(below(a, v)/m-below(b, v)/n))
	}
	size := math.Sqrt(m * n / (m + n))
	y := (size + 0.12 + 0.11/size) * distance
	if y < 1.1e-16 {
		return 1
	}
	p, sign := 0.0, 1.0
	for r := 1.0; ; r++ {
		term := math.Exp(-2 * y * y * r * r)
		p += sign * term
		if sign = -sign; term <= 1.1e-16*p {
			return 2 * p
		}
	}
}

// rankSum is the treatment's U, the standard deviation of U corrected for ties, and
// whether there are any.
func rankSum(control, treatment []float64) (u, deviation float64, tied bool) {
	ranks := stats.Ranks(slices.Concat(treatment, control))
	m, n := float64(len(treatment)), float64(len(control))
	for _, r := range ranks[:len(treatment)] {
		u += r
	}
	ties := tieSum(ranks)
	all := m + n
	deviation = math.Sqrt(max(m*n/12*(all+1-ties/(all*(all-1))), 0))
	return u - m*(m+1)/2, deviation, ties > 0
}

// tieSum is Σ(t³ − t) over the groups of t equal ranks.
func tieSum(ranks []float64) (sum float64) {
	sorted := slices.Sorted(slices.Values(ranks))
	for from := 0; from < len(sorted); {
		to := from + 1
		for to < len(sorted) && sorted[to] == sorted[from] {
			to++
		}
		t := float64(to - from)
		sum, from = sum+t*t*t-t, to
	}
	return sum
}

// varies says whether there are two different values.
func varies(values []float64) bool {
	return len(values) > 1 && slices.Min(values) != slices.Max(values)
}

// upperTail is P(Z > z) of the standard normal distribution.
func upperTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }
