// Package history says whether a page has become slower from run to run. Its input is
// the runs of a series (one name, page, link, device and browser) from the store's index, each
// with the medians of its control and, of a comparison, those of its treatment and the differences. Its
// output is, for each metric and each of these three lines, the values in order
// of time and the points at which their level changed, with what else changed there: a
// step that comes with a new browser may be the browser's.
//
// Values are medians of runs or estimates of their comparisons, never single page loads: the loads of one run share the
// state of the machine at that time, so they are not independent. The change points are
// those of package analysis/change.
package history

import (
	"context"
	"math"
	"slices"
	"time"

	"eidetic/analysis/change"
	"eidetic/analysis/stats"
	"eidetic/internal/keep/store"
	"eidetic/internal/metric"
)

const (
	// Level is the significance level of a change point of a series with one line: 0.05 shared by the four guards.
	// So at most one in twenty series in which nothing changes shows a change in any
	// guard, as with a verdict. See [RuleOf] for series of comparisons.
	Level = 0.05 / 4
	// Least is the fewest runs between two change points, and after the last one.
	Least = 3
	// MaxRuns bounds a series: only the newest runs count.
	MaxRuns = 500
)

// RunPoint is one run of a series.
type RunPoint struct {
	ID     string    `json:"id"`
	Wall   time.Time `json:"wall" doc:"When it started"`
	Trials int       `json:"trials" doc:"Of the control"`
	Valid  int       `json:"valid" doc:"Those that entered the medians"`
	Report bool      `json:"report" doc:"Whether it has a report.html"`
	// Revision is of runs for which the box deployed one.
	Revision string `json:"revision,omitempty" doc:"The revision that the box deployed for it"`
	// Changed lists what differs from the run before.
	Changed []Fact `json:"changed" doc:"What in environment, link and plan is not as it was in the run before"`
}

// Fact is a change that could explain a step.
type Fact struct {
	Name   string `json:"name" example:"browser"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Value is a metric's median in one run, or by how much that of the treatment is larger.
type Value struct {
	Run    string  `json:"run" doc:"Identifier of the run"`
	N      int     `json:"n" doc:"Valid trials; of a difference, pairs of them"`
	Median float64 `json:"median" doc:"Of a difference, the estimate of the run's comparison (Hodges–Lehmann)"`
	Low    float64 `json:"low" doc:"Of the 95 % interval of the median; the smallest value where there are fewer than six trials. Of a difference, the interval of the comparison"`
	High   float64 `json:"high"`
}

// Step is a change of a metric's level.
type Step struct {
	Run    string    `json:"run" doc:"The first run of the new level"`
	Wall   time.Time `json:"wall" doc:"When that started"`
	P      float64   `json:"p" doc:"Of the permutation test: how often chance alone does as much"`
	Before float64   `json:"before" doc:"Median of the runs since the step before this one"`
	After  float64   `json:"after" doc:"Median of the runs up to the next step"`
	// Low and High bound how much larger the new level is.
	Low     float64  `json:"low" doc:"Of the 95 % interval of the difference between the two levels (Hodges–Lehmann)"`
	High    float64  `json:"high"`
	Percent *float64 `json:"percent,omitempty" doc:"Of the change, relative to before; of a difference, to the control's median"`
	Trend   string   `json:"trend" enum:"slower,faster,larger,smaller"`
	Text    string   `json:"text" doc:"The step as a sentence" example:"SpeedIndex +84 ms (+9 %) since 20261121-091400-checkout, p = 0.004"`
	// Near is what changed in the environment around the step, whose place is known to
	// about one run.
	Near []Near `json:"near" doc:"What changed in that run, the one before or the one after"`
}

// Near is what changed in a run next to a step.
type Near struct {
	Run     string `json:"run"`
	Changed []Fact `json:"changed"`
}

// Metric is the history of one line of a number.
type Metric struct {
	Metric string  `json:"metric" example:"speed_index_ms"`
	Line   string  `json:"line" enum:"control,treatment,difference" doc:"The level of an arm, or treatment less control"`
	Unit   string  `json:"unit"`
	Label  string  `json:"label" doc:"The name for people"`
	Values []Value `json:"values" doc:"One for each run that has the metric, in order of time"`
	Steps  []Step  `json:"steps" doc:"Where its level changed"`
	Text   string  `json:"text" doc:"What there is to say as a whole" example:"no change in 34 runs"`
}

// Available is a metric that runs of the series have.
type Available struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	Label  string `json:"label"`
}

// Metrics lists the metrics that have a history: guards first, then the others in the
// order of the newest run that has them.
func Metrics(past []store.Past) []Available {
	out := []Available{}
	for _, p := range slices.Backward(past) {
		for _, s := range p.Summary {
			if !slices.ContainsFunc(out, func(a Available) bool { return a.Metric == s.Metric }) {
				out = append(out, Available{s.Metric, s.Unit, metric.Label(s.Metric)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Available) int { return metric.GuardPlace(a.Metric) - metric.GuardPlace(b.Metric) })
	return out
}

// Runs lists the runs, each with what changed since the run before. past is in order of time.
func Runs(past []store.Past) []RunPoint {
	out := make([]RunPoint, 0, len(past))
	for i, p := range past {
		r := RunPoint{ID: p.ID, Wall: p.Wall, Trials: p.Trials, Valid: p.Valid, Report: p.Report, Revision: p.Revision, Changed: []Fact{}}
		if i > 0 {
			r.Changed = Differences(past[i-1].Facts, p.Facts)
		}
		out = append(out, r)
	}
	return out
}

// Differences lists the facts that both runs have with different values. A fact that only
// one of them has did not change: versions of the appliance record different facts.
func Differences(before, after map[string]string) []Fact {
	out := []Fact{}
	for name, now := range after {
		if was, ok := before[name]; ok && was != now {
			out = append(out, Fact{name, was, now})
		}
	}
	slices.SortFunc(out, func(a, b Fact) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// Of returns the history of a line of a metric. past is in order of time.
func (f *Finder) Of(ctx context.Context, past []store.Past, runs []RunPoint, name, line string) (Metric, error) {
	m := Metric{Metric: name, Line: line, Label: labelOf(name, line), Values: []Value{}, Steps: []Step{}}
	at := []int{} // index in runs of each value
	var medians, bases []float64
	for i, p := range past {
		if v, unit, base, ok := valueOf(p, name, line); ok {
			m.Unit, m.Values = unit, append(m.Values, v)
			at, medians, bases = append(at, i), append(medians, v.Median), append(bases, base)
		}
	}
	rule := RuleOf(past)
	points, err := f.points(ctx, medians, rule)
	if err != nil {
		return m, err
	}
	for i, p := range points {
		from, to := 0, len(medians)
		if i > 0 {
			from = points[i-1].Index
		}
		if i+1 < len(points) {
			to = points[i+1].Index
		}
		shift, err := stats.ShiftOfTwo(medians[from:p.Index], medians[p.Index:to], 0.95)
		if err != nil {
			return m, err
		}
		base := p.Before
		if line == Difference {
			base = stats.Median(bases[from:p.Index])
		}
		s := m.step(p, base, runs, at[p.Index])
		s.Low, s.High = shift.Low, shift.High
		m.Steps = append(m.Steps, s)
	}
	m.Text = m.words(rule)
	return m, nil
}

// step describes a change point at the i-th run. Its percentage is relative to base.
func (m *Metric) step(p change.Point, base float64, runs []RunPoint, i int) Step {
	s := Step{Run: runs[i].ID, Wall: runs[i].Wall, P: p.P, Before: p.Before, After: p.After, Trend: trend(m.Metric, p.After-p.Before),
		Near: []Near{}}
	s.setPercent(base)
	for _, r := range runs[max(i-1, 0):min(i+2, len(runs))] {
		if len(r.Changed) > 0 {
			s.Near = append(s.Near, Near{r.ID, r.Changed})
		}
	}
	s.Text = m.sentence(s)
	return s
}

func (s *Step) setPercent(base float64) {
	if percent := 100 * (s.After - s.Before) / math.Abs(base); !math.IsInf(percent, 0) && !math.IsNaN(percent) {
		s.Percent = &percent
	}
}
