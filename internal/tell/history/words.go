package history

import (
	"fmt"
	"math"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// trend says slower and faster only of guards. For other metrics larger may be better, as
// for frames, or neither.
func trend(name string, difference float64) string {
	guard := metric.IsGuard(name)
	switch {
	case guard && difference > 0:
		return "slower"
	case guard && difference < 0:
		return "faster"
	case difference < 0:
		return "smaller"
	}
	return "larger"
}

// sentence describes a step for people.
func (m *Metric) sentence(s Step) string {
	return fmt.Sprintf("%s since %s, p = %.2g", m.amount(s), s.Run, s.P)
}

// amount says what changed, and by how much.
func (m *Metric) amount(s Step) string {
	text := m.Label + " " + signed(s.After-s.Before)
	if m.Unit != "" {
		text += " " + m.Unit
	}
	if s.Percent != nil {
		text += " (" + signed(*s.Percent) + " %)"
	}
	return text
}

// words summarises the whole history.
func (m *Metric) words(rule Rule) string {
	n := len(m.Values)
	switch {
	case n == 0:
		return "no run has this metric"
	case n < rule.Needed:
		return fmt.Sprintf("%d %s so far: a change can be told from chance from %d runs on", n, lab.Plural(n, "run", "runs"), rule.Needed)
	case len(m.Steps) == 0:
		return fmt.Sprintf("no change in %d runs", n)
	}
	return fmt.Sprintf("%d %s in %d runs", len(m.Steps), lab.Plural(len(m.Steps), "change", "changes"), n)
}

// signed formats a difference as the chart on the panel's page does.
func signed(v float64) string {
	switch a := math.Abs(v); {
	case a < 1:
		return lab.Signed(v, 2)
	case a < 10:
		return lab.Signed(v, 1)
	}
	return lab.Signed(v, 0)
}
