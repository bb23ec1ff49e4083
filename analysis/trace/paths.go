package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
)

// Bounds of what is kept of critical paths.
const (
	mostKeptSteps = 200 // of a typical trial
	mostPathRows  = 30
	shareStep     = 10 // percent of the visual progress
)

// pathed is a traced trial with its path.
type pathed struct {
	Observed
	reached float64 // when it shows the share, in ms
	frame   int
	steps   []lab.PathStep
}

// paths compares the critical paths of traced trials to the first share of the page that one arm shows later than the
// other: by the test of all rows, with Holm's correction for the shares. It is nil where no trial has what paths are
// found in.
func paths(trials []Observed, seed uint64) *lab.CriticalPaths {
	usable := func(o Observed) bool { return len(o.Stretches) > 0 && len(o.FrameMS) > 0 && len(o.Progress) > 0 }
	trials = slices.DeleteFunc(slices.Clone(trials), func(o Observed) bool { return !usable(o) })
	pairs := 0
	for _, n := range pairsOf(trials) {
		pairs += n
	}
	if pairs < 2 {
		return nil
	}
	t := table{seed: seed, trials: trials, rows: map[rowKey]*row{}}
	c := &lab.CriticalPaths{Share: -1}
	share, parting := t.parting()
	if parting == nil {
		c.Notes = append(c.Notes, fmt.Sprintf("over %d pairs of traced trials the arms part at no share of the visual progress beyond chance", pairs))
		return c
	}
	c.Share, c.Parting = share, parting.Cause
	all := make([]pathed, len(trials))
	for i, o := range trials {
		all[i] = pathOf(o, share)
	}
	t.steps(all)
	rows, _ := t.telling()
	var tested []*row
	var p []float64
	for _, r := range rows {
		if t.test(r) {
			tested, p = append(tested, r), append(p, r.P)
		}
	}
	c.Tested = len(tested)
	for i, adjusted := range stats.Holm(p) {
		tested[i].Adjusted, tested[i].Named = adjusted, adjusted <= CausesLevel
	}
	slices.SortStableFunc(tested, func(a, b *row) int {
		return cmp.Or(cmp.Compare(truth(b.Named), truth(a.Named)), cmp.Compare(math.Abs(b.Shift), math.Abs(a.Shift)), cmp.Compare(a.P, b.P))
	})
	for _, r := range tested[:min(len(tested), mostPathRows)] {
		c.Rows = append(c.Rows, r.Cause)
	}
	c.Control, c.Treatment = typicalPath(all, lab.Control, parting.Control), typicalPath(all, lab.Treatment, parting.Treatment)
	return c
}

// steps sums up the steps of each trial by what they are. What is on the paths of less than half of the trials shares a
// row.
func (t *table) steps(all []pathed) {
	key := func(s lab.PathStep) rowKey {
		return rowKey{kind: lab.CausePath, thread: s.Kind, group: Group(s.Group), what: s.What}
	}
	trials, last := map[rowKey]int{}, map[rowKey]int{}
	for i, p := range all {
		for _, s := range p.steps {
			if k := key(s); last[k] != i+1 {
				last[k] = i + 1
				trials[k]++
			}
		}
	}
	for i, p := range all {
		for _, s := range p.steps {
			k := key(s)
			if 2*trials[k] < len(all) && k.what != "" {
				k.what = fewHave
			}
			if _, known := t.rows[k]; known || len(t.rows) < mostRows {
				t.of(k, "ms", s.Kind == lab.PathWork, 0).values[i] += s.ToMS - s.FromMS
			}
		}
	}
}

// fewHave names the row of steps that less than half of the trials have on their paths.
const fewHave = "what less than half of the paths have"

// reached is when a trial first shows a share, and in which frame; NaN where it never does.
func (o *Observed) reached(share float64) (ms float64, frame int) {
	for i := range min(len(o.FrameMS), len(o.Progress)) {
		if v := o.Progress[i]; v > 0 && v >= share && o.FrameMS[i] > 0 {
			return min(o.FrameMS[i], 1e9), o.StartFrame + i
		}
	}
	return math.NaN(), 0
}

// parting is the first share of the visual progress that the arms show at different times, beyond chance; nil if there
// is none.
func (t *table) parting() (share float64, parting *row) {
	var rows []*row
	var shares, p, last []float64
	for share := 0.0; share <= 100; share += shareStep {
		r := &row{values: make([]float64, len(t.trials)), Cause: lab.Cause{Kind: lab.CauseEnd, Unit: "ms"}}
		for i := range t.trials {
			r.values[i], _ = t.trials[i].reached(share)
		}
		if slices.ContainsFunc(r.values, math.IsNaN) || slices.Equal(r.values, last) { // the same pictures reach this share, too
			continue
		}
		if last = r.values; t.test(r) && math.Abs(r.Shift) >= leastMS {
			rows, shares, p = append(rows, r), append(shares, share), append(p, r.P)
		}
	}
	for i, adjusted := range stats.Holm(p) {
		if rows[i].Adjusted, rows[i].Named = adjusted, adjusted <= CausesLevel; rows[i].Named {
			return shares[i], rows[i]
		}
	}
	return 0, nil
}

func pathOf(o Observed, share float64) pathed {
	ms, frame := o.reached(share)
	return pathed{o, ms, frame, CriticalPath(PathSource{
		Zero: o.Zero, End: at(ms, o.Zero), Page: o.Page, Work: o.Stretches, Fetches: o.Fetches, Served: o.Served,
	})}
}

// typicalPath is the path of an arm's trial that is nearest to the arm's median.
func typicalPath(all []pathed, arm string, median float64) (path lab.Path) {
	least := math.Inf(1)
	for _, p := range all {
		if d := math.Abs(p.reached - median); p.Arm == arm && d < least {
			least = d
			path = lab.Path{Trial: p.Number, Frame: p.frame, Steps: shortened(p.steps)}
		}
	}
	return path
}

// shortened joins short steps that follow each other, until few enough are left.
func shortened(steps []lab.PathStep) []lab.PathStep {
	if len(steps) == 0 {
		return nil
	}
	const share = 200 // of the path
	for least := max(1, steps[len(steps)-1].ToMS/share); ; least *= 2 {
		var out []lab.PathStep
		for i := 0; i < len(steps); {
			n, worked := i, 0.0
			for ; n < len(steps) && steps[n].ToMS-steps[n].FromMS < least; n++ {
				if steps[n].Kind == lab.PathWork {
					worked += steps[n].ToMS - steps[n].FromMS
				}
			}
			if n < i+2 {
				out, i = append(out, steps[i]), i+1
				continue
			}
			one := lab.PathStep{Kind: lab.PathShort, FromMS: steps[i].FromMS, ToMS: steps[n-1].ToMS}
			one.Why = fmt.Sprintf("%d steps of less than %.1f ms each; %.1f ms of them work of the page's thread", n-i, least, worked)
			out, i = append(out, one), n
		}
		if len(out) <= mostKeptSteps {
			return out
		}
	}
}
