package peers

import (
	"math"
	"slices"
)

// signedRank is the interval of the median of the paired differences that inverts
// Wilcoxon's signed-rank test, at 95 % or, with fewer than six pairs, at the most that
// they can have (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, §3.3):
// it ends at Walsh averages (dᵢ+dⱼ)/2, i ≤ j. The test's distribution is exact up
// to 100 pairs and normal beyond.
func signedRank(control, treatment []float64) (low, high float64) {
	n := len(control)
	if n != len(treatment) || n == 0 {
		return math.NaN(), math.NaN()
	}
	walsh := make([]float64, 0, n*(n+1)/2)
	for i := range n {
		for j := i; j < n; j++ {
			walsh = append(walsh, (treatment[i]-control[i]+treatment[j]-control[j])/2)
		}
	}
	slices.Sort(walsh)
	k := max(signedRankCut(n, 0.95), 1)
	return walsh[k-1], walsh[len(walsh)-k]
}

// signedRankCut returns the largest k for which [W(k), W(M+1−k)], M = n(n+1)/2,
// has at least the confidence 1 − 2·P(T⁺ ≤ k−1); 0 if there is none.
func signedRankCut(n int, confidence float64) (k int) {
	if n > 100 {
		m := float64(n) * float64(n+1)
		z := math.Sqrt2 * math.Erfinv(confidence)
		return max(int(math.Floor(m/4-z*math.Sqrt(m*float64(2*n+1)/24))), 1)
	}
	tail := 0.0
	for _, share := range signedRankShares(n) {
		if tail += share; 1-2*tail < confidence { // now P(T⁺ ≤ k)
			break
		}
		k++
	}
	return k
}

// signedRankShares are the probabilities of each T⁺, the rank sum of the positive
// ones among n differences that have either sign with equal chance.
func signedRankShares(n int) []float64 {
	share := make([]float64, n*(n+1)/2+1)
	share[0] = 1
	for r := 1; r <= n; r++ {
		for t := len(share) - 1; t >= 0; t-- {
			share[t] /= 2
			if t >= r {
				share[t] += share[t-r] / 2
			}
		}
	}
	return share
}
