package truth

import (
	"math"

	"eidetic/analysis/stats"
	"eidetic/analysis/stats/peers"
	"eidetic/internal/lab"
	"eidetic/internal/tell/verdict"
)

// ours is the name of the product's own rule for one metric, and unadjusted that of the same without covariates.
const (
	ours       = "eidetic"
	unadjusted = "eidetic, without covariates"
)

// Rule is a way to decide from the blocks of one metric whether the arms differ.
type Rule struct {
	Name  string
	Level float64 // of false alarms that it aims at
	// Decide prepares the rule for a sample: differs then reports whether the arms differ
	// after a shift was added to the treatment. The interval is the printed one, NaN
	// if the rule has none.
	Decide func(s sample, seed uint64) (differs func(shift float64) bool, low, high float64)
	// Intervals is set if the rule has intervals.
	Intervals bool
}

// rules returns our rule and those of other tools.
func rules() []Rule {
	adjusts := func(s sample, seed uint64) (func(float64) bool, float64, float64) {
		low, high := math.NaN(), math.NaN()
		if c, err := s.compare(seed); err == nil {
			low, high = c.Shift.Low, c.Shift.High
		}
		// The interval inverts the test, and both its ends move with the treatment.
		return func(shift float64) bool { return low+shift > 0 || high+shift < 0 }, low, high
	}
	all := []Rule{
		{Name: ours, Level: verdict.Level, Intervals: true, Decide: adjusts},
		{Name: unadjusted, Level: verdict.Level, Intervals: true, Decide: func(s sample, seed uint64) (func(float64) bool, float64, float64) {
			return adjusts(sample{blocks: s.blocks, step: s.step}, seed)
		}},
	}
	for _, p := range peers.All() {
		all = append(all, Rule{Name: p.Name, Level: p.Level, Intervals: p.Interval != nil,
			Decide: func(s sample, _ uint64) (func(float64) bool, float64, float64) {
				low, high := math.NaN(), math.NaN()
				if p.Interval != nil {
					low, high = p.Interval(samples(s.blocks, p.Paired))
				}
				return func(shift float64) bool { return p.Differs(samples(shifted(s.blocks, shift), p.Paired)) }, low, high
			}})
	}
	return all
}

// samples returns the input of a rule that knows no blocks.
func samples(all []stats.Block, paired bool) (control, treatment []float64) {
	if paired {
		return pairsOf(all)
	}
	for _, b := range all {
		control, treatment = append(control, b.Control...), append(treatment, b.Treatment...)
	}
	return control, treatment
}

// labTrials returns the trials in the form that a verdict uses.
func labTrials(trials []Trial) (all []*lab.Trial) {
	for _, t := range trials {
		all = append(all, t.Lab())
	}
	return all
}

// mostShift is the largest shift that is tried, in ms.
const mostShift = 500

// threshold returns the smallest shift, to half a millisecond, for which differs holds, or
// infinity if it does not hold for mostShift. It assumes that a rule that finds a shift
// finds every larger one.
func threshold(differs func(shift float64) bool) float64 {
	if !differs(mostShift) {
		return math.Inf(1)
	}
	low, high := 0.0, float64(mostShift)
	for high-low > 0.5 {
		if middle := (low + high) / 2; differs(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
