package export

import (
	"cmp"
	"fmt"
	"strings"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// check is one question of a run with its answer, as a build server's test is.
type check struct {
	name   string
	effect *lab.Effect // nil if the question is not one of a metric
	state  state
	kind   string   // of a bad one; "" is a regression
	says   string   // one sentence
	more   []string // what qualifies it
}

type state int

const (
	good state = iota
	bad        // the change made it worse
	open       // there is no answer
)

// checks lists the questions of a run: did it end well, and did a guard get worse?
func checks(run *lab.Run) []check {
	all := append([]check{ended(run)}, ofBudgets(run)...)
	if run.Comparison == nil {
		return all
	}
	if run.Plan.IsMany() {
		return append(all, ofCells(run)...)
	}
	for i := range run.Comparison.Effects {
		if e := &run.Comparison.Effects[i]; e.Guard {
			all = append(all, ofGuard(e))
		}
	}
	return all
}

// doneName is the question whether the run is done.
const doneName = "The run is done"

// ended says whether the run has a result.
func ended(run *lab.Run) check {
	valid := 0
	for _, t := range run.Trials {
		if t.Valid {
			valid++
		}
	}
	c := check{name: doneName, says: fmt.Sprintf("%d of %d trials are valid", valid, len(run.Trials)), more: run.Warnings}
	switch {
	case run.State != store.StateDone:
		c.state, c.says = open, fmt.Sprintf("the run is %s: %s", run.State, cmp.Or(run.Error, "it says no reason"))
	case run.Plan.Compares() && run.Comparison == nil:
		c.state, c.says = open, "two arms were asked for, and nothing was compared"
	case valid == 0:
		c.state = open
	}
	return c
}

// ofCells says what was found of all pages and users together, and of each.
func ofCells(run *lab.Run) []check {
	together := check{name: "All together", effect: run.Comparison.Telling(), says: run.Comparison.Detail}
	if e := together.effect; e != nil {
		together.state = ofGuard(e).state
	}
	if run.Comparison.Verdict == lab.Unknown {
		together.state = open
	}
	all := []check{together}
	for _, found := range run.Cells {
		if found.Comparison != nil {
			all = append(all, ofCell(run.Comparison.Verdict, found))
		}
	}
	return all
}

// ofCell says what was found of a page and user. all is the verdict of the run.
func ofCell(all string, found lab.CellResult) check {
	c := check{name: found.Name, effect: found.Comparison.Telling(), says: found.Comparison.Headline + ": " + found.Comparison.Detail}
	for i := range found.Comparison.Effects {
		if e := &found.Comparison.Effects[i]; e.Guard {
			c.more = append(c.more, metric.Label(e.Metric)+": "+ofGuard(e).says)
		}
	}
	switch found.Comparison.Verdict {
	case lab.Slower, lab.Mixed:
		c.state = bad
	case lab.Unknown:
		// With few trials of each, the verdict rests on all of them together.
		if all != lab.NoChange && all != lab.Faster && all != lab.Equivalent {
			c.state = open
		}
	}
	return c
}

// ofGuard says what was found of a guard.
func ofGuard(e *lab.Effect) check {
	c := check{name: metric.Label(e.Metric), effect: e, more: e.Warnings}
	bounds := intervalOf(e)
	if e.Bounded() {
		bounds = "95 % interval " + bounds
	}
	c.says = fmt.Sprintf("%s → %s (%s, %s%s)", value(e.Control, e.Unit), value(e.Treatment, e.Unit), change(e.Shift.Value, e.Unit),
		bounds, percent(e))
	switch e.Finding {
	case lab.Slower:
		c.state = bad
	case lab.Faster, lab.NoChange, lab.Equivalent:
	default:
		c.state = open
	}
	if e.Shift.Confidence == 0 {
		c.says = "it could not be tested"
	}
	return c
}

// ofBudgets says of each budget whether it is kept.
func ofBudgets(run *lab.Run) (all []check) {
	for _, b := range run.Budgets() {
		label := metric.Label(b.Metric)
		c := check{name: strings.TrimPrefix(b.Cell+": Budget of "+label, ": "), says: b.Words(label), state: open}
		switch b.Finding {
		case lab.OverBudget:
			c.state, c.kind = bad, overBudget
		case lab.WithinBudget:
			c.state = good
		}
		all = append(all, c)
	}
	return all
}

// overBudget is the type of a failure that is no regression.
const overBudget = "over budget"

// percent is the change relative to the control, in words.
func percent(e *lab.Effect) string {
	if e.Percent == nil {
		return ""
	}
	return ", " + lab.Signed(e.Percent.Value, 1) + " %"
}

// value formats a number with its unit for people.
func value(v float64, unit string) string {
	return strings.TrimSpace(strings.TrimPrefix(lab.Signed(v, 1), "+") + " " + unit)
}

// change formats a difference with its unit for people.
func change(v float64, unit string) string { return strings.TrimSpace(lab.Signed(v, 1) + " " + unit) }

// title names a run for people.
func title(run *lab.Run) string { return cmp.Or(run.Name, run.Page, run.ID) }
