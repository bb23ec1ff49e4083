package report

import (
	"fmt"
	"math"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// gauge is an estimate drawn with its interval, on an axis from 0. Positions are percentages of the width, so that it
// needs no script.
type gauge struct {
	Kind           string // "good", "bad" or "plain"
	Zero, At       string
	Low, LowW      string // the interval, or the range of the trials
	HasLow, IsSpan bool   // IsSpan is set for the range of too few trials for an interval
	Ticks          []tick
	Words          string // what it shows, for who cannot see it
}

// answer is what the report's first sentence rests on.
type answer struct {
	Label, Value, Unit string // "" where the sentence has the number
	Says               string
	Gauge              *gauge
}

// gaugeOf draws a value and an interval in percent of an axis that holds 0.
func gaugeOf(m metric.Entry, at, low, high float64) *gauge {
	from, to, ticks := niceScale(min(0, at, low), naturalEnd(m, max(0, at, high)))
	if !(to > from) || math.IsInf(to-from, 0) {
		return nil
	}
	x := func(v float64) float64 { return 6 + 88*(v-from)/(to-from) }
	g := &gauge{Kind: "plain", Zero: percent(x(0)), At: percent(x(at)), HasLow: high > low}
	g.Low, g.LowW = percent(x(low)), percent(x(high)-x(low))
	for i, v := range ticks {
		g.Ticks = append(g.Ticks, tick{percent(x(v)), number(v, m.Unit), "middle", v != 0 && i > 0 && i < len(ticks)-1})
	}
	return g
}

// gaugeOfSummary draws an arm's median.
func gaugeOfSummary(m metric.Entry, s *lab.Summary) *gauge {
	low, high := s.Low, s.High
	if !s.Bounded() {
		low, high = s.Min, s.Max
	}
	g := gaugeOf(m, s.Median, low, high)
	if g == nil {
		return nil
	}
	what := "95 % interval"
	if g.IsSpan = !s.Bounded(); g.IsSpan {
		what = "all trials"
	}
	g.Words = fmt.Sprintf("%s: median %s %s, %s %s to %s", m.Label, number(s.Median, m.Unit), m.Unit, what, number(low, m.Unit),
		number(high, m.Unit))
	return g
}

// gaugeOfEffect draws a difference.
func gaugeOfEffect(m metric.Entry, c *change) *gauge {
	e := c.Effect
	if e.Shift.Confidence == 0 {
		return nil
	}
	low, high := e.Shift.Low, e.Shift.High
	if !c.Bounded() {
		low, high = e.Shift.Value, e.Shift.Value
	}
	g := gaugeOf(metric.Entry{Unit: m.Unit}, e.Shift.Value, low, high)
	if g == nil {
		return nil
	}
	for i, t := range g.Ticks {
		if t.Label != "0" && !strings.HasPrefix(t.Label, "−") {
			g.Ticks[i].Label = "+" + t.Label
		}
	}
	g.Kind, g.Words = c.Kind, fmt.Sprintf("%s: difference %s %s", m.Label, c.Shift, m.Unit)
	if c.Bounded() {
		g.Words += fmt.Sprintf(", 95 %% interval %s to %s", c.Low, c.High)
	}
	return g
}

// naturalEnd is where an axis ends: at the whole of a share, else at the largest value.
func naturalEnd(m metric.Entry, most float64) float64 {
	switch {
	case m.Unit == "share" && most <= 1:
		return 1
	case m.Unit == "%" && most <= 100 && m.Name != "":
		return 100
	}
	return most
}

// answerOf is the number that the report's first sentence rests on.
func answerOf(run *lab.Run, changes []change) *answer {
	if run.Comparison != nil {
		telling := run.Comparison.Telling()
		for i := range changes {
			c := &changes[i]
			if telling == nil || c.Effect != telling {
				continue
			}
			m := describe(telling.Metric, telling.Unit)
			return &answer{Label: m.Label + ", treatment less control", Value: c.Shift, Unit: m.Unit, Says: sentence(run.Comparison.Detail),
				Gauge: gaugeOfEffect(m, c)}
		}
		return nil
	}
	m, s := firstMedian(run)
	if s == nil {
		return nil
	}
	return &answer{Says: sentence(spreadOf(s, m)), Gauge: gaugeOfSummary(m, s)}
}

// firstMedian is the first metric of which the first arm has a median.
func firstMedian(run *lab.Run) (metric.Entry, *lab.Summary) {
	if arms := armsOf(run); len(arms) > 0 {
		for _, m := range metricsOf(run) {
			if s := summaryOf(run, m.Name, arms[0]); s != nil {
				return m, s
			}
		}
	}
	return metric.Entry{}, nil
}

// spreadOf says within what a median is known.
func spreadOf(s *lab.Summary, m metric.Entry) string {
	switch {
	case s.N == 1:
		return "in the only valid trial"
	case s.Bounded():
		return fmt.Sprintf("median of %d valid trials; 95 %% interval %s to %s %s", s.N, number(s.Low, m.Unit), number(s.High, m.Unit), m.Unit)
	}
	return fmt.Sprintf("median of %d valid trials, too few for a 95 %% interval; they lie between %s and %s %s",
		s.N, number(s.Min, m.Unit), number(s.Max, m.Unit), m.Unit)
}
