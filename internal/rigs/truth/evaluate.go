package truth

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/verdict"
)

// Options of an evaluation.
type Options struct {
	Resamples int // experiments that are resampled for each number of pairs
	Seed      uint64
}

// metrics are those of the tables.
func metrics() []metric.ID {
	return []metric.ID{metric.FirstChange, metric.SpeedIndex, metric.LastChange}
}

// sizes are the numbers of pairs that are resampled.
func sizes() []int { return []int{10, 20, 50} }

// Cell holds the results of one rule for one metric in resampled A/A experiments of one size.
type Cell struct {
	Rule        Rule
	Metric      metric.ID
	Pairs, N    int
	FalseAlarms int
	// Thresholds are the smallest shifts that the rule finds, sorted.
	Thresholds []float64
	// Covered counts the intervals that contain the true shift.
	Intervals, Covered int
	HalfWidth          float64 // the median
}

// Power returns the share of experiments in which the rule finds a shift.
func (c Cell) Power(shift float64) float64 {
	found := 0
	for _, t := range c.Thresholds {
		if t <= shift {
			found++
		}
	}
	return float64(found) / float64(len(c.Thresholds))
}

// Smallest returns the smallest shift that the rule finds in the given share of experiments.
func (c Cell) Smallest(share float64) float64 {
	return c.Thresholds[min(int(math.Ceil(share*float64(len(c.Thresholds))))-1, len(c.Thresholds)-1)]
}

// Evaluation holds all results of the data.
type Evaluation struct {
	Plan     Plan
	Cells    []Cell
	Verdicts []Verdicts
	Real     []Real
	Pooled   []Pooled
	Spread   []Spread
	Upkeep   Upkeep
}

// Verdicts are the results of the product's verdict, over all guards, in resampled experiments of one size.
type Verdicts struct {
	Pairs, N, FalseAlarms int
}

// Real is an experiment that was carried out.
type Real struct {
	Experiment
	Pairs   int // of valid trials
	Verdict string
	// Found and Intervals are by rule and metric, in the order of rules and metrics.
	Found     [][]bool
	Intervals [][][2]float64 // NaN for a rule without
}

// Pooled is a delay's shift of a metric over all its experiments.
type Pooled struct {
	Delay  int
	Metric metric.ID
	Shift  stats.Interval
	Pairs  int
}

// Spread describes how much equal trials differ.
type Spread struct {
	Metric        metric.ID
	N             int
	Median        float64
	Deviation     float64 // standard deviation
	WithinBlocks  float64 // the same of differences from the block's mean
	Adjusted      float64 // the same without what the covariates explain; 0 if there are none
	MiddleHalf    float64 // third less first quartile
	FarFromMedian int     // trials more than three frames away
}

// Evaluate makes the tables.
func Evaluate(ctx context.Context, d *Data, o Options) (*Evaluation, error) {
	e := &Evaluation{Plan: d.Plan, Upkeep: upkeep(d)}
	pool := NewPool(d.Trials)
	for _, pairs := range sizes() {
		if len(pool.Trials) < 2*pairs || o.Resamples < 1 {
			continue
		}
		if err := e.resample(ctx, pool, pairs, o); err != nil {
			return nil, err
		}
	}
	for _, x := range d.Plan.Experiments() {
		if r, ok := carriedOut(x, d.Of(x.Name)); ok {
			e.Real = append(e.Real, r)
		}
	}
	for _, delay := range d.Plan.Delays {
		e.Pooled = append(e.Pooled, pooled(d, delay)...)
	}
	for _, m := range metrics() {
		if s, ok := spread(pool, m); ok {
			if c, err := joined(d, 0, m).compare(o.Seed); err == nil && c.Adjustment != nil {
				s.Adjusted = c.Adjustment.Spread
			}
			e.Spread = append(e.Spread, s)
		}
	}
	if len(d.Trials) == 0 {
		return nil, fmt.Errorf("there are no trials to make tables of")
	}
	return e, nil
}

// one is the result of a rule for a metric in one resampled experiment.
type one struct {
	alarm     bool
	threshold float64
	low, high float64
}

// resample draws experiments of a size and applies every rule to each.
func (e *Evaluation) resample(ctx context.Context, pool Pool, pairs int, o Options) error {
	all, measured := rules(), metrics()
	answers := make([][]one, o.Resamples)
	alarms := make([]bool, o.Resamples)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range o.Resamples {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r := rand.New(rand.NewPCG(o.Seed, uint64(pairs)<<32|uint64(i)))
			trials, err := pool.Draw(r, pairs)
			if err != nil {
				return err
			}
			of := samplesOf(trials)
			for _, rule := range all {
				for _, s := range of {
					answers[i] = append(answers[i], ask(rule, s, r.Uint64()))
				}
			}
			alarms[i] = wholeVerdict(trials, r.Uint64()) != lab.NoChange
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, rule := range all {
		for j, m := range measured {
			c := Cell{Rule: rule, Metric: m, Pairs: pairs, N: o.Resamples}
			var halves []float64
			for _, a := range answers {
				answer := a[i*len(measured)+j]
				c.add(answer)
				halves = append(halves, (answer.high-answer.low)/2)
			}
			slices.Sort(c.Thresholds)
			slices.Sort(halves)
			c.HalfWidth = stats.Quantile(halves, 0.5)
			e.Cells = append(e.Cells, c)
		}
	}
	v := Verdicts{Pairs: pairs, N: o.Resamples}
	for _, alarm := range alarms {
		if alarm {
			v.FalseAlarms++
		}
	}
	e.Verdicts = append(e.Verdicts, v)
	return nil
}

func (c *Cell) add(a one) {
	c.Thresholds = append(c.Thresholds, a.threshold)
	if a.alarm {
		c.FalseAlarms++
	}
	if !math.IsNaN(a.low) {
		c.Intervals++
		if a.low <= 0 && a.high >= 0 {
			c.Covered++
		}
	}
}

func ask(rule Rule, s sample, seed uint64) one {
	differs, low, high := rule.Decide(s, seed)
	return one{differs(0), threshold(differs), low, high}
}

// wholeVerdict returns the product's own verdict, over its guards.
func wholeVerdict(trials []Trial, seed uint64) string {
	guarded := make([]Trial, len(trials))
	for i, t := range trials {
		guarded[i] = t
		guarded[i].Metrics = map[string]Value{}
		for _, g := range metric.Guards() {
			if v, ok := t.Metrics[g.String()]; ok {
				guarded[i].Metrics[g.String()] = v
			}
		}
	}
	c := verdict.Of(&lab.Run{Plan: lab.Plan{Covariates: lab.Covariates()}, Trials: labTrials(guarded)}, seed)
	if c == nil {
		return lab.Unknown
	}
	return c.Verdict
}

// carriedOut applies every rule to a real experiment; it returns false if the data lack it.
func carriedOut(x Experiment, trials []Trial) (Real, bool) {
	r := Real{Experiment: x, Verdict: wholeVerdict(trials, x.Seed)}
	all := samplesOf(trials)
	control, _ := pairsOf(all[0].blocks)
	if r.Pairs = len(control); r.Pairs < verdict.Least {
		return r, false
	}
	for _, rule := range rules() {
		var found []bool
		var intervals [][2]float64
		for _, s := range all {
			differs, low, high := rule.Decide(s, x.Seed)
			found, intervals = append(found, differs(0)), append(intervals, [2]float64{low, high})
		}
		r.Found, r.Intervals = append(r.Found, found), append(r.Intervals, intervals)
	}
	return r, true
}

// pooled joins the blocks of all experiments of a delay, for the real effect of the delay.
func pooled(d *Data, delay int) (out []Pooled) {
	for _, m := range metrics() {
		c, err := joined(d, delay, m).compare(uint64(delay))
		if err != nil { // not measured yet
			continue
		}
		out = append(out, Pooled{delay, m, c.Shift, c.Pairs})
	}
	return out
}

// joined is the sample of all experiments of a delay.
func joined(d *Data, delay int, m metric.ID) (all sample) {
	var trials []Trial
	for _, x := range d.Plan.Experiments() {
		if x.Delay != delay {
			continue
		}
		s := sampleOf(d.Of(x.Name), m)
		all.blocks, trials = append(all.blocks, s.blocks...), append(trials, d.Of(x.Name)...)
		if all.covariates == nil {
			all.covariates = s.covariates
			continue
		}
		for i, c := range s.covariates {
			all.covariates[i].Blocks = append(all.covariates[i].Blocks, c.Blocks...)
		}
	}
	all.step = step(trials, m)
	return all
}

// frame is the screen's period in ms.
const frame = 1000.0 / 60

// spread describes a metric over the pool; false without two trials.
func spread(p Pool, m metric.ID) (Spread, bool) {
	type place struct {
		experiment string
		block      int
	}
	groups := map[place][]float64{}
	var all []float64
	for _, t := range p.Trials {
		if v, ok := t.Metrics[m.String()]; ok {
			all = append(all, v.Value)
			at := place{t.Experiment, t.Block}
			groups[at] = append(groups[at], v.Value)
		}
	}
	if len(all) < 2 {
		return Spread{}, false
	}
	slices.Sort(all)
	s := Spread{Metric: m, N: len(all), Median: stats.Quantile(all, 0.5), MiddleHalf: stats.Quantile(all, 0.75) - stats.Quantile(all, 0.25)}
	for _, v := range all {
		if math.Abs(v-s.Median) > 3*frame {
			s.FarFromMedian++
		}
	}
	s.Deviation = math.Sqrt(squares(all) / float64(len(all)-1))
	keys := make([]place, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b place) int { return cmp.Or(cmp.Compare(a.experiment, b.experiment), a.block-b.block) })
	sum := 0.0
	for _, k := range keys { // sums of floats depend on the order
		sum += squares(groups[k])
	}
	if len(all) > len(groups) {
		s.WithinBlocks = math.Sqrt(sum / float64(len(all)-len(groups)))
	}
	return s, true
}

// squares is the sum of squared differences from the mean.
func squares(values []float64) (sum float64) {
	mean := 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += float64((v - mean) * (v - mean))
	}
	return sum
}
