// Package noise finds out why equal page loads differ. In flow loads of one
// recording, each with the metrics of its film, the replay's log and, if the
// browser was traced, its own trace, all on one clock. Out flow the
// steps between the key press and the first change on the screen ([Step]), and how much
// each step contributes to the differences between the loads ([Attribute]).
package noise

import (
	"slices"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Load is one load of the page. Times are in ms since the key that began it.
type Load struct {
	Variant string
	Number  int
	Valid   bool
	Reasons []string
	Metrics map[string]float64
	// Marks are instants by name; an instant that was not seen is absent.
	Marks map[string]float64
	// Work is the time spent on each kind of work between the last style sheet and the first change, in ms.
	Work map[string]float64
	// Order lists the page's requests in the order in which they reached the box.
	Order []string
}

// Marks of the box and of the screen, in the order in which they come.
const (
	markAskPage   = "box: page asked for"
	markPageByte  = "box: page's first byte"
	markAskStyle  = "box: first style sheet asked for"
	markStyleSent = "box: last style sheet sent"
	markSeen      = "screen: first change"
)

// New makes a load from a trial, without a trace. Served is the replay's log.
func New(variant string, t *lab.Trial, served []lab.Served, page string) Load {
	l := Load{
		Variant: variant,
		Number:  t.Number,
		Valid:   t.Valid,
		Reasons: t.Invalid,
		Metrics: lab.Values(t.Measurements),
		Marks:   map[string]float64{},
		Work:    map[string]float64{},
	}
	at := func(when lab.Time) float64 { return when.Sub(t.StartTime).Seconds() * 1e3 }
	for _, s := range served {
		if s.Stage == lab.StageBox {
			continue
		}
		l.Order = append(l.Order, strings.TrimPrefix(s.URL, "https://"))
		switch {
		case s.URL == page:
			l.Marks[markAskPage] = at(s.Time)
			l.Marks[markPageByte] = at(s.Time.Add(s.FirstByte))
		case strings.HasSuffix(s.URL, ".css"):
			if _, known := l.Marks[markAskStyle]; !known {
				l.Marks[markAskStyle] = at(s.Time)
			}
			l.Marks[markStyleSent] = max(l.Marks[markStyleSent], at(s.Time.Add(s.Duration)))
		}
	}
	if v, ok := t.Value(metric.FirstChange.String()); ok {
		l.Marks[markSeen] = v
	}
	return l
}

// Common returns the marks that every load has, in the order of their medians.
func Common(loads []Load) (names []string) {
	if len(loads) == 0 {
		return nil
	}
	medians := map[string]float64{}
	for name := range loads[0].Marks {
		var values []float64
		for _, l := range loads {
			if v, ok := l.Marks[name]; ok {
				values = append(values, v)
			}
		}
		if len(values) == len(loads) {
			slices.Sort(values)
			medians[name] = values[len(values)/2]
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		switch {
		case medians[a] < medians[b]:
			return -1
		case medians[a] > medians[b]:
			return 1
		}
		return strings.Compare(a, b)
	})
	return names
}
