// Package virtual carries bisects out in virtual time: the trials are drawn from a model of a
// machine's noise. The level of each revision flows in, with a seeded source of chance; what
// was found and what it cost flows out. It also has the search that it is compared with.
package virtual

import (
	"math/rand/v2"

	"eidetic/analysis/bisect"
	"eidetic/analysis/stats"
	"eidetic/analysis/stats/simulate"
)

// Machine is as noisy as the one that docs/benchmarks.md tells of: equal loads have a standard
// deviation of 26 ms with tails heavier than a normal distribution's, one in 200 takes 0.3 to 1 s longer, the
// machine drifts, and times are those of frames at 60 Hz.
func Machine() simulate.Machine {
	return simulate.Machine{Load: 590, Spread: 26, Tails: 5, Outliers: 0.005, Drift: 10, Frame: simulate.Frame, Moving: true, Invalid: 0.04}
}

// One returns the levels of revisions of which the culprit is slower by size, and so are all after it.
func One(revisions, culprit int, size float64) []float64 {
	levels := make([]float64, revisions)
	for i := culprit; i < revisions; i++ {
		levels[i] = size
	}
	return levels
}

// Outcome is what a bisect found and cost.
type Outcome struct {
	bisect.Decision
	Visits int
}

// Search bisects, with revisions that cannot be tried.
func Search(r *rand.Rand, m simulate.Machine, levels []float64, broken map[int]bool, p bisect.Problem) (Outcome, error) {
	p.Revisions = len(levels)
	var s bisect.State
	for {
		d, err := bisect.Decide(p, s)
		if err != nil || d.Found != nil {
			return Outcome{d, len(s.Visits)}, err
		}
		if n := d.Next; broken[n.Treatment] {
			s.Untestable = append(s.Untestable, n.Treatment)
		} else {
			s.Visits = append(s.Visits, bisect.Visit{Control: n.Control, Treatment: n.Treatment, Confirms: n.Confirms,
				Blocks: m.Experiment(r, n.Pairs, levels[n.Treatment]-levels[n.Control])})
		}
	}
}

// Binary is the search that takes each step for certain: so many pairs of good and of the revision in the
// middle, which counts as bad if the product's own test finds a difference. It returns what it
// names, 0 for "no difference" between good and bad, and its pairs.
func Binary(r *rand.Rand, m simulate.Machine, levels []float64, pairs int) (culprit, spent int) {
	differs := func(at int) bool {
		spent += pairs
		c, err := stats.Compare(m.Experiment(r, pairs, levels[at]-levels[0]), stats.Plan{Seed: r.Uint64(), Step: simulate.Frame})
		return err == nil && c.Test.P <= 0.05
	}
	good, bad := 0, len(levels)-1
	if !differs(bad) {
		return 0, spent
	}
	for bad-good > 1 {
		if middle := (good + bad) / 2; differs(middle) {
			bad = middle
		} else {
			good = middle
		}
	}
	return bad, spent
}
