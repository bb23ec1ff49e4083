// Package verdict decides what a run with two arms found: did the change make it
// slower? Its input is the trials of a run and its plan; its output is a lab.Comparison
// with numbers and a sentence for people.
//
// The rules are fixed before any value is seen. Trials are compared within the blocks in
// which their order was randomised; invalid trials are left out, whatever their values.
// The guards are four load times, none of which may get worse. Their p-values are
// corrected by Holm's method; those of all other metrics, which are exploratory, by
// Benjamini and Hochberg's. A plan may name further guards. A guard has changed if its corrected p-value is at most
// Level; the interval of its shift, which inverts the test, then lies on one side of 0.
// The statistics are those of analysis/stats; docs/metrics.md has their sources.
package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

const (
	// Level is the probability of a false alarm in a run whose arms are equal.
	Level = 0.05
	// Least is the fewest pairs for a verdict: with five, neither arm's median has a 95 %
	// interval.
	Least = lab.LeastForInterval
	// leastForModes is the fewest pairs for counting modes: with fewer, one or two outliers
	// look like a mode.
	leastForModes = 20
)

// Of compares the arms of a run. It returns nil if the run has one arm.
func Of(run *lab.Run, seed uint64) *lab.Comparison {
	return compareArms(run, levelLeft(run), seed)
}

// compareArms is Of, with the level of this one comparison.
func compareArms(run *lab.Run, level float64, seed uint64) *lab.Comparison {
	if !hasTreatment(run) {
		return nil
	}
	if run.Plan.IsMany() {
		c, _ := compareCells(run, level, seed)
		return c
	}
	c, blocks := begun(run, seed)
	t := test(c, blocks, ruleOf(run, level))
	correct(c.Effects, Level/level)
	t.find()
	c.Verdict = decide(c.Effects)
	conclude(c, run, level)
	return c
}

// hasTreatment says whether the run has trials of a second arm.
func hasTreatment(run *lab.Run) bool {
	return slices.ContainsFunc(run.Trials, func(t *lab.Trial) bool { return t.Arm == lab.Treatment })
}

// begun is the comparison of a run before anything is judged.
func begun(run *lab.Run, seed uint64) (*lab.Comparison, []*block) {
	blocks, leftOut := sorted(run.Trials)
	c := &lab.Comparison{LeftOut: leftOut, Level: Level, Seed: seed, Effects: []lab.Effect{}}
	c.Margin, c.Margins = run.Plan.Margin, run.Plan.Margins
	for _, b := range blocks {
		c.Pairs += min(len(b.control), len(b.treatment))
	}
	c.Control, c.Treatment = differences(run)
	return c, blocks
}

// conclude puts a comparison that was judged into words.
func conclude(c *lab.Comparison, run *lab.Run, level float64) {
	if c.Verdict == lab.Unknown {
		c.Missing = missing(c, level)
	}
	c.Headline, c.Detail = words(c, ofArms(c))
	if p := run.Plan.Primary; p != "" && !slices.ContainsFunc(c.Effects, func(e lab.Effect) bool { return e.Guard }) {
		c.Detail = fmt.Sprintf("no valid trial has the primary metric, %s", lab.Clip(p, 120))
	}
	c.Detail = joined(c.Detail, sayServers(c, run))
	if text := machineOf(run); text != "" {
		c.Detail += "; " + text
	}
	if n := len(run.Looks); n > 0 && run.Looks[n-1].Known {
		c.Detail += fmt.Sprintf("; known at look %d of %d, so that the run ended after %d of %d pairs", n, run.Plan.Looks, c.Pairs, run.Plan.Trials)
	}
}

// rule is how effects become findings.
type rule struct {
	level float64 // of this comparison: Level, or the part of it that a look spends
	// A shift of at most margin, in percent of the control's median, counts as none; margins are those of metrics that
	// have another. Where that settles, a guard within the margin is equivalent, and one that may be within it or not
	// is unknown.
	margin  float64
	margins map[string]float64
	settles bool
	primary string   // the only guard; "" for all
	asked   []string // further guards
	times   int      // by how much the family of guards is larger, because other comparisons share the level; 0 is 1
	// covariates are the plan's, to be taken out of guards.
	covariates []string
	// recordings says that the test counts recordings, of which each arm has several, and not the trials that replay
	// them: how fast a server was on one occasion is one sample, however often it is replayed.
	recordings bool
	// scales are the ratios of what two boxes measure, by metric; metrics without one are left out. nil: one box
	// measured both.
	scales map[string]stats.Scale
}

// ruleOf is the rule of a run's plan.
func ruleOf(run *lab.Run, level float64) rule {
	return rule{
		level: level, margin: run.Plan.Margin, margins: run.Plan.Margins, settles: run.Plan.Margin > 0,
		primary: run.Plan.Primary, asked: asked(run),
		covariates: run.Plan.Covariates, recordings: run.Plan.Recordings > 1 && run.Plan.Timing != lab.TimingShared,
	}
}

// marginOf is the margin of a metric.
func (r rule) marginOf(metric string) float64 {
	if margin, ok := r.margins[metric]; ok {
		return margin
	}
	return r.margin
}

// tested is a comparison whose effects have p-values and no findings yet.
type tested struct {
	*lab.Comparison
	rule
	sure   map[string]lab.Range // the shifts of guards, for all of them together
	higher map[string]bool      // the metrics of which more is better
}

// test fills in the effects.
func test(c *lab.Comparison, blocks []*block, r rule) *tested {
	return testOf(c, blocks, r, func(_ compared, values []stats.Block, p stats.Plan) (stats.Comparison, error) {
		return stats.Compare(values, p)
	})
}

// testOf is test by another comparison of a metric's values.
func testOf(
	c *lab.Comparison, blocks []*block, r rule, compare func(compared, []stats.Block, stats.Plan) (stats.Comparison, error),
) *tested {
	all := metrics(blocks, r)
	guards := 0
	for _, m := range all {
		if m.guarded {
			guards++
		}
	}
	if !r.recordings {
		c.Covariates = balanced(blocks, r, c.Seed)
	}
	t := &tested{c, r, map[string]lab.Range{}, map[string]bool{}}
	for _, m := range all {
		t.higher[m.name] = m.entry.Better == metric.Higher
		t.measure(m, familyOf(m, guards, r), func(p stats.Plan) (lab.Effect, bool) {
			if r.recordings {
				return effectOfRecordings(m, blocks, p)
			}
			p.Covariates = covariatesOf(m, blocks, c.Covariates)
			return effect(m, blocks, p, compare)
		})
	}
	return t
}

// measure adds the effect on a metric, which shares the level with others.
func (t *tested) measure(m compared, family int, of func(stats.Plan) (lab.Effect, bool)) {
	plan := stats.Plan{Seed: t.Seed, Family: family, Confidence: 1 - t.level}
	if scale, ok := t.scales[m.name]; ok {
		plan.Scale = &scale
	}
	e, ok := of(plan)
	if !ok && !m.guarded {
		return
	}
	if ok && m.guarded && t.settles {
		plan.Confidence = 1 - t.level/float64(plan.Family)
		if corrected, _ := of(plan); corrected.Shift.Confidence >= plan.Confidence-rounding {
			t.sure[m.name] = corrected.Shift
		}
	}
	// A guard is listed even if there is nothing to compare: the change may be what
	// made it disappear.
	if m.guarded && e.Pairs < t.Pairs {
		e.Warnings = append(e.Warnings, fmt.Sprintf("%d of %d pairs have it", e.Pairs, t.Pairs))
	}
	t.Effects = append(t.Effects, e)
}

// find classifies the effects, whose p-values are corrected.
func (t *tested) find() {
	for i := range t.Effects {
		e := &t.Effects[i]
		if e.Guard && e.Shift.Confidence == 0 { // nothing of it could be tested, such as recordings that no trial names
			e.Finding = lab.Unknown
			continue
		}
		if e.Recordings > 0 && e.Shift.Confidence < 1-t.level-rounding { // even the clearest order of so few could be chance
			e.Finding = lab.Unknown
			continue
		}
		least := t.marginOf(e.Metric) / 100 * math.Abs(e.Control)
		if e.Guard && t.settles {
			e.Finding = t.settled(e, t.sure[e.Metric], least, t.higher[e.Metric])
		} else {
			e.Finding = finding(e, least, t.higher[e.Metric])
		}
	}
}

// rounding is how far a confidence may be below what was asked for.
const rounding = 1e-9

// settled classifies the effect on a guard against the margin. That it is larger is said of the
// interval for all guards together, so that one false alarm among them has the level. That
// all are within the margin needs no correction, as it is false if it is false of one.
func (r rule) settled(e *lab.Effect, sure lab.Range, least float64, higher bool) string {
	up, down := lab.Slower, lab.Faster
	if higher {
		up, down = down, up
	}
	switch {
	case e.Pairs < Least || e.Shift.Confidence < 1-r.level-rounding: // few pairs have an interval of less confidence
		return lab.Unknown
	case sure.Low > least:
		return up
	case sure.High < -least:
		return down
	case e.Shift.Low >= -least && e.Shift.High <= least:
		return lab.Equivalent
	}
	return lab.Unknown
}

// asked lists the metrics that the plan of a run makes guards.
func asked(run *lab.Run) []string {
	if run.Plan.Measure == nil {
		return nil
	}
	return run.Plan.Measure.Guards
}

// familyOf is how many tests a metric's is corrected for.
func familyOf(m compared, guards int, r rule) int {
	switch {
	case !m.guarded:
		return 1
	case r.primary != "":
		return max(r.times, 1)
	}
	return max(guards, len(metric.Guards())) * max(r.times, 1)
}

// block holds the valid trials of one block.
type block struct{ control, treatment []*lab.Trial }

// sorted groups trials by block, and counts the invalid ones.
func sorted(trials []*lab.Trial) (all []*block, leftOut int) {
	byNumber := slices.Clone(trials)
	slices.SortStableFunc(byNumber, func(a, b *lab.Trial) int { return cmp.Compare(a.Number, b.Number) })
	known := map[int]*block{}
	for _, t := range byNumber {
		if t.IsExtra() { // of no statistic, and in blocks of their own
			continue
		}
		b := known[t.Block]
		if b == nil {
			b = &block{}
			known[t.Block], all = b, append(all, b)
		}
		switch {
		case !t.Valid:
			leftOut++
		case t.Arm == lab.Control:
			b.control = append(b.control, t)
		case t.Arm == lab.Treatment:
			b.treatment = append(b.treatment, t)
		}
	}
	return all, leftOut
}

// Pairs lists the pairs of valid trials, control and treatment, in the order of the run: in each block the first of
// both arms, the second of both, and so on.
func Pairs(trials []*lab.Trial) (all [][2]*lab.Trial) {
	blocks, _ := sorted(trials)
	for _, b := range blocks {
		for i := range min(len(b.control), len(b.treatment)) {
			all = append(all, [2]*lab.Trial{b.control[i], b.treatment[i]})
		}
	}
	return all
}

// compared is a metric that can be compared.
type compared struct {
	name, unit string
	entry      metric.Entry
	guarded    bool
}

// metrics lists the guards, those that were asked for last, and then, by name, the other metrics of
// valid trials. If one is the primary one, it comes first and is the only guard.
func metrics(blocks []*block, r rule) []compared {
	out := everyMetric(blocks, r.asked)
	if r.scales != nil {
		out = slices.DeleteFunc(out, func(m compared) bool { _, ok := r.scales[m.name]; return !ok })
	}
	if r.primary == "" {
		return out
	}
	for i := range out {
		out[i].guarded = out[i].name == r.primary
	}
	slices.SortStableFunc(out, func(a, b compared) int {
		switch {
		case a.guarded == b.guarded:
			return 0
		case a.guarded:
			return -1
		}
		return 1
	})
	return out
}

// everyMetric lists them as if none were the primary one.
func everyMetric(blocks []*block, asked []string) []compared {
	units := map[string]string{}
	for _, b := range blocks {
		for _, t := range slices.Concat(b.control, b.treatment) {
			for _, m := range t.Measurements {
				units[m.Name] = m.Unit
			}
		}
	}
	var out []compared
	collect := func(name string, guarded bool) {
		if unit, ok := units[name]; ok {
			out = append(out, compared{name, unit, metric.Parse(name).Entry(), guarded})
			delete(units, name)
		}
	}
	for _, g := range metric.Guards() {
		collect(g.String(), true)
	}
	for _, name := range stepGuards(blocks) {
		collect(name, true)
	}
	for _, name := range slices.Sorted(maps.Keys(units)) {
		if metric.Parse(name).IsGuardOf(asked) {
			collect(name, true)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(units)) {
		collect(name, false)
	}
	return out
}

// stepGuards lists the guards of a journey's steps, in the order of the steps.
func stepGuards(blocks []*block) (names []string) {
	for _, b := range blocks {
		for _, t := range slices.Concat(b.control, b.treatment) {
			for _, m := range t.Measurements {
				if r := metric.Parse(m.Name); r.IsGuard() && r.Step != "" {
					names = append(names, m.Name)
				}
			}
		}
	}
	return names
}

// effect compares a metric over the trials that have it. It returns false, with numbers
// that show no difference, if there are too few trials for any test.
func effect(
	m compared, blocks []*block, plan stats.Plan, compare func(compared, []stats.Block, stats.Plan) (stats.Comparison, error),
) (lab.Effect, bool) {
	values, step := valuesOf(m, blocks)
	plan.Step = step
	c, err := compare(m, values, plan)
	if err != nil {
		return untested(m, values), false // fewer than two pairs, or values that are not finite
	}
	return effectOf(m, c), true
}

// valuesOf lists the values of a metric, and the usual width of the interval in which each is known to lie.
func valuesOf(m compared, blocks []*block) (values []stats.Block, step float64) {
	var widths []float64
	values = trialsOf(blocks, func(t *lab.Trial) (float64, bool) {
		one := t.Measurement(m.name)
		if one == nil {
			return 0, false
		}
		if m.entry.Instant && one.Low != nil && one.High != nil {
			widths = append(widths, *one.High-*one.Low)
		}
		return one.Value, true
	})
	if len(widths) > 0 {
		slices.Sort(widths)
		step = max(stats.Quantile(widths, 0.5), 0)
	}
	return values, step
}

// effectOf is what was found of a metric.
func effectOf(m compared, c stats.Comparison) lab.Effect {
	e := lab.Effect{
		Metric: m.name, Unit: m.unit, Guard: m.guarded, Pairs: c.Pairs, Control: c.Control, Treatment: c.Treatment,
		Shift: bounds(c.Shift), P: c.Test.P, Permutations: c.Test.Permutations,
		Delta: c.Delta, DeltaSize: c.DeltaSize, MinimalEffect: c.MinimalEffect, Warnings: c.Shift.Warnings,
	}
	if c.Pairs >= leastForModes {
		e.ModeChange, e.Warnings = c.ModeChange, c.Warnings
	}
	if a := c.Adjustment; a != nil {
		e.Adjustment = &lab.Adjustment{
			Covariates: a.Names, Explained: a.Explained, Spread: a.Spread, RawSpread: a.RawSpread, Raw: bounds(a.Raw), RawP: a.RawTest.P,
			MinimalEffect: a.MinimalEffect,
		}
	}
	if percent := bounds(c.Percent); percent.Confidence > 0 && !math.IsInf(percent.Low-percent.High, 0) {
		e.Percent = &percent
	}
	return e
}

// untested is the effect of a metric that cannot be tested.
func untested(m compared, blocks []stats.Block) lab.Effect {
	e := lab.Effect{Metric: m.name, Unit: m.unit, Guard: m.guarded, P: 1}
	var control, treatment []float64
	for _, b := range blocks {
		e.Pairs += min(len(b.Control), len(b.Treatment))
		control, treatment = append(control, b.Control...), append(treatment, b.Treatment...)
	}
	for _, arm := range []struct {
		values []float64
		median *float64
	}{{control, &e.Control}, {treatment, &e.Treatment}} {
		slices.Sort(arm.values)
		if len(arm.values) > 0 {
			*arm.median = stats.Quantile(arm.values, 0.5)
		}
	}
	return e
}

func bounds(i stats.Interval) lab.Range {
	return lab.Range{Value: i.Value, Low: i.Low, High: i.High, Confidence: i.Confidence}
}

// correct fills in the adjusted p-values. looks is by how much they grow because there are other
// looks at the same trials.
func correct(effects []lab.Effect, looks float64) {
	p := map[bool][]float64{}
	for _, guarded := range []bool{true, false} {
		for _, e := range effects {
			if e.Guard != guarded {
				e.P = math.NaN() // not counted by the correction
			}
			p[guarded] = append(p[guarded], e.P)
		}
	}
	guards, others := stats.Holm(p[true]), stats.BenjaminiHochberg(p[false])
	for i := range effects {
		adjusted := others[i]
		if effects[i].Guard {
			adjusted = guards[i]
		}
		effects[i].Adjusted = min(adjusted*looks, 1)
	}
}

// finding classifies the effect on one metric; a shift of at most least counts as none. higher
// says that a larger value is better.
func finding(e *lab.Effect, least float64, higher bool) string {
	up, down := lab.Slower, lab.Faster
	switch {
	case !e.Guard:
		up, down = "larger", "smaller"
	case higher:
		up, down = down, up
	}
	switch {
	case e.Pairs < Least:
		return lab.Unknown
	case e.Adjusted <= Level && e.Shift.Low > least:
		return up
	case e.Adjusted <= Level && e.Shift.High < -least:
		return down
	}
	return lab.NoChange
}

// decide combines the findings of the guards into a verdict.
func decide(effects []lab.Effect) string {
	found := map[string]bool{}
	for _, e := range effects {
		if e.Guard {
			found[e.Finding] = true
		}
	}
	switch {
	case found[lab.Slower] && found[lab.Faster]:
		return lab.Mixed
	case found[lab.Slower]:
		return lab.Slower
	case found[lab.Faster]:
		return lab.Faster
	case found[lab.NoChange]:
		return lab.NoChange
	case found[lab.Equivalent] && !found[lab.Unknown]:
		return lab.Equivalent
	}
	return lab.Unknown
}
