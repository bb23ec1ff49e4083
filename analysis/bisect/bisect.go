// Package bisect finds the one of many revisions that changed a number, by experiments
// whose outcome is noisy. What is known so far flows in: the differences between pairs of
// trials of two revisions, and the revisions that cannot be tried. Out flows what to measure
// next, or what was found. It is pure: the caller deploys, measures and keeps.
//
// A binary search that trusts each of its steps is wrong as soon as one step is. This is
// a probabilistic bisection (Horstein 1963; Waeber, Frazier and Henderson 2013): every pair
// of trials changes the probability of each revision, and the next pairs are made where they
// tell most for their cost. Three explanations of the data compete:
//
//   - none: good and bad do not differ;
//   - one step at a revision, of a size that is not known;
//   - two steps of any sizes at two revisions.
//
// The noise of a pair follows Student's t with four degrees of freedom, so that an outlier
// counts little (Lange, Little and Taylor 1989); its scale is learned from the data. The
// size of a step is integrated out over a grid, with a Cauchy prior (Jeffreys 1961). As
// the probability of "none" is that of a Bayes factor, good and bad may be looked at after
// every pair: equal ones are called different with a probability of at most 1 − Proof,
// however often one looks (Ville's inequality).
//
// A culprit is named only after it has been measured again, in trials of their own, against the
// revision before it and against the one after it.
package bisect

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"eidetic/analysis/stats"
)

// Problem is what is asked. The zero value of each field but Revisions has a default.
type Problem struct {
	// Revisions is how many there are, in the order in which they were made: 0 is the good
	// one, Revisions−1 the bad one.
	Revisions int
	// Confidence is the probability from which on a culprit is named; zero: 0.95.
	Confidence float64
	// Proof is the probability from which on good and bad count as different; zero: 0.99.
	Proof float64
	// Ends is how many pairs of good and bad are made at most to tell them apart; zero: 160.
	Ends int
	// Budget is how many pairs are made at most; zero: 800.
	Budget int
	// Least is the smallest difference that matters, in the unit of the values: with it "no
	// difference" is said as soon as the interval of the difference lies within ±Least.
	Least float64
	// Start is what a visit costs besides its pairs, and Deploy what the first visit of a
	// revision costs in addition, both in pairs; zero: 2 and 0.
	Start, Deploy float64
}

// MaxRevisions bounds a problem.
const MaxRevisions = 10_000

// filled is the problem with its defaults.
func (p Problem) filled() (Problem, error) {
	for _, d := range []struct {
		of    *float64
		value float64
	}{{&p.Confidence, 0.95}, {&p.Proof, 0.99}, {&p.Start, 2}} {
		if *d.of == 0 {
			*d.of = d.value
		}
	}
	if p.Ends == 0 {
		p.Ends = 160
	}
	if p.Budget == 0 {
		p.Budget = 800
	}
	switch {
	case p.Revisions < 2 || p.Revisions > MaxRevisions:
		return p, fmt.Errorf("bisect: %d revisions: from 2 to %d", p.Revisions, MaxRevisions)
	case !(p.Confidence >= 0.5 && p.Confidence < 1 && p.Proof >= 0.5 && p.Proof < 1):
		return p, fmt.Errorf("bisect: confidence %v, proof %v: at least 0.5, and less than 1", p.Confidence, p.Proof)
	case p.Ends < 1 || p.Budget < 1 || !(p.Least >= 0) || !(p.Start >= 0) || !(p.Deploy >= 0):
		return p, errors.New("bisect: budgets must be positive, and costs not negative")
	}
	return p, nil
}

// Visit is an experiment: trials of two revisions in blocks.
type Visit struct {
	Control, Treatment int // revisions; the control is the older one
	// Confirms is set where a candidate is measured against its neighbours.
	Confirms bool
	Blocks   []stats.Block
}

// differences are those of the visit's pairs: of each block the n-th trials of both arms.
func (v Visit) differences() (out []float64) {
	for _, b := range v.Blocks {
		for i := range min(len(b.Control), len(b.Treatment)) {
			out = append(out, b.Treatment[i]-b.Control[i])
		}
	}
	return out
}

// State is what is known.
type State struct {
	Visits     []Visit
	Untestable []int // revisions that could not be tried
}

// Next is what to measure next.
type Next struct {
	Control, Treatment, Pairs int
	Confirms                  bool
}

// The kinds of findings.
const (
	Culprit = "culprit" // one revision, or several that lie side by side and could not all be tried
	None    = "none"    // good and bad do not differ
	Several = "several" // the change came in more than one step
	Unsure  = "unsure"  // the budget is spent
)

// Finding is what was found.
type Finding struct {
	Kind string
	// Steps are the places of change: one of a culprit, two of several, and of Unsure the most
	// probable one.
	Steps []Step
	// Effect is how much larger bad's values are than good's.
	Effect stats.Interval
	// More is, where it is Unsure, about how many pairs are missing.
	More int
}

// Step is a place of change.
type Step struct {
	// Before is the last revision that was tried without the step, First … Last are those of
	// which one made it; Last could be tried. First differs from Last only where the revisions
	// between could not.
	Before, First, Last int
	Probability         float64
	Size                float64 // estimated from everything
	// Direct is the difference between Before and Last in the pairs that were made to confirm the
	// step; zero where there are none.
	Direct stats.Interval
	Pairs  int // of Direct
}

// Decision is what to do.
type Decision struct {
	Next  *Next
	Found *Finding // nil while there is something to measure
	// Culprits has the probability of each revision of being the only one that changed
	// something; None and Several are those of the other explanations. They sum up to 1.
	Culprits      []float64
	None, Several float64
	Pairs         int     // that were made
	Noise         float64 // the standard deviation of a pair's difference that would explain as much
}

// Decide says what to do.
func Decide(p Problem, s State) (Decision, error) {
	p, err := p.filled()
	if err != nil {
		return Decision{}, err
	}
	if err := s.check(p); err != nil {
		return Decision{}, err
	}
	testable := make([]int, 0, p.Revisions)
	for r := range p.Revisions {
		if !slices.Contains(s.Untestable, r) {
			testable = append(testable, r)
		}
	}
	d := Decision{Culprits: make([]float64, p.Revisions)}
	ends := 0
	for _, v := range s.Visits {
		n := len(v.differences())
		if d.Pairs += n; v.Control == 0 && v.Treatment == p.Revisions-1 {
			ends += n
		}
	}
	if ends < firstEnds {
		d.None = 0.5
		for i := 1; i < p.Revisions; i++ {
			d.Culprits[i] = 0.5 / float64(p.Revisions-1)
		}
		if d.Pairs >= p.Budget {
			d.Found = &Finding{Kind: Unsure, More: firstEnds}
			return d, nil
		}
		d.Next = &Next{0, p.Revisions - 1, firstEnds - ends, false}
		return d, nil
	}
	m := newModel(p, s)
	d.None, d.Several, d.Noise = m.none, m.several, m.spread()
	for i, c := range m.cuts {
		for r := c.from + 1; r <= c.to; r++ {
			d.Culprits[r] = m.one[i] / float64(c.to-c.from)
		}
	}
	search{p, s, m, testable, ends, &d}.run()
	return d, nil
}

// firstEnds is how many pairs of good and bad are made before anything is concluded.
const firstEnds = 10

// check refuses what cannot be.
func (s State) check(p Problem) error {
	for _, r := range s.Untestable {
		if r <= 0 || r >= p.Revisions-1 {
			return fmt.Errorf("bisect: revision %d cannot be tried: without good and bad there is nothing to compare", r)
		}
	}
	for i, v := range s.Visits {
		if v.Control < 0 || v.Control >= v.Treatment || v.Treatment >= p.Revisions {
			return fmt.Errorf("bisect: visit %d compares revision %d with %d of %d", i+1, v.Control, v.Treatment, p.Revisions)
		}
		for _, d := range v.differences() {
			if !(math.Abs(d) < 1e15) {
				return fmt.Errorf("bisect: visit %d has a pair that differs by %v", i+1, d)
			}
		}
	}
	return nil
}
