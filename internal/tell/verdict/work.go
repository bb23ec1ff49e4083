package verdict

import (
	"fmt"
	"slices"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// The film and the browser's trace are two instruments. What a thread computes varies less than what a screen shows, so
// the second may find what the first cannot. The words then say of both what they found.

// filmBeside says of a verdict that rests on the browser's work, and on no guard of the film, how large a difference the
// film would have shown; "" for another verdict.
func filmBeside(c *lab.Comparison, best *lab.Effect) string {
	if best == nil || !isOf(best.Metric, metric.Work) {
		return ""
	}
	var film *lab.Effect
	for i := range c.Effects {
		switch e := &c.Effects[i]; {
		case !e.Guard || e.Shift.Confidence == 0 || isOf(e.Metric, metric.Work, metric.Machine):
		case e.Finding != lab.NoChange:
			return ""
		case film == nil:
			film = e
		}
	}
	if film == nil {
		return ""
	}
	return fmt.Sprintf("on the film, %s of %s or more would have been detected with 80 %% probability", metric.Label(film.Metric),
		amount(film.MinimalEffect, film))
}

// isOf says whether a metric belongs to one of the groups.
func isOf(name string, groups ...string) bool {
	return slices.ContainsFunc(metric.Parse(name).Entry().Groups, func(g string) bool { return slices.Contains(groups, g) })
}

// Locate adds to the words of a comparison that rests on the browser's work where most of the difference is, if the
// traced trials name that.
func Locate(c *lab.Comparison, causes *lab.Causes) {
	if c == nil || causes == nil || c.Verdict != lab.Slower && c.Verdict != lab.Faster {
		return
	}
	best := telling(c)
	if best == nil || !isOf(best.Metric, metric.Work) {
		return
	}
	for _, row := range causes.Rows { // the first explains most
		if row.Named && row.Kind == lab.CauseThread && row.Main && row.What != "" && (row.Shift > 0) == (best.Shift.Value > 0) {
			c.Detail += fmt.Sprintf("; by the traces the largest part is in %s (%s, %s %s)", lab.OneLine(row.What, mostPlace), row.Group,
				lab.Change(row.Shift), row.Unit)
			return
		}
	}
}

// mostPlace bounds the name of a script or document in a sentence.
const mostPlace = 80
