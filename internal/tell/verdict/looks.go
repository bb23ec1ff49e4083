package verdict

import (
	"math"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
)

// Look compares the arms of a run that has not ended, at one of the looks that its plan has
// (lab.Plan.Looks), and says whether the run knows: then it may end. The look is added to
// those of the run. at is its place among the plan's looks, from 0.
//
// Each look spends a part of Level, fixed by the plan before any trial: the parts have the
// shape of O'Brien and Fleming's bounds (little early, most at the end) and add up to
// Level. By Bonferroni's inequality all looks together then have at most Level false alarms,
// whatever the joint distribution of the looks, of the guards and of the trials is; within a
// look the guards are corrected as always. Bounds from the joint distribution would end some
// runs a little earlier, but hold for normal statistics only.
func Look(run *lab.Run, at int, seed uint64) (known bool) {
	spent, levels := 0.0, Levels(LooksAfter(run))
	for _, l := range run.Looks {
		spent += l.Level
	}
	look := lab.Look{Level: min(levels[at], Level-spent)}
	c := compareArms(run, look.Level, seed)
	if c == nil {
		return false
	}
	look.Pairs, look.Known = c.Pairs, slices.Contains([]string{lab.Slower, lab.Faster, lab.Mixed, lab.Equivalent}, c.Verdict)
	run.Looks = append(run.Looks, look)
	return look.Known
}

// LooksAfter lists after how many pairs a run looks: evenly among those that it makes, which it may have chosen itself.
func LooksAfter(run *lab.Run) []int {
	p := run.Plan
	if run.Size != nil {
		p.Trials = run.Size.Pairs
	}
	return p.LooksAfter()
}

// Levels divides Level among looks after so many pairs, the last one the planned total.
func Levels(pairs []int) []float64 {
	bounds, err := stats.OBrienFleming(pairs, Level)
	if err != nil { // there is one look
		return []float64{Level}
	}
	levels, sum := make([]float64, len(bounds)), 0.0
	for i, z := range bounds {
		levels[i] = math.Erfc(z / math.Sqrt2)
		sum += levels[i]
	}
	for i := range levels {
		levels[i] *= Level / sum
	}
	return levels
}

// levelLeft is the level of a run's verdict: that of the look that ended it, or else what its
// looks have not spent.
func levelLeft(run *lab.Run) float64 {
	left := Level
	for _, l := range run.Looks {
		if l.Known {
			return l.Level
		}
		left -= l.Level
	}
	return max(left, 0)
}

// missing estimates how many more pairs a comparison needs until each undecided guard is
// within the margin or beyond it, if the shifts are as they seem: intervals get narrower with
// the root of the number of pairs.
func missing(c *lab.Comparison, level float64) (pairs int) {
	if c.Pairs < Least {
		return Least - c.Pairs
	}
	for _, e := range c.Effects {
		if !e.Guard || e.Finding != lab.Unknown || e.Shift.Confidence == 0 {
			continue
		}
		// The half-width that the interval will have at the level that a run without looks has.
		half := (e.Shift.High - e.Shift.Low) / 2 * deviate(Level) / deviate(level)
		room := math.Abs(math.Abs(e.Shift.Value) - c.MarginOf(e.Metric)/100*math.Abs(e.Control))
		need := float64(e.Pairs) * (half / room) * (half / room)
		if !(need < mostMissing) {
			return mostMissing
		}
		pairs = max(pairs, int(math.Ceil(need))-e.Pairs, 1)
	}
	return pairs
}

// mostMissing is what is said of pairs that nobody would wait for.
const mostMissing = 10_000

// deviate is the two-sided normal quantile of a level.
func deviate(level float64) float64 { return math.Sqrt2 * math.Erfinv(1-level) }
