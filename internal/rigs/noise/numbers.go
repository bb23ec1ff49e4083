package noise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"eidetic/analysis/stats"
)

func ms(v float64) string { return fmt.Sprintf("%.1f ms", v) }

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// covariance returns the sample covariance, 0 for fewer than two values.
func covariance(a, b []float64) (sum float64) {
	if len(a) < 2 {
		return 0
	}
	x, y := mean(a), mean(b)
	for i := range a {
		sum += float64((a[i] - x) * (b[i] - y))
	}
	return sum / float64(len(a)-1)
}

// spreadBounds returns a 95 % bootstrap interval of the standard deviation: the middle
// 95 % of the standard deviations of samples drawn from the values with replacement.
func spreadBounds(values []float64) (low, high float64) {
	const draws = 2000
	r := rand.New(rand.NewPCG(1, uint64(len(values))))
	all := make([]float64, draws)
	drawn := make([]float64, len(values))
	for i := range all {
		for j := range drawn {
			drawn[j] = values[r.IntN(len(values))]
		}
		all[i] = math.Sqrt(covariance(drawn, drawn))
	}
	slices.Sort(all)
	return stats.Quantile(all, 0.025), stats.Quantile(all, 0.975)
}
