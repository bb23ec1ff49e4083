package report

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// strip is the plot of one metric's values in every trial, on one axis. All positions are
// percentages of the width, so the plot needs no script and no fixed size.
type strip struct {
	metric.Entry
	Rows  []stripRow
	Ticks []tick
}

type stripRow struct {
	Arm                      string
	Dots                     []dot
	Summary                  *lab.Summary
	Box, BoxW, Median        string // quartiles and median
	Interval, IntervalW      string // 95 % interval of the median
	HasSummary, HasBand      bool
	Height, Middle, LineTop  int
	LineBottom, BandY, BandH int
}

type dot struct {
	X      string // per cent
	Y      int    // pixels
	Trial  int
	Valid  bool
	Title  string
	Shadow bool
}

type tick struct {
	X, Label, Anchor string
	Inner            bool // neither 0 nor an end
}

const (
	dotRadius = 5
	rowHeight = 64
	// neighbour is the distance, in percent of the width, below which two dots would
	// cover each other.
	neighbour = 1.5
)

// strips makes a strip for each metric that the summary or the trials have.
func strips(run *lab.Run) []strip {
	var out []strip
	for _, m := range metricsOf(run) {
		if s, ok := stripOf(run, m); ok {
			out = append(out, s)
		}
	}
	return out
}

// metricsOf lists the run's metrics: the headline ones, then the others of the summary.
func metricsOf(run *lab.Run) []metric.Entry {
	units := map[string]string{}
	var order []string
	for _, s := range run.Summary {
		if isOfStep(s.Metric) {
			continue // the steps have tables of their own
		}
		if _, ok := units[s.Metric]; !ok {
			order = append(order, s.Metric)
		}
		units[s.Metric] = s.Unit
	}
	var out []metric.Entry
	for _, m := range headline() {
		name := m.String()
		_, known := units[name]
		if known || slices.ContainsFunc(run.Trials, func(t *lab.Trial) bool { return t.Measurement(name) != nil }) {
			out = append(out, describe(name, ""))
			delete(units, name)
		}
	}
	for _, name := range order {
		if unit, ok := units[name]; ok {
			out = append(out, describe(name, unit))
		}
	}
	return out
}

func stripOf(run *lab.Run, m metric.Entry) (strip, bool) {
	s := strip{Entry: m}
	low, high := math.Inf(1), math.Inf(-1)
	for _, t := range run.Trials {
		if v, ok := t.Value(m.Name); ok {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return s, false
	}
	low, high, ticks := niceScale(min(0, low), naturalEnd(m, high))
	x := func(v float64) float64 { return 2 + 96*(v-low)/(high-low) }
	for _, v := range ticks {
		t := tick{X: percent(x(v)), Label: number(v, m.Unit), Anchor: "middle"}
		s.Ticks = append(s.Ticks, t)
	}
	for _, arm := range armsOf(run) {
		row := stripRow{Arm: arm, Height: rowHeight, Middle: rowHeight / 2, LineTop: 10, LineBottom: rowHeight - 10}
		for i := range run.Summary {
			sum := &run.Summary[i]
			if sum.Metric == m.Name && sum.Arm == arm && sum.N > 0 {
				row.Summary, row.HasSummary = sum, true
				row.Box, row.BoxW = percent(x(sum.Q1)), percent(x(sum.Q3)-x(sum.Q1))
				row.Median = percent(x(sum.Median))
				row.Interval, row.IntervalW = percent(x(sum.Low)), percent(x(sum.High)-x(sum.Low))
			}
		}
		row.Dots = dotsOf(run, m, arm, x)
		s.Rows = append(s.Rows, row)
	}
	return s, true
}

func dotsOf(run *lab.Run, m metric.Entry, arm string, x func(float64) float64) []dot {
	type point struct {
		x, v float64
		t    *lab.Trial
	}
	var points []point
	for _, t := range run.Trials {
		if v, ok := t.Value(m.Name); ok && t.Arm == arm {
			points = append(points, point{x(v), v, t})
		}
	}
	sort.SliceStable(points, func(i, j int) bool { return points[i].x < points[j].x })
	// Dots that would cover each other are stacked: 0, −1, +1, −2, … from the middle.
	var dots []dot
	stack, from := 0, math.Inf(-1)
	for _, p := range points {
		if p.x-from < neighbour {
			stack++
		} else {
			stack, from = 0, p.x
		}
		level := (stack + 1) / 2
		if stack%2 == 1 {
			level = -level
		}
		y := rowHeight/2 + level*(2*dotRadius+1)
		y = min(max(y, dotRadius+1), rowHeight-dotRadius-1)
		title := "Trial " + strconv.Itoa(p.t.Number) + ": " + precise(p.v) + " " + m.Unit
		if !p.t.Valid {
			title += " (invalid)"
		}
		dots = append(dots, dot{X: percent(p.x), Y: y, Trial: p.t.Number, Valid: p.t.Valid, Title: title})
	}
	return dots
}

// armsOf lists the arms of a run, the control first.
func armsOf(run *lab.Run) []string {
	var arms []string
	seen := map[string]bool{}
	for _, t := range run.Trials {
		if !seen[t.Arm] {
			seen[t.Arm] = true
			arms = append(arms, t.Arm)
		}
	}
	slices.SortStableFunc(arms, func(a, b string) int { return cmp.Compare(lab.ArmOrder(a), lab.ArmOrder(b)) })
	return arms
}

// niceScale widens low … high to whole steps of 1, 2 or 5 times a power of ten, and lists
// the ticks.
func niceScale(low, high float64) (float64, float64, []float64) {
	if high-low < 1e-9*max(1, math.Abs(high)) {
		pad := max(math.Abs(high)*0.05, 1)
		low, high = low-pad, high+pad
	}
	raw := (high - low) / 5
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := power
	for _, f := range []float64{1, 2, 5, 10} {
		if step = f * power; step >= raw {
			break
		}
	}
	first, last := math.Floor(low/step), math.Ceil(high/step)
	var ticks []float64
	for i := first; i <= last && len(ticks) < 12; i++ {
		ticks = append(ticks, i*step)
	}
	return min(first*step, low), max(last*step, high), ticks // products are rounded
}

func percent(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + "%" }
