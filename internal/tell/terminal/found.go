package terminal

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/run/experiment"
	"eidetic/internal/tell/report"
)

// mostLines bounds the table of an answer, with its head. Whatever else there is, the report has.
const mostLines = 8

// mostServers bounds what is said of servers.
const mostServers = 3

// causesOfBlur begins what an explanation says of the machine's other work.
const causesOfBlur = " What was seen: "

// Found ends a run for a person: how far its trials may be trusted, the answer, its numbers and their cause. told
// says that a person has seen the notes of the run while it went on.
func Found(c *Console, run *lab.Run, told bool) {
	if run.Measured() == 0 {
		return // it ended before its first trial
	}
	if run.Tolerance.Relaxed() || !told {
		text, more, _ := strings.Cut(experiment.Explain(run.Tolerance, run.Trials), causesOfBlur)
		switch {
		case more != "" && c.Terminal:
			text += " The report names what was seen, and what would help."
		case more != "":
			text += causesOfBlur + more
		}
		if text != "" {
			c.Line(text)
		}
	}
	if words := report.WordsOf(run); words.Headline != "" {
		Headline(c, words.Verdict, words.Headline, words.Detail)
	}
	switch {
	case len(run.Cells) > 0:
		printCells(c, run)
	case run.Comparison != nil:
		Effects(c, run.Comparison, "control", "treatment", "in the report")
	default:
		printMedians(c, run.Summary)
	}
	for i, row := range run.Servers {
		if i == mostServers {
			c.Line(more(len(run.Servers)-mostServers, "server's answer", "servers' answers", "in the report"))
			break
		}
		c.Line("Server: " + Plain(row.String()))
	}
	for i, row := range run.Assets {
		if i == mostServers {
			c.Line(more(len(run.Assets)-mostServers, "answer", "answers", "that differ, in the report"))
			break
		}
		c.Line("Recordings: " + Plain(row.String()))
	}
	for _, b := range run.Budgets() {
		colour := map[string]string{lab.OverBudget: Red, lab.WithinBudget: Green}[b.Finding]
		c.coloured(colour, Plain("Budget: "+b.Words(labelOf(b.Metric))))
	}
	for i, view := range run.Views() {
		if view.Causes == nil {
			continue
		}
		of := ""
		if run.Plan.IsMany() && i < len(run.Cells) {
			of = run.Cells[i].Name + ": "
		}
		c.Line(Plain(of + report.Why(view.Causes)))
	}
	c.Line(fmt.Sprintf("%d of %d trials are valid; it took %v", valids(run), run.Measured(),
		time.Duration(run.Elapsed*float64(time.Second)).Round(time.Second)))
}

// Headline prints the answer in words.
func Headline(c *Console, verdict, headline, detail string) {
	lines := c.wrapped(Plain(headline + ": " + detail))
	if first, ok := strings.CutPrefix(lines[0], Plain(headline)); ok {
		lines[0] = c.paint(bold, c.paint(colourOf(verdict), Plain(headline))) + first
	}
	fmt.Fprintln(c.out, strings.Join(lines, "\n"))
}

// colourOf is the colour of a verdict or a finding.
func colourOf(finding string) string {
	switch finding {
	case lab.Slower, lab.Mixed:
		return Red
	case lab.Faster:
		return Green
	}
	return ""
}

// valids counts the trials that enter the statistics.
func valids(run *lab.Run) (n int) {
	for _, t := range run.Trials {
		if t.Valid {
			n++
		}
	}
	return n
}

// more says how many rows a table lacks, and where they are.
func more(n int, one, many, where string) string {
	return fmt.Sprintf("and %d more %s %s", n, lab.Plural(n, one, many), where)
}

// shortened leaves out rows of a table that would have more than mostLines lines: of a higher rank first, and of those
// the last.
func shortened[T any](rows []T, rank func(T) int) (kept []T, left int) {
	if len(rows) < mostLines {
		return rows, 0
	}
	room := mostLines - 2 // the head, and a line that says how many are left out
	keep := make([]bool, len(rows))
	for r := 0; r <= highestRank; r++ {
		for i, row := range rows {
			if room > 0 && rank(row) == r {
				keep[i], room = true, room-1
			}
		}
	}
	for i, row := range rows {
		if keep[i] {
			kept = append(kept, row)
		}
	}
	return kept, len(rows) - len(kept)
}

// The ranks of rows: all of a journey, what says something, and the rest.
const highestRank = 2

// medianRows are the medians that tell most: of a load the guards, of a journey each step's time to its end, and all of
// it last.
func medianRows(all []lab.Summary) (rows []lab.Summary) {
	journey := false
	for _, s := range all {
		if isStepEnd(metric.Parse(s.Metric)) {
			rows, journey = append(rows, s), true
		}
	}
	for _, s := range all {
		switch ref := metric.Parse(s.Metric); {
		case journey && isJourney(ref), !journey && ref.Step == "" && ref.Region == "" && ref.ID.Entry().Guard:
			rows = append(rows, s)
		}
	}
	if !journey {
		slices.SortStableFunc(rows, func(a, b lab.Summary) int {
			return metric.GuardPlace(a.Metric) - metric.GuardPlace(b.Metric)
		})
	}
	return rows
}

func isStepEnd(ref metric.Ref) bool { return ref.ID == metric.TimeToEnd && ref.Region == "" }
func isJourney(ref metric.Ref) bool { return ref.ID == metric.Journey && ref.Step == "" }

// printMedians prints what a run without a second arm measured.
func printMedians(c *Console, all []lab.Summary) {
	rows, left := shortened(medianRows(all), func(s lab.Summary) int {
		if isJourney(metric.Parse(s.Metric)) {
			return 0
		}
		return highestRank
	})
	t := &Table{Head: []string{"", "median", boundsOf(rows), "trials"}}
	var values []float64
	alike := true
	for _, s := range rows {
		t.addMedian(labelOf(s.Metric)+ofTreatment(s.Arm), s)
		values, alike = append(values, s.Median), alike && s.Unit == rows[0].Unit
	}
	if alike {
		t.bar = lengths(values)
	}
	t.Print(c)
	if left > 0 {
		c.Line(more(left, "row", "rows", "in the report"))
	}
}

// boundsOf heads the column of the medians' bounds. Where none has an interval, it is no column of intervals.
func boundsOf(rows []lab.Summary) string {
	if len(rows) == 0 || slices.ContainsFunc(rows, func(s lab.Summary) bool { return s.Bounded() }) {
		return "95 % interval"
	}
	return "smallest to largest"
}

// addMedian adds a row of a metric's median.
func (t *Table) addMedian(name string, s lab.Summary) {
	interval := valueOf(s.Low, s.Unit) + " … " + valueOf(s.High, s.Unit)
	if !s.Bounded() {
		interval = "from " + valueOf(s.Min, s.Unit) + " to " + valueOf(s.Max, s.Unit)
	}
	t.Add("", name, valueOf(s.Median, s.Unit), interval, strconv.Itoa(s.N))
}

// ofTreatment marks rows of the second arm, where a run has two and compares nothing: it ended too early.
func ofTreatment(arm string) string {
	if arm == lab.Treatment {
		return " (treatment)"
	}
	return ""
}

// labelOf is the name of a metric for people, with that of its step.
func labelOf(name string) string {
	ref := metric.Parse(name)
	if isStepEnd(ref) {
		return Plain(ref.Step)
	}
	return Plain(ref.Label())
}

// valueOf is a value with its unit.
func valueOf(v float64, unit string) string {
	if unit == "ms" {
		return lab.Millis(v)
	}
	if math.Abs(v) >= 1e4 { // a number of events
		return strings.TrimSpace(strings.TrimPrefix(lab.Signed(v, 0), "+") + " " + unit)
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", v, unit))
}

// effectRows are the effects on which the verdict rests, and of a journey all of it last.
func effectRows(c *lab.Comparison) (rows []*lab.Effect) {
	var journey *lab.Effect
	steps := false
	for i := range c.Effects {
		e := &c.Effects[i]
		ref := metric.Parse(e.Metric)
		steps = steps || isStepEnd(ref)
		switch {
		case isJourney(ref):
			journey = e
		case e.Guard:
			rows = append(rows, e)
		}
	}
	if journey != nil && (steps || journey.Guard) {
		rows = append(rows, journey)
	}
	return rows
}

// Effects prints what was found of each guard, under the names of what was compared. rest says where the rows are
// that are left out.
func Effects(c *Console, found *lab.Comparison, control, treatment, rest string) {
	rows, left := shortened(effectRows(found), func(e *lab.Effect) int {
		switch {
		case isJourney(metric.Parse(e.Metric)):
			return 0
		case colourOf(e.Finding) != "":
			return 1
		}
		return highestRank
	})
	t := &Table{Head: []string{"", control, treatment, "change", "95 % interval", ""}}
	var drawn []span
	alike := true
	var adjusted *lab.Adjustment
	for _, e := range rows {
		said := found.Words(e)
		if !e.Guard {
			said = ""
		}
		t.addEffect(labelOf(e.Metric), e, said)
		drawn, alike = append(drawn, span{e.Shift.Low, e.Shift.Value, e.Shift.High}), alike && e.Unit == rows[0].Unit && e.Bounded()
		if e.Adjustment != nil {
			adjusted = e.Adjustment
		}
	}
	if alike {
		t.bar = spans(drawn)
	}
	t.Print(c)
	if left > 0 {
		c.Line(more(left, "row", "rows", rest))
	}
	if adjusted != nil {
		c.Line(Plain(fmt.Sprintf("Changes are adjusted by what was known before each load (%s); the others are %s.",
			strings.Join(adjusted.Covariates, ", "), rest)))
	}
}

// addEffect adds a row of a metric's effect, with what was found.
func (t *Table) addEffect(name string, e *lab.Effect, said string) {
	interval := "too few pairs"
	if e.Bounded() {
		interval = lab.Change(e.Shift.Low) + " … " + lab.Change(e.Shift.High)
	}
	t.Add(colourOf(e.Finding), name, valueOf(e.Control, e.Unit), valueOf(e.Treatment, e.Unit),
		strings.TrimSpace(lab.Change(e.Shift.Value)+" "+e.Unit), interval, said)
}

// addCompared adds a row of a page and user: the guard that tells most; found is nil where there is nothing to compare.
func (t *Table) addCompared(name string, found *lab.Comparison) {
	if found != nil {
		if e := found.Telling(); e != nil {
			t.addEffect(name+": "+labelOf(e.Metric), e, found.Words(e))
			return
		}
	}
	t.Add("", name, "–", "–", "–", "–", "not compared")
}

// rankOf is that of the row of a page and user.
func rankOf(found *lab.Comparison) int {
	if found != nil && colourOf(found.Verdict) != "" {
		return 1
	}
	return highestRank
}

// printCells prints a line for each page and user of a run of many: the guard that tells most, or the first median.
func printCells(c *Console, run *lab.Run) {
	cells, left := shortened(run.Cells, func(one lab.CellResult) int { return rankOf(one.Comparison) })
	t := &Table{}
	var firsts []lab.Summary
	for _, one := range cells {
		name := Plain(one.Name)
		switch {
		case run.Comparison != nil:
			t.addCompared(name, one.Comparison)
		case len(medianRows(one.Summary)) > 0:
			s := medianRows(one.Summary)[0]
			firsts = append(firsts, s)
			t.addMedian(name+": "+labelOf(s.Metric), s)
		default:
			t.Add("", name, "–", "no valid trial", "0")
		}
	}
	t.Head = []string{"", "median", boundsOf(firsts), "trials"}
	if run.Comparison != nil {
		t.Head = []string{"", "control", "treatment", "change", "95 % interval", ""}
	}
	t.Print(c)
	if left > 0 {
		c.Line(more(left, "page and user", "pages and users", "in the report"))
	}
}
