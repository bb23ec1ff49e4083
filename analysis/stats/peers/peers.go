// Package peers holds the rules by which other tools of the field decide that two
// samples differ, so that a benchmark can ask them about the same data as ours.
// Values of two arms go in, a decision comes out; everything is pure. The product
// itself uses none of them.
//
// Each rule names the source that it was taken from, with its version, and follows
// that source where it deviates from the textbook. Where go-moremath has a test, it
// is used.
package peers

// Rule is how a tool decides that a treatment differs from a control.
type Rule struct {
	Name   string
	Source string // where the rule is written down, with the version
	// Level is the share of false alarms that the rule aims at.
	Level float64
	// OneSided rules look for a larger treatment alone: a smaller one is never
	// reported, and Level is that of the one side.
	OneSided bool
	// Paired rules take values with equal index for a pair and need samples of one
	// size; all others ignore the order.
	Paired bool
	// Differs is false where the rule cannot decide: with too few values, or with
	// values that do not vary.
	Differs func(control, treatment []float64) bool
	// Interval is the 95 % interval of treatment − control that the tool prints; nil
	// where it prints none. It is NaN for too few values.
	Interval func(control, treatment []float64) (low, high float64)
}

// All returns every rule.
func All() []Rule {
	return []Rule{
		{
			Name: "Welch's t", Level: 0.05,
			Source:  "Welch, Biometrika 34 (1947); go-moremath v0.0.0-20210112150236, stats.TwoSampleWelchTTest",
			Differs: func(a, b []float64) bool { return welch(a, b) < 0.05 }, Interval: welchInterval,
		},
		{
			Name: "Mann-Whitney U", Level: 0.05,
			Source: "Mann and Whitney, Ann. Math. Statist. 18 (1947), two-sided as in benchstat; go-moremath v0.0.0-20210112150236, " +
				"stats.MannWhitneyUTest",
			Differs: func(a, b []float64) bool { return mannWhitney(a, b) < 0.05 },
		},
		{
			Name: "Wilcoxon signed rank", Level: 0.05, Paired: true,
			Source: "Wilcoxon, Biometrics Bulletin 1 (1945); the interval by Hollander, Wolfe and Chicken, Nonparametric Statistical " +
				"Methods, §3.3",
			Differs: func(a, b []float64) bool {
				low, high := signedRank(a, b)
				return len(a) > 5 && (low > 0 || high < 0)
			}, Interval: signedRank,
		},
		{
			Name: "sitespeed.io compare", Level: 0.05, OneSided: true,
			Source:  sitespeedSource + "; testType mannwhitneyu (the default)",
			Differs: func(a, b []float64) bool { return sitespeedMannWhitney(a, b) < 0.05 },
		},
		{
			Name: "sitespeed.io compare, Wilcoxon", Level: 0.05, OneSided: true, Paired: true,
			Source:  sitespeedSource + "; testType wilcoxon, zeroMethod zsplit (its default)",
			Differs: func(a, b []float64) bool { return sitespeedWilcoxon(a, b) < 0.05 },
		},
		{
			Name: "Pinpoint", Level: 0.01,
			Source: "catapult-project/catapult b360f253, dashboard/dashboard/pinpoint/models/compare/compare.py " +
				"(min of Mann-Whitney and Kolmogorov-Smirnov) and thresholds.py 7453eba4 (LowThreshold 0.01)",
			Differs: func(a, b []float64) bool { return pinpoint(a, b) <= 0.01 },
		},
		{
			Name: "tachometer", Level: 0.05,
			Source: "google/tachometer 247d0fd0, src/stats.ts: computeDifference, with the horizon of 0",
			Differs: func(a, b []float64) bool {
				low, high := tachometer(a, b)
				return low > 0 || high < 0
			}, Interval: tachometer,
		},
	}
}

// sitespeedSource: the options' documentation says that "greater" means that the
// current data is greater than the baseline, and so does this package. The script
// of that commit hands the baseline to SciPy as the first sample, whose "greater"
// then looks for the opposite.
const sitespeedSource = "sitespeedio/sitespeed.io 8ccf59ee, lib/cli/options/compare.js (alternative greater, no continuity correction) " +
	"and 0935a64e, lib/plugins/compare/statistical.py (SciPy's tests), helper.js (significant below 0.05)"
