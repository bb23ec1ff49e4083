package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"eidetic/internal/lab"
)

// why is the table of causes as the template shows it.
type why struct {
	*lab.Causes
	Says  string
	Named []whyRow
	Other []whyRow
	Paths *whyPaths
}

type whyRow struct {
	*lab.Cause
	What, Where                          string
	Control, Treatment, Shift, Low, High string
	Explains, Chance                     string
}

// Left is how many traced trials are not used.
func (w *why) Left() int { return w.Control.Left + w.Treatment.Left }

func whyOf(run *lab.Run) *why {
	if run.Causes == nil {
		return nil
	}
	w := &why{Causes: run.Causes, Says: sentence(strings.TrimPrefix(Why(run.Causes), "Why: "))}
	w.Paths = pathsOf(run.Causes.Paths)
	for i := range run.Causes.Rows {
		row := whyRowOf(&run.Causes.Rows[i])
		if row.Named {
			w.Named = append(w.Named, row)
		} else {
			w.Other = append(w.Other, row)
		}
	}
	return w
}

// causeOf says in a sentence why the arms differ, or how that would be known; "" where nothing asks for a cause.
func causeOf(run *lab.Run) string {
	switch c := run.Comparison; {
	case run.Causes != nil:
		return Why(run.Causes)
	case c != nil && (c.Verdict == lab.Slower || c.Verdict == lab.Faster || c.Verdict == lab.Mixed):
		return "Why: not known, as no trial was traced. With --traces 10 (traces in a plan) the same run says what the difference is made of."
	}
	return ""
}

func whyRowOf(c *lab.Cause) whyRow {
	row := whyRow{Cause: c, Control: number(c.Control, c.Unit), Treatment: number(c.Treatment, c.Unit), Shift: signed(c.Shift, c.Unit),
		Low: signed(c.Low, c.Unit), High: signed(c.High, c.Unit), Explains: "–", Chance: number(c.Adjusted, "")}
	row.What, row.Where = causeWords(c)
	if c.Adjusted < 0.001 {
		row.Chance = "< 0.001"
	}
	if c.Named && c.Explains > 0 {
		row.Explains = number(c.Explains, "ms")
	}
	return row
}

// mostNamedURL bounds a URL in a sentence.
const mostNamedURL = 80

// causeWords says what a row is of, and where.
func causeWords(c *lab.Cause) (what, where string) {
	of := lab.OneLine(c.What, mostNamedURL)
	switch c.Kind {
	case lab.CauseThread:
		where = "main threads of pages"
		if !c.Main {
			where = c.Process + ": " + c.Thread
		}
		what = cmp.Or(c.Group, "all work")
		if of != "" {
			what += ", " + of
		}
		return what, where
	case lab.CauseWait:
		return "wait for the answer to " + of, "server"
	case lab.CauseReceive:
		return "transfer of " + of, "network"
	case lab.CauseStart:
		return "start of " + of, "after " + lab.OneLine(c.After, mostNamedURL)
	case lab.CauseCount:
		return "number of requests " + of, "network"
	case lab.CausePath:
		return stepWords(c.Thread, c.Group, c.What), pathWhere(c.Thread)
	case lab.CauseBytes:
		return "size of " + of, "network"
	}
	return c.Kind, of
}

// Why says in a sentence what the first cause is, or that there is none.
func Why(c *lab.Causes) string {
	if c.Pairs < 2 {
		return "Why: not known, " + strings.Join(c.Notes, "; ") + "."
	}
	if len(c.Rows) == 0 || !c.Rows[0].Named {
		text := fmt.Sprintf("Why: nothing is named. Of %d rows of the traces, none differs between the arms beyond chance, over %d pairs.", c.Tested, c.Pairs)
		for _, note := range c.Notes {
			text += " " + sentence(note)
		}
		return text
	}
	first := &c.Rows[0]
	what, where := causeWords(first)
	more := "more"
	if first.Shift < 0 {
		more = "less"
	}
	unit := first.Unit
	if first.Kind == lab.CauseStart {
		more = map[string]string{"more": "later", "less": "earlier"}[more]
	}
	text := fmt.Sprintf("Why: %s (%s): %s %s %s in the treatment (%s to %s)", what, where, number(math.Abs(first.Shift), unit), unit, more,
		signed(first.Low, unit), signed(first.High, unit))
	named := 0
	for _, r := range c.Rows {
		if r.Named {
			named++
		}
	}
	if named > 1 {
		text += fmt.Sprintf("; %d more %s", named-1, lab.Plural(named-1, "row differs", "rows differ"))
	}
	return text + "."
}
