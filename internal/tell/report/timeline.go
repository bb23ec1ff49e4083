package report

import (
	"math"
	"strconv"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// timeline shows a trial's events, spans and visual marks on one axis. Positions are in
// percent, so it fits every width.
type timeline struct {
	Ticks  []tick
	Lanes  []lane
	Marks  []bar // metrics, over all lanes
	Height int
	// Axis is the y position of the axis, in pixels.
	Axis int
}

type lane struct {
	Name string
	Y    int
	Bars []bar
}

type bar struct {
	X, W, Title, Label string
	What, From, To     string // in the table; times in ms
	Kind               string // "event", "objective", "task", "detail", "mark"
	Y, TextY           int
	Anchor, Shift      string // of an event's label, which stands beside it
}

const (
	laneHeight = 22
	maxBars    = 2000 // of a trial; more would cover each other
)

// timelineOf lays out a trial; end is the length of the axis in ms.
func timelineOf(t *lab.Trial, zero lab.Time, metrics []metric.Entry) *timeline {
	end := 0.0
	if n := len(t.FrameTimes); n > 0 {
		end = t.FrameTimes[n-1]
	}
	start := 0.0
	widen := func(from, to lab.Time) {
		start, end = min(start, millis(from, zero)), max(end, millis(to, zero))
	}
	for _, e := range t.Events {
		widen(e.Earliest, e.Latest)
	}
	walk(t.Spans, 0, func(s *lab.Span, _ int) { widen(s.Start, s.End) })
	if !(end > start) || end-start > 3.6e6*24 {
		return nil
	}
	low, high, ticks := niceScale(start, end)
	// Rounding up to whole steps of the scale could waste a fifth of the width.
	low, high = max(low, start-(end-start)*0.01), min(high, end+(end-start)*0.01)
	x := func(ms float64) float64 { return 100 * (ms - low) / (high - low) }
	tl := &timeline{}
	for _, v := range ticks {
		if v >= low && v <= high {
			tl.Ticks = append(tl.Ticks, tick{X: percent(x(v)), Label: number(v, "ms"), Anchor: anchor(x(v))})
		}
	}
	place := func(from, to lab.Time, kind, title, label string) bar {
		a, b := x(millis(from, zero)), x(millis(to, zero))
		a, b = min(max(a, 0), 100), min(max(b, 0), 100)
		return bar{X: percent(a), W: percent(max(b-a, 0.15)), Kind: kind, Label: label,
			Title: title + ", " + span(millis(from, zero), millis(to, zero)),
			What:  title, From: stamp(millis(from, zero)), To: stamp(millis(to, zero))}
	}
	total := 0
	events := lane{Name: "Events"}
	for _, e := range t.Events {
		if total++; total > maxBars {
			break
		}
		title := e.Name
		if e.Detail != "" && !e.IsText() {
			title += ": " + e.Detail
		}
		b := place(e.Earliest, e.Latest, "event", title, e.Name)
		b.Anchor, b.Shift = "start", "8"
		if x(millis(e.Latest, zero)) > 85 {
			b.Anchor, b.Shift = "end", "-5"
		}
		events.Bars = append(events.Bars, b)
	}
	if len(events.Bars) > 0 {
		tl.Lanes = append(tl.Lanes, events)
	}
	// Each level of the tree has one lane; overlapping siblings still have titles.
	first := len(tl.Lanes)
	walk(t.Spans, 0, func(s *lab.Span, depth int) {
		if total++; total > maxBars || depth > 12 {
			return
		}
		for len(tl.Lanes) <= first+depth {
			tl.Lanes = append(tl.Lanes, lane{Name: s.Level})
		}
		l := &tl.Lanes[first+depth]
		l.Bars = append(l.Bars, place(s.Start, s.End, kindOf(s.Level), s.Name, s.Name))
	})
	for _, m := range metrics {
		v, ok := t.Value(m.Name)
		if !ok || !m.Instant || v < low || v > high {
			continue
		}
		tl.Marks = append(tl.Marks, bar{X: percent(x(v)), Kind: "mark", Title: m.Label + ": " + precise(v) + " ms"})
	}
	if len(tl.Lanes) == 0 && len(tl.Marks) == 0 {
		return nil
	}
	for i := range tl.Lanes {
		tl.Lanes[i].Y = 4 + i*laneHeight
		for k := range tl.Lanes[i].Bars {
			tl.Lanes[i].Bars[k].Y = tl.Lanes[i].Y + 3
			tl.Lanes[i].Bars[k].TextY = tl.Lanes[i].Y + 15
		}
	}
	tl.Axis = 8 + len(tl.Lanes)*laneHeight
	tl.Height = tl.Axis + 20
	return tl
}

func anchor(x float64) string {
	switch {
	case x < 4:
		return "start"
	case x > 96:
		return "end"
	}
	return "middle"
}

func kindOf(level string) string {
	switch level {
	case "objective", "task":
		return level
	}
	return "detail"
}

// walk visits a tree of spans, parents first.
func walk(spans []*lab.Span, depth int, visit func(*lab.Span, int)) {
	if depth > 64 {
		return
	}
	for _, s := range spans {
		if s == nil {
			continue
		}
		visit(s, depth)
		walk(s.Children, depth+1, visit)
	}
}

// span formats an interval in ms; an instant with bounds is shown as its interval.
func span(from, to float64) string {
	if math.Abs(to-from) < 0.0005 {
		return stamp(from) + " ms"
	}
	return stamp(from) + " … " + stamp(to) + " ms"
}

func stamp(ms float64) string { return grouped(strconv.FormatFloat(ms, 'f', 1, 64)) }

func round3(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*1000) / 1000
}
