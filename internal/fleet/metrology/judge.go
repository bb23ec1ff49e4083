package metrology

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"eidetic/analysis/stats"
	"eidetic/internal/fleet"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/history"
)

// What of a box changed.
const (
	OfLevel  = "level"
	OfSpread = "spread"
	OfThrown = "thrown" // the share of trials that are thrown away
	OfClock  = "clock"
)

// Judgement is what the readings say of a box and its device.
type Judgement struct {
	Health string `json:"health" enum:"unknown,good,drifting,bad"`
	Of     string `json:"of,omitempty" enum:"level,spread,thrown,clock" doc:"What changed"`
	Metric string `json:"metric,omitempty" doc:"The guarded metric that changed most; all guards is the mean of the four of a load"`
	// Percent is relative to the baseline. Its interval takes readings for independent.
	Percent  *lab.Range     `json:"percent,omitempty" doc:"By how many percent the level or the spread is larger than the baseline; of thrown trials, by how many percentage points"`
	Since    time.Time      `json:"since,omitzero" doc:"When the first run after the change started, as well as it is known"`
	SinceRun string         `json:"since_run,omitempty" doc:"ID of that run"`
	Why      string         `json:"why" doc:"The judgement in words"`
	Changed  []history.Fact `json:"changed" doc:"What else changed in that run, the one before or the one after"`
	// Readings are those that count: of the newest reference, since the last Rebase.
	Readings  int    `json:"readings" doc:"Reference runs that the judgement rests on"`
	Reference string `json:"reference,omitempty" doc:"Identifies plan and recording"`
}

// What makes a box bad.
const (
	// BadPercent is the drift of a level, up or down, from which on a box is bad.
	BadPercent = 25
	// badRuns are so many runs in a row of which most trials were thrown away.
	badRuns = 3
	// badClocks are so many of the last badRuns runs in which the clock stepped.
	badClocks = 2
	// leastTrials are the valid trials that a level needs.
	leastTrials = 3
)

// Judge judges a box's device by its readings, in any order. Those of an earlier reference than the newest one's do not
// count.
func Judge(readings []Reading) Judgement {
	w := NewWatch()
	for _, r := range current(readings) {
		w.Add(r)
	}
	return w.Judgement()
}

// current are the readings that count, in order of time: of the newest reference, from the last one on that a person
// accepted.
func current(readings []Reading) []Reading {
	all := slices.SortedStableFunc(slices.Values(readings), func(a, b Reading) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Run, b.Run))
	})
	var out []Reading
	for _, r := range slices.Backward(all) {
		if r.Reference != all[len(all)-1].Reference {
			continue
		}
		out = append(out, r)
		if r.Rebased {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// Rebase returns the readings with a mark at that of a run: a person accepts what the box measures from then on, and
// earlier readings do not count any more. Until there are enough again, the box's health is unknown.
func Rebase(readings []Reading, run string) ([]Reading, error) {
	i := slices.IndexFunc(readings, func(r Reading) bool { return r.Run == run })
	if i < 0 {
		return nil, fmt.Errorf("no reading is of run %.128q: name one of the box's reference runs, such as the one since which it drifts", run)
	}
	out := slices.Clone(readings)
	out[i].Rebased = true
	return out, nil
}

// Watch judges readings as they come, in order of time.
type Watch struct {
	limits   Limits
	readings []Reading
	level    map[string]*chart
	spread   map[string]*chart
	thrown   *chart
}

// NewWatch returns a watch that judges as Judge does.
func NewWatch() *Watch { return NewWatchWith(Usual()) }

// NewWatchWith returns a watch with limits of its own, for simulations.
func NewWatchWith(l Limits) *Watch { return &Watch{limits: l} }

// Smallest standard deviations of a reading that charts believe. A level is known no better than to half a percent, so
// that a change below 1 % is never called; the others have the standard errors of their numbers of trials.
const leastDeviation = 0.005

// Add takes the next reading.
func (w *Watch) Add(r Reading) {
	if w.thrown == nil {
		w.level, w.spread = map[string]*chart{}, map[string]*chart{}
		w.thrown = &chart{Limits: w.limits}
	}
	i := len(w.readings)
	w.readings = append(w.readings, r)
	n := float64(r.Trials)
	// The arcsine makes the spread of a share depend on the number of trials alone (Anscombe 1948).
	w.thrown.add(math.Asin(math.Sqrt((float64(r.Thrown)+0.375)/(n+0.75))), 0.5/math.Sqrt(n+0.5), i)
	for _, l := range r.Levels {
		if l.N < leastTrials || !(l.Median > 0) {
			continue
		}
		level, spread := w.level[l.Metric], w.spread[l.Metric]
		if level == nil {
			level, spread = &chart{Limits: w.limits, both: true, least: leastDeviation}, &chart{Limits: w.limits}
			w.level[l.Metric], w.spread[l.Metric] = level, spread
		}
		of := l.Spread / l.Median
		level.add(math.Log(l.Median), math.Sqrt(math.Pi/2)*of/math.Sqrt(float64(l.N)), i)
		spread.add(math.Log(max(of, leastDeviation)), math.Sqrt(0.5/float64(l.N-1)), i)
	}
	w.addTogether(r, i)
}

// together is the chart of what the guards of a load have in common: the mean of their logarithms, which is steadier
// than each of them.
const together = "all guards"

// addTogether adds to that chart, if the reading has all of them.
func (w *Watch) addTogether(r Reading, i int) {
	var sum, err float64
	guards := metric.Guards()
	for _, g := range guards {
		l, ok := r.level(g.String())
		if !ok || l.N < leastTrials || !(l.Median > 0) {
			return
		}
		sum += math.Log(l.Median)
		err += math.Sqrt(math.Pi/2) * l.Spread / l.Median / math.Sqrt(float64(l.N))
	}
	c := w.level[together]
	if c == nil {
		c = &chart{Limits: w.limits, both: true, least: leastDeviation}
		w.level[together] = c
	}
	n := float64(len(guards))
	c.add(sum/n, err/n/math.Sqrt2, i)
}

// Judgement is that of the readings so far.
func (w *Watch) Judgement() Judgement {
	j := Judgement{Health: fleet.HealthUnknown, Changed: []history.Fact{}, Readings: len(w.readings)}
	if len(w.readings) == 0 {
		j.Why = fmt.Sprintf("the box has not measured the reference yet; its health is known from %d reference runs on", w.limits.Baseline)
		return j
	}
	newest := w.readings[len(w.readings)-1]
	j.Reference = newest.Reference
	if w.isUnusable(&j) || w.hasWildClock(&j) || w.hasDrift(&j) {
		return j
	}
	most := 0
	for _, c := range w.level {
		if c.known() {
			j.Health, j.Why = fleet.HealthGood, fmt.Sprintf("level, spread and share of trials thrown away are what they were, in %d reference runs", j.Readings)
			return j
		}
		most = max(most, len(c.base))
	}
	j.Why = fmt.Sprintf("%d of the %d reference runs that a baseline needs", most, w.limits.Baseline)
	return j
}

// isUnusable says whether most trials were thrown away in several runs in a row.
func (w *Watch) isUnusable(j *Judgement) bool {
	n := len(w.readings)
	run := 0
	for run < n && 2*w.readings[n-1-run].Thrown > w.readings[n-1-run].Trials {
		run++
	}
	if run < badRuns {
		return false
	}
	first := w.readings[n-run]
	j.Health, j.Of, j.Since, j.SinceRun = fleet.HealthBad, OfThrown, first.At, first.Run
	j.Why = fmt.Sprintf("most trials were thrown away in each of the last %d reference runs: the reasons are in their reports", run)
	j.Changed = w.changedAt(n - run)
	j.Why += w.causes(n - run)
	return true
}

// hasWildClock says whether the wall clock steps again and again.
func (w *Watch) hasWildClock(j *Judgement) bool {
	n := len(w.readings)
	steps, first := 0, 0
	for i := n - 1; i >= max(n-badRuns, 0); i-- {
		if w.readings[i].ClockSteps > 0 {
			steps, first = steps+1, i
		}
	}
	if steps < badClocks {
		return false
	}
	j.Health, j.Of, j.Since, j.SinceRun = fleet.HealthBad, OfClock, w.readings[first].At, w.readings[first].Run
	j.Why = fmt.Sprintf("the wall clock stepped in %d of the last %d reference runs: let one time service, and no other, set the box's clock", steps, min(n, badRuns))
	j.Changed = w.changedAt(first)
	return true
}

// hasDrift says whether a chart calls a change. The level goes before the spread, and that before the thrown trials; of
// the metrics the one that changed most.
func (w *Watch) hasDrift(j *Judgement) bool {
	for _, kind := range []struct {
		of     string
		charts map[string]*chart
	}{{OfLevel, w.level}, {OfSpread, w.spread}, {OfThrown, map[string]*chart{"": w.thrown}}} {
		var worst *chart
		var shift lab.Range
		for _, name := range slices.SortedFunc(maps.Keys(kind.charts), func(a, b string) int {
			return cmp.Or(metric.GuardPlace(a)-metric.GuardPlace(b), cmp.Compare(a, b))
		}) {
			c := kind.charts[name]
			if c.drift == 0 {
				continue
			}
			if s := c.shift(); worst == nil || math.Abs(s.Value) > math.Abs(shift.Value) {
				worst, shift, j.Metric = c, s, name
			}
		}
		if worst == nil {
			continue
		}
		j.Health, j.Of = fleet.HealthDrifting, kind.of
		at := worst.readings[worst.changed]
		j.Since, j.SinceRun, j.Changed = w.readings[at].At, w.readings[at].Run, w.changedAt(at)
		w.tell(j, shift, at)
		return true
	}
	return false
}

// shift is how much larger the newest values since the change are than the baseline, on the chart's scale.
func (c *chart) shift() lab.Range {
	since := c.values[max(c.changed, len(c.values)-2*recent):]
	if c.back > 0 && c.backFrom > c.changed {
		since = c.values[max(c.changed, c.backFrom-2*recent):c.backFrom]
	}
	s, err := stats.ShiftOfTwo(c.base, since, 0.95)
	if err != nil { // neither is empty, and all values are finite
		centre, _ := c.level()
		v := middle(since) - centre
		return lab.Range{Value: v, Low: v, High: v}
	}
	return lab.Range{Value: s.Value, Low: s.Low, High: s.High, Confidence: s.Confidence}
}

// tell puts a drift into words and numbers.
func (w *Watch) tell(j *Judgement, shift lab.Range, at int) {
	percent := lab.Range{
		Value: 100 * math.Expm1(shift.Value), Low: 100 * math.Expm1(shift.Low), High: 100 * math.Expm1(shift.High), Confidence: shift.Confidence,
	}
	label := metric.Label(j.Metric)
	switch j.Of {
	case OfLevel:
		j.Percent = &percent
		trend := "slower"
		if percent.Value < 0 {
			trend = "faster"
		}
		if metric.Parse(j.Metric).Entry().Better != metric.Lower && j.Metric != together {
			trend = "not as it was"
		}
		j.Why = fmt.Sprintf("the box is %s: %s %s %% against its baseline (95 %% interval %s to %s) since %s", trend, label,
			lab.Signed(percent.Value, 1), lab.Signed(percent.Low, 1), lab.Signed(percent.High, 1), j.SinceRun)
		if math.Abs(percent.Value) >= BadPercent {
			j.Health = fleet.HealthBad
			j.Why += fmt.Sprintf("; %d %% and more is bad", BadPercent)
		}
	case OfSpread:
		j.Percent = &percent
		j.Why = fmt.Sprintf("the box is less steady: the spread of %s is %.1f times that of its baseline since %s", label, math.Exp(shift.Value), j.SinceRun)
	case OfThrown:
		before, after := w.share(0, at), w.share(at, len(w.readings))
		j.Percent = &lab.Range{Value: 100 * (after - before), Low: 100 * (after - before), High: 100 * (after - before)}
		j.Why = fmt.Sprintf("%.0f %% of the trials were thrown away since %s, %.0f %% before", 100*after, j.SinceRun, 100*before)
	}
	j.Why += w.causes(at)
}

// share is the share of trials thrown away in some readings.
func (w *Watch) share(from, to int) float64 {
	trials, thrown := 0, 0
	for _, r := range w.readings[from:to] {
		trials, thrown = trials+r.Trials, thrown+r.Thrown
	}
	return float64(thrown) / float64(max(trials, 1))
}

// changedAt lists what changed in a reading, the one before or the one after.
func (w *Watch) changedAt(i int) []history.Fact {
	return history.Differences(w.readings[max(i-2, 0)].Facts, w.readings[min(i+1, len(w.readings)-1)].Facts)
}

// causes names what else of the machine is not as it was before a reading.
func (w *Watch) causes(at int) string {
	before, after := w.readings[:at], w.readings[at:]
	if len(before) == 0 {
		return ""
	}
	text := ""
	for _, c := range []struct {
		name  string
		of    func(Reading) float64
		least float64
		unit  string
		scale float64
	}{
		{"stolen time", func(r Reading) float64 { return r.Stolen }, 0.01, " %", 100},
		{"time spent waiting for a processor", func(r Reading) float64 { return deref(r.Waiting) }, 0.05, " %", 100},
		{"lateness of link or recorder", func(r Reading) float64 { return r.Blur }, 5, " ms", 1},
		{"trials with a processor slowed down by heat", func(r Reading) float64 { return float64(r.Hot) / float64(max(r.Trials, 1)) }, 0.2, " %", 100},
	} {
		var was, is []float64
		for _, r := range before[max(len(before)-2*recent, 0):] {
			was = append(was, c.of(r))
		}
		for _, r := range after[max(len(after)-recent, 0):] {
			is = append(is, c.of(r))
		}
		if a, b := middle(was), middle(is); b-a >= c.least {
			text += fmt.Sprintf("; %s rose from %.1f to %.1f%s", c.name, c.scale*a, c.scale*b, c.unit)
		}
	}
	return text
}

func deref(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
