package peers

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// The sleep data of Student (1908), as in R's data set "sleep".
var (
	drug1 = []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	drug2 = []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
)

func upTo(from, to int) (all []float64) {
	for v := from; v < to; v++ {
		all = append(all, float64(v))
	}
	return all
}

func same(v float64, n int) (all []float64) {
	for range n {
		all = append(all, v)
	}
	return all
}

// TestKnownP against the p-values of R, of SciPy's manual and of the tools' own tests.
func TestKnownP(t *testing.T) {
	males, females := []float64{19, 22, 16, 29, 24}, []float64{20, 11, 17, 12}
	maize := []float64{6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75}
	early, term := []float64{1.15, 0.88, 0.90, 0.74, 1.21}, []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	for _, c := range []struct {
		name               string
		p                  func(control, treatment []float64) float64
		control, treatment []float64
		want               float64
	}{
		{"R, t.test(extra ~ group, sleep)", welch, drug1, drug2, 0.07939414},
		{"equal values", welch, same(1, 5), same(1, 5), 1},
		{"one value", welch, same(1, 1), same(2, 5), 1},
		{"R, wilcox.test, chorioamnion, two-sided", mannWhitney, early, term, 0.2544122544},
		{"SciPy, mannwhitneyu(males, females)", mannWhitney, females, males, 1.0 / 9},
		{"all equal", mannWhitney, same(3, 4), same(3, 4), 1},
		{"SciPy, one side of the same", sitespeedMannWhitney, females, males, 1.0 / 18},
		{"SciPy, the other side: P(U ≥ 3) of 20", sitespeedMannWhitney, males, females, 1 - 4.0/126},
		// U = 87.5 of 100, variance 100/12·(21 − 30/380) = 174.342: z = 2.84007.
		{"by hand, with ties", sitespeedMannWhitney, upTo(1, 11), upTo(6, 16), 0.00225513},
		{"does not vary", sitespeedMannWhitney, same(1, 5), upTo(5, 10), 1},
		{"SciPy, wilcoxon(d, alternative='greater')", sitespeedWilcoxon, same(0, 15), maize, 1}, // the control does not vary
		{"SciPy, the same beside a control that varies", sitespeedWilcoxon, upTo(0, 15), plus(upTo(0, 15), maize), 0.020629882812},
		// Zero, 1, 2 and 3: T = 0.5 + 2 + 3 + 4, z = 4.5/√7.5.
		{"by hand, with a zero", sitespeedWilcoxon, upTo(1, 5), plus(upTo(1, 5), upTo(0, 4)), 0.05017412},
		{"unequal sizes", sitespeedWilcoxon, upTo(0, 5), upTo(0, 6), 1},
		{"mann_whitney_u_test.py, basic", pinpointMannWhitney, upTo(0, 10), upTo(20, 30), 0.00018267179110955},
		{"mann_whitney_u_test.py, basic 2", pinpointMannWhitney, upTo(0, 5), upTo(0, 10), 0.13986357686781},
		{"mann_whitney_u_test.py, duplicates", pinpointMannWhitney, same(0, 5), same(1, 5), 0.00397675170978865},
		{"mann_whitney_u_test.py, small", pinpointMannWhitney, same(0, 1), same(1, 1), 1},
		{"mann_whitney_u_test.py, identical", pinpointMannWhitney, same(0, 5), same(0, 5), 1},
		{"kolmogorov_smirnov_test.py, basic", pinpointKolmogorovSmirnov, upTo(0, 10), upTo(20, 30), 1.8879793657162556e-05},
		{"kolmogorov_smirnov_test.py, basic 2", pinpointKolmogorovSmirnov, upTo(0, 5), upTo(0, 10), 0.26680230985258474},
		{"kolmogorov_smirnov_test.py, duplicates", pinpointKolmogorovSmirnov, same(0, 5), same(1, 5), 0.0037813540593701006},
		{"kolmogorov_smirnov_test.py, small", pinpointKolmogorovSmirnov, same(0, 1), same(1, 1), 0.2890414283708268},
		{"kolmogorov_smirnov_test.py, identical", pinpointKolmogorovSmirnov, same(0, 5), same(0, 5), 1},
		{"compare.py, a change of the mean", pinpoint, same(0, 20), append(same(0, 15), same(1, 5)...), 2 * 0.0097},
		{"compare.py, a change of the variance", pinpoint, upTo(10, 30), append(upTo(0, 10), upTo(30, 40)...), 0.0082},
		{"compare.py, no values", pinpoint, nil, upTo(0, 10), 1},
	} {
		tolerance := 1e-8 + 1e-6*c.want
		if strings.HasPrefix(c.name, "compare.py, a change") { // its comment has two digits, and of Mann-Whitney one side
			tolerance = 1e-4
		}
		if got := c.p(c.control, c.treatment); !(math.Abs(got-c.want) <= tolerance) {
			t.Errorf("%s: p = %v, want %v", c.name, got, c.want)
		}
	}
}

func plus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + b[i]
	}
	return out
}

// TestKnownIntervals against R's, and against t₀.₉₇₅ of a table.
func TestKnownIntervals(t *testing.T) {
	for _, c := range []struct {
		name               string
		of                 func(control, treatment []float64) (float64, float64)
		control, treatment []float64
		low, high          float64
	}{
		{"R, t.test(extra ~ group, sleep)", welchInterval, drug1, drug2, -0.2054832, 3.3654832},
		{"4 degrees of freedom: 3 ± 2.776445·√⅔", welchInterval, upTo(1, 4), upTo(4, 7), 0.733042, 5.266958},
		{"2 degrees of freedom: 3 ± 4.302653·√⅔", tachometer, upTo(1, 4), upTo(4, 7), -0.513103, 6.513103},
		{"the smaller sample decides", tachometer, []float64{1, 3}, []float64{5, 5, 5}, 3 - 12.706205, 3 + 12.706205},
		// Hollander and Wolfe, table 3.1; R's wilcox.test(y, x, paired = TRUE, conf.int = TRUE).
		{"R, depression", signedRank, []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30},
			[]float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}, -0.786, -0.010},
		{"three pairs: all differences", signedRank, same(0, 3), []float64{1, 2, 6}, 1, 6},
		{"no pairs", signedRank, same(1, 2), same(2, 3), math.NaN(), math.NaN()},
		{"nothing varies", tachometer, same(1, 3), same(2, 3), 1, 1},
		{"one value", tachometer, same(1, 1), same(2, 3), math.NaN(), math.NaN()},
	} {
		low, high := c.of(c.control, c.treatment)
		if near := func(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-5 }; !near(low, c.low) ||
			!near(high, c.high) {
			t.Errorf("%s: %v … %v, want %v … %v", c.name, low, high, c.low, c.high)
		}
	}
}

// TestRules: each sees a large increase, none sees equal samples, and only those of
// two sides see a decrease. Of normal samples they call no more different than their
// level says.
func TestRules(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sample := func(mean float64) []float64 {
		out := make([]float64, 20)
		for i := range out {
			out[i] = mean + r.NormFloat64()
		}
		return out
	}
	seen := map[string]bool{}
	for _, rule := range All() {
		if seen[rule.Name] || rule.Source == "" {
			t.Errorf("rule %q has no name or source of its own", rule.Name)
		}
		seen[rule.Name] = true
		if !rule.Differs(sample(100), sample(105)) {
			t.Errorf("%s does not see five standard deviations", rule.Name)
		}
		if got := rule.Differs(sample(105), sample(100)); got == rule.OneSided {
			t.Errorf("%s on a decrease: %v", rule.Name, got)
		}
		equal := sample(100)
		if rule.Differs(equal, equal) || rule.Differs(nil, nil) || rule.Differs([]float64{1}, []float64{2}) {
			t.Errorf("%s tells equal samples apart, or samples of one value", rule.Name)
		}
		alarms := 0
		const experiments = 1000
		for range experiments {
			if rule.Differs(sample(100), sample(100)) {
				alarms++
			}
		}
		// Pinpoint takes the smaller of two p-values, and so may be wrong twice as often.
		if most := experiments*rule.Level + 3.3*math.Sqrt(experiments*rule.Level); float64(alarms) > 2*most || rule.Name != "Pinpoint" &&
			float64(alarms) > most {
			t.Errorf("%s: %d alarms in %d experiments of equal arms", rule.Name, alarms, experiments)
		}
	}
}

// TestSignedRankCut against R's qsignrank(0.025, n), the first rank sum with
// P(T ≤ q) ≥ 0.025: the cut is one below it, counted from 1, and so the same number.
func TestSignedRankCut(t *testing.T) {
	for n, want := range map[int]int{5: 0, 6: 1, 10: 9, 20: 53, 50: 435} {
		if k := signedRankCut(n, 0.95); k != want {
			t.Errorf("n = %d: cut %d, want %d", n, k, want)
		}
	}
	if exact, normal := signedRankCut(100, 0.95), signedRankCut(101, 0.95); normal-exact < 0 || normal-exact > 60 {
		t.Errorf("the cut jumps from %d to %d where the exact distribution ends", exact, normal)
	}
}
