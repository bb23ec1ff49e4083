package history

import (
	"fmt"
	"math"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// A line is what a history follows of a metric from run to run: the level of an arm, which is the arm's name, or
// Difference.
const Difference = "difference" // treatment less control, with the interval of the run's comparison

// Lines are all lines, the first of which every series has.
func Lines() []string { return []string{lab.Control, lab.Treatment, Difference} }

// LinesOf lists the lines that the runs of a series have.
func LinesOf(past []store.Past) []string {
	all := Lines()[:1]
	for _, line := range Lines()[1:] {
		for _, p := range past {
			if line == lab.Treatment && len(p.Treatment) > 0 || line == Difference && len(p.Changes) > 0 {
				all = append(all, line)
				break
			}
		}
	}
	return all
}

// Rule is when a change of a level counts.
type Rule struct {
	Level float64 // largest p-value of a change point
	// Needed is the fewest runs that can have a change point. With fewer, even two levels that are clearly apart could
	// lie that way by chance more often than Level allows: of the n!/(k!·(n−k)!) ways to choose the k runs of one
	// level, two separate the levels in time as observed (the first k runs, or the last k). Their share is the smallest
	// possible p-value.
	Needed int
	// permutations of a test: its smaller part has a fifth of the level, and must be able to get there.
	permutations int
}

// RuleOf returns the rule of a series. One with comparisons has three lines instead of one, and verdicts that raise
// alerts by themselves: its change points share half of the level (see [VerdictChance]).
func RuleOf(past []store.Past) Rule {
	if len(LinesOf(past)) == 1 {
		return ruleAt(Level, 999)
	}
	return ruleAt(Level/2/float64(len(Lines())), 2499)
}

func ruleAt(level float64, permutations int) Rule {
	for n := 2 * Least; ; n++ {
		if 2/choose(n, n/2) <= level {
			return Rule{level, n, permutations}
		}
	}
}

func choose(n, k int) float64 {
	ways := 1.0
	for i := 1; i <= k; i++ {
		ways *= float64(n-k+i) / float64(i)
	}
	return math.Round(ways)
}

// VerdictChance is the largest corrected p-value at which a verdict alone is no chance, wherever in its series the run
// is.
const VerdictChance = 0.001

// Slower returns the guards that the newest run of a series finds slower than its control, and that are no chance: the
// run is the first comparison of the series; or so clear a one that of a thousand runs without a difference one says as
// much; or the comparison before it said the same. At a level of 5 % for both directions, of series without a
// difference one in forty raises an alert with its first run, and of later runs about one in nine hundred does.
func Slower(past []store.Past) (slower []store.Change, since store.Past) {
	compared := make([]store.Past, 0, len(past))
	for _, p := range past {
		if len(p.Changes) > 0 && p.Schedule != "" {
			compared = append(compared, p)
		}
	}
	if len(compared) == 0 || compared[len(compared)-1].ID != past[len(past)-1].ID {
		return nil, since
	}
	n := len(compared) - 1
	since = compared[n]
	for _, c := range compared[n].Changes {
		before := n > 0 && saysSlower(compared[n-1], c.Metric)
		if c.Guard && c.Finding == lab.Slower && (n == 0 || before || c.P <= VerdictChance) {
			slower = append(slower, c)
		}
	}
	for i := n - 1; len(slower) > 0 && i >= 0 && saysSlower(compared[i], slower[0].Metric); i-- {
		since = compared[i]
	}
	return slower, since
}

func saysSlower(p store.Past, name string) bool {
	for _, c := range p.Changes {
		if c.Metric == name {
			return c.Guard && c.Finding == lab.Slower
		}
	}
	return false
}

// StepOf describes a verdict as a step: from the control's median to the treatment's, since a run.
func StepOf(c store.Change, since store.Past, runs []RunPoint) Step {
	s := Step{
		Run: since.ID, Wall: since.Wall, P: c.P, Before: c.Control, After: c.Control + c.Shift.Value, Low: c.Shift.Low, High: c.Shift.High,
		Trend: lab.Slower, Near: []Near{},
	}
	s.setPercent(c.Control)
	for _, r := range runs {
		if r.ID == since.ID && len(r.Changed) > 0 {
			s.Near = append(s.Near, Near{r.ID, r.Changed})
		}
	}
	s.Text = (&Metric{Label: metric.Label(c.Metric) + " of the treatment", Unit: c.Unit}).amount(s) +
		fmt.Sprintf(" against the control since %s, p = %.2g", s.Run, s.P)
	return s
}

// valueOf returns the value of a metric in a run, and the control's median; ok is false if the run lacks it.
func valueOf(p store.Past, name, line string) (v Value, unit string, base float64, ok bool) {
	if line == Difference {
		for _, c := range p.Changes {
			if c.Metric == name && sane(c.Shift.Value, c.Shift.Low, c.Shift.High) {
				return Value{p.ID, c.Pairs, c.Shift.Value, c.Shift.Low, c.Shift.High}, c.Unit, c.Control, true
			}
		}
		return v, "", 0, false
	}
	all := p.Summary
	if line == lab.Treatment {
		all = p.Treatment
	}
	for _, s := range all {
		if s.Metric == name && sane(s.Median, s.Low, s.High) {
			return Value{p.ID, s.N, s.Median, s.Low, s.High}, s.Unit, s.Median, true
		}
	}
	return v, "", 0, false
}

// sane refuses values that no run measures and whose sums would overflow.
func sane(values ...float64) bool {
	for _, v := range values {
		if !(math.Abs(v) < 1e15) {
			return false
		}
	}
	return true
}

// labelOf names a line of a metric for people.
func labelOf(name, line string) string {
	switch label := metric.Label(name); line {
	case lab.Treatment:
		return label + " of the treatment"
	case Difference:
		return "Difference of " + label
	default:
		return label
	}
}
