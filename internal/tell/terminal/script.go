package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/compare"
)

// scriptLine is the result as one line for scripts: words NAME=VALUE, in an order that stays. New ones come at the end.
type scriptLine struct{ strings.Builder }

// add adds a word. A value that has a space or needs quoting is a string of Go and JSON.
func (l *scriptLine) add(name string, value any) {
	text := fmt.Sprint(value)
	if number, ok := value.(float64); ok {
		text = strconv.FormatFloat(number, 'g', 6, 64)
	}
	if strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || r == '"' || r == '=' || r == '\\' || !unicode.IsPrint(r)
	}) {
		text = strconv.Quote(text)
	}
	fmt.Fprintf(l, " %s=%s", name, text)
}

// addEffect adds the verdict, and the effect that tells most.
func (l *scriptLine) addEffect(c *lab.Comparison) {
	l.add("verdict", c.Verdict)
	e := c.Telling()
	if e == nil {
		return
	}
	l.add("metric", e.Metric)
	l.add("unit", e.Unit)
	l.add("control", e.Control)
	l.add("treatment", e.Treatment)
	l.add("change", e.Shift.Value)
	l.add("low", e.Shift.Low)
	l.add("high", e.Shift.High)
	l.add("p", e.Adjusted)
}

// ScriptLine is the line for scripts of a run; where is its report.
func ScriptLine(run *lab.Run, where string) string {
	var l scriptLine
	l.WriteString("result:")
	l.add("state", run.State)
	rows := medianRows(run.Summary)
	switch {
	case run.Comparison != nil:
		l.addEffect(run.Comparison)
	case len(rows) > 0:
		s := rows[0]
		if last := rows[len(rows)-1]; isJourney(metric.Parse(last.Metric)) {
			s = last
		}
		l.add("metric", s.Metric)
		l.add("unit", s.Unit)
		l.add("median", s.Median)
		l.add("low", s.Low)
		l.add("high", s.High)
	}
	l.add("valid", valids(run))
	l.add("trials", run.Measured())
	l.add("run", run.ID)
	if where != "" {
		l.add("report", where)
	}
	if found := lab.WorstBudget(run.Budgets()); found != "" {
		l.add("budgets", found)
	}
	return l.String()
}

// BetweenLine is the line for scripts of two runs, which begins with a word of its own.
func BetweenLine(begins string, found *compare.Between) string {
	var l scriptLine
	l.WriteString(begins)
	l.addEffect(tellingOf(found))
	l.add("reference", found.Reference)
	l.add("run", found.Run)
	return l.String()
}
