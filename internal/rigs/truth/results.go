package truth

import (
	"fmt"
	"math"

	"eidetic/internal/rigs/benchtable"
)

// Results lists everything: for each number of ours one line for each peer that has it.
func (e *Evaluation) Results() (list []benchtable.Result) {
	u := e.Upkeep
	list = append(list,
		benchtable.More("trials", float64(u.Trials), "trials").Aim(300),
		benchtable.Less("trials thrown away", 100*float64(u.ThrownAway)/float64(max(u.Trials, 1)), "%"),
		benchtable.Less("a trial", u.Seconds, "s").Aim(5),
		benchtable.Less("stolen time", u.Stolen, "%"),
		benchtable.Less("stolen time in the worst experiment", u.StolenMost, "%"),
	)
	for _, s := range e.Spread {
		list = append(list, benchtable.Less(s.Metric.Label()+": standard deviation", s.Deviation, "ms"),
			benchtable.Less(s.Metric.Label()+": standard deviation within blocks", s.WithinBlocks, "ms"))
	}
	for _, v := range e.Verdicts {
		name, alarms := fmt.Sprintf("whole verdict: false alarms, %d pairs", v.Pairs), 100*float64(v.FalseAlarms)/float64(v.N)
		list = append(list, benchtable.Less(name, alarms, "%").Aim(5))
	}
	for _, c := range e.Cells {
		if c.Rule.Name != ours {
			continue
		}
		for _, rule := range rules() {
			if p, ok := e.cell(rule.Name, c.Metric, c.Pairs); ok && rule.Name != ours {
				list = append(list, e.against(c, p)...)
			}
		}
	}
	for _, p := range e.Pooled {
		name := fmt.Sprintf("%s: shift by a delay of %d ms", p.Metric.Label(), p.Delay)
		list = append(list, benchtable.Less(name, p.Shift.Value, "ms").Aim(float64(p.Delay)))
	}
	return list
}

// against compares a cell of ours with a peer's.
func (e *Evaluation) against(c, peer Cell) (list []benchtable.Result) {
	name := func(what string) string { return fmt.Sprintf("%s: %s, %d pairs", c.Metric.Label(), what, c.Pairs) }
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }
	add := func(what, better, unit string, value, theirs float64) {
		r := benchtable.Result{Name: name(what), Value: value, Unit: unit, Better: better}.Against(peer.Rule.Name, theirs)
		list = append(list, r)
	}
	add("false alarms", "lower", "%", percent(c.FalseAlarms, c.N), percent(peer.FalseAlarms, peer.N))
	for _, shift := range []float64{10, 20, 30} {
		add(fmt.Sprintf("%g ms found", shift), "higher", "%", 100*c.Power(shift), 100*peer.Power(shift))
		if shift == 20 && c.Pairs == 50 {
			list[len(list)-1] = list[len(list)-1].Aim(80)
		}
	}
	add("smallest shift found in 80 %", "lower", "ms", bounded(c.Smallest(0.8)), bounded(peer.Smallest(0.8)))
	if peer.Intervals > 0 {
		add("intervals that hold the truth", "higher", "%", percent(c.Covered, c.Intervals), percent(peer.Covered, peer.Intervals))
	}
	return list
}

// bounded is what JSON can hold of a threshold.
func bounded(v float64) float64 {
	if math.IsInf(v, 1) {
		return mostShift
	}
	return v
}
