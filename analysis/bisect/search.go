package bisect

import (
	"math"
	"slices"

	"eidetic/analysis/stats"
)

// candidate is the probability from which on a revision is measured against its neighbours.
const candidate = 0.85

// leastPairs is the smallest experiment, and leastConfirmed what confirms: with six pairs an
// arm's median has a 95 % interval.
const leastPairs, leastConfirmed = 4, 6

// search decides from the probabilities.
type search struct {
	p        Problem
	s        State
	m        *model
	testable []int
	ends     int // pairs of good and bad
	d        *Decision
}

func (s search) run() {
	last := s.p.Revisions - 1
	best, most := s.best()
	differs := s.m.none <= 1-s.p.Proof
	switch {
	case !differs && (s.ends >= s.p.Ends || s.m.none >= s.p.Proof || s.within()):
		s.d.Found = &Finding{Kind: None, Effect: s.effect()}
	case s.m.several >= s.p.Confidence:
		s.d.Found = &Finding{Kind: Several, Effect: s.effect(), Steps: s.severalSteps()}
	case most >= s.p.Confidence && differs && s.missing(best) == nil:
		s.d.Found = &Finding{Kind: Culprit, Effect: s.effect(), Steps: []Step{s.step(best, most)}}
	case s.d.Pairs >= s.p.Budget:
		s.d.Found = &Finding{Kind: Unsure, Effect: s.effect(), Steps: []Step{s.step(best, most)}, More: s.more(best, most)}
	case !differs:
		s.d.Next = &Next{Control: 0, Treatment: last, Pairs: min(firstEnds, s.p.Ends-s.ends)}
	case s.m.several > 1-candidate && most+s.m.several >= candidate, s.m.several > 0.5:
		s.d.Next = s.apart(best)
	case most >= candidate:
		if s.d.Next = s.missing(best); s.d.Next == nil {
			s.d.Next = s.confirm(best)
		}
	default:
		s.d.Next = s.informative()
	}
	if s.d.Next != nil {
		s.d.Next.Pairs = min(s.d.Next.Pairs, s.p.Budget-s.d.Pairs)
	}
}

// best is the index in testable after whose predecessor the only step most probably is.
func (s search) best() (at int, probability float64) {
	at = 1
	for i := 1; i < len(s.testable); i++ {
		sum := 0.0
		for r := s.testable[i-1] + 1; r <= s.testable[i]; r++ {
			sum += s.d.Culprits[r]
		}
		if sum > probability {
			at, probability = i, sum
		}
	}
	return at, probability
}

// sizeAt is the expected size of a step at a revision.
func (s search) sizeAt(revision int) float64 {
	for i, c := range s.m.cuts {
		if c.from < revision && revision <= c.to {
			return s.m.size[i]
		}
	}
	return 0
}

// visits are the experiments that compared two revisions.
func (s search) visits(control, treatment int, confirming bool) (blocks []stats.Block, values []float64) {
	for _, v := range s.s.Visits {
		if v.Control == control && v.Treatment == treatment && (v.Confirms || !confirming) {
			blocks, values = append(blocks, v.Blocks...), append(values, v.differences()...)
		}
	}
	return blocks, values
}

// effect is the difference between good and bad.
func (s search) effect() stats.Interval {
	blocks, _ := s.visits(0, s.p.Revisions-1, false)
	i, _, err := stats.ShiftInBlocks(blocks, 0.95, 999, 1)
	if err != nil { // fewer than two pairs
		return stats.Interval{}
	}
	return i
}

// within says whether good and bad differ by less than matters.
func (s search) within() bool {
	if s.p.Least == 0 {
		return false
	}
	e := s.effect()
	return e.Confidence >= 0.9 && -s.p.Least < e.Low && e.High < s.p.Least
}

// odds is how much likelier the pairs that confirm are with a step between two revisions than
// without, as a logarithm.
func (s search) odds(control, treatment int, size float64) (odds float64, pairs int) {
	_, values := s.visits(control, treatment, true)
	return s.m.likelihood(values, size) - s.m.likelihood(values, 0), len(values)
}

// missing is the experiment that is missing before a candidate may be named, or nil: its own pairs
// have to show the step from the revision before it, and none to the revision after it.
func (s search) missing(best int) *Next {
	before, at := s.testable[best-1], s.testable[best]
	size, wanted := s.sizeAt(at), math.Log(s.p.Confidence/(1-s.p.Confidence))
	odds, pairs := s.odds(before, at, size)
	if odds < wanted || pairs < leastConfirmed {
		return &Next{before, at, s.batch(size, wanted-odds, leastConfirmed-pairs), true}
	}
	if best+1 == len(s.testable) {
		return nil
	}
	after := s.testable[best+1]
	odds, pairs = s.odds(at, after, size)
	if -odds < wanted || pairs < leastConfirmed {
		return &Next{at, after, s.batch(size, wanted+odds, leastConfirmed-pairs), true}
	}
	return nil
}

// confirm is one more experiment between a candidate and the revision before it.
func (s search) confirm(best int) *Next {
	size := s.sizeAt(s.testable[best])
	return &Next{s.testable[best-1], s.testable[best], s.batch(size, 1, leastPairs), true}
}

// apart is the experiment with good that tells one step from two best: where their levels differ most.
func (s search) apart(best int) *Next {
	at, size := s.testable[best], s.sizeAt(s.testable[best])
	first, second := s.m.cuts[s.m.two[0]], s.m.cuts[s.m.two[1]]
	where, most := s.p.Revisions-1, -1.0
	for _, r := range s.testable[1:] {
		one, two := 0.0, 0.0
		if r >= at {
			one = size
		}
		if r >= first.to {
			two += s.m.sizes[0]
		}
		if r >= second.to {
			two += s.m.sizes[1]
		}
		if d := math.Abs(one - two); d > most {
			where, most = r, d
		}
	}
	return &Next{0, where, s.batch(most, 1, leastPairs), false}
}

// mostPairs bounds an experiment: after it, the next may be elsewhere.
const mostPairs = 20

// batch is how many pairs add so much to a logarithm of odds, on the average.
func (s search) batch(size, odds float64, least int) int {
	n := math.Ceil(max(odds, 0) / s.perPair(size))
	return int(min(max(n, float64(least), leastPairs), mostPairs))
}

// perPair is what a pair adds to the logarithm of the odds of a step of this size, on the average.
func (s search) perPair(size float64) float64 {
	z := size / s.m.spread()
	return max(float64(z*z)/2, 1e-6)
}

// informative is the experiment with good that tells most for its cost.
func (s search) informative() *Next {
	var best *Next
	most, below := -1.0, 0.0
	from := 0
	total := 0.0
	for _, v := range s.d.Culprits {
		total += v
	}
	size := 0.0
	for i := range s.m.cuts {
		size += float64(s.m.one[i] * s.m.size[i])
	}
	size /= total
	for i := 1; i < len(s.testable); i++ {
		at := s.testable[i]
		for r := from + 1; r <= at; r++ {
			below += s.d.Culprits[r] / total
		}
		from = at
		if i+1 == len(s.testable) && len(s.testable) > 2 {
			break // it is bad itself
		}
		cost := s.p.Start
		if !s.visited(at) {
			cost += s.p.Deploy
		}
		for _, n := range []int{4, 6, 8, 12, 16, 20} {
			z := math.Abs(size) / s.m.spread() * math.Sqrt(float64(n))
			if rate := information(min(below, 1), z) / (float64(n) + cost); rate > most {
				most, best = rate, &Next{0, at, n, false}
			}
		}
	}
	return best
}

func (s search) visited(revision int) bool {
	return slices.ContainsFunc(s.s.Visits, func(v Visit) bool { return v.Control == revision || v.Treatment == revision })
}

// information is what a normal value of variance 1 tells, in nats, of whether its mean is z, which has
// the probability q, or 0: the entropy of the value less that of the noise.
func information(q, z float64) float64 {
	if q <= 0 || q >= 1 {
		return 0
	}
	const steps = 64
	low, high := -5.0, z+5
	h, sum := (high-low)/steps, 0.0
	for i := range steps + 1 {
		x := low + float64(float64(i)*h)
		without := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
		with := math.Exp(-(x-z)*(x-z)/2) / math.Sqrt(2*math.Pi)
		mixed := float64(q*with) + float64((1-q)*without)
		if with > 0 {
			sum += float64(q * with * math.Log(with/mixed))
		}
		if without > 0 {
			sum += float64((1 - q) * without * math.Log(without/mixed))
		}
	}
	return max(sum*h, 0)
}

// step describes a place of change.
func (s search) step(at int, probability float64) Step {
	before, last := s.testable[at-1], s.testable[at]
	out := Step{Before: before, First: before + 1, Last: last, Probability: probability, Size: s.sizeAt(last)}
	blocks, values := s.visits(before, last, true)
	if i, _, err := stats.ShiftInBlocks(blocks, 0.95, 999, 1); err == nil {
		out.Direct, out.Pairs = i, len(values)
	}
	return out
}

// severalSteps are the places of the most probable two steps, which are as wide as what was measured
// leaves them.
func (s search) severalSteps() (out []Step) {
	for i, n := range s.m.two {
		c := s.m.cuts[n]
		out = append(out, Step{Before: c.from, First: c.from + 1, Last: c.to, Probability: s.m.several, Size: s.m.sizes[i]})
	}
	return out
}

// more is about how many pairs are missing: to choose among the revisions, and then to confirm.
func (s search) more(best int, most float64) int {
	last := s.p.Revisions - 1
	if s.m.none > 1-s.p.Proof {
		return max(s.p.Ends-s.ends, firstEnds)
	}
	size := s.sizeAt(s.testable[best])
	entropy := 0.0
	for _, v := range s.d.Culprits {
		if v > 0 {
			entropy -= float64(v * math.Log(v))
		}
	}
	const efficiency = 0.35 // of the search, per pair, by simulation
	pairs := entropy / (efficiency * s.perPair(size))
	wanted := math.Log(s.p.Confidence / (1 - s.p.Confidence))
	before, at := s.testable[best-1], s.testable[best]
	odds, _ := s.odds(before, at, size)
	pairs += max(wanted-odds, 0) / s.perPair(size)
	if at < last {
		odds, _ = s.odds(at, s.testable[best+1], size)
		pairs += max(wanted+odds, 0) / s.perPair(size)
	}
	return max(int(math.Ceil(pairs)), leastPairs)
}
