package truth

import (
	"fmt"
	"math"
)

// Result is a line of the benchmark's list.
type Result struct {
	Name   string   `json:"name"`
	Value  float64  `json:"value"`
	Unit   string   `json:"unit"`
	Better string   `json:"better"`
	Peer   string   `json:"peer,omitempty"`
	PeerV  *float64 `json:"peer_value,omitempty"`
	Ratio  float64  `json:"ratio,omitempty"`
	Goal   *float64 `json:"goal,omitempty"`
}

// Results lists everything: for each number of ours one line for each peer that has it.
func (e *Evaluation) Results() (list []Result) {
	goal := func(v float64) *float64 { return &v }
	u := e.Upkeep
	list = append(list,
		Result{Name: "trials", Value: float64(u.Trials), Unit: "trials", Better: "higher", Goal: goal(300)},
		Result{Name: "trials thrown away", Value: 100 * float64(u.ThrownAway) / float64(max(u.Trials, 1)), Unit: "%", Better: "lower"},
		Result{Name: "a trial", Value: u.Seconds, Unit: "s", Better: "lower", Goal: goal(5)},
		Result{Name: "stolen time", Value: u.Stolen, Unit: "%", Better: "lower"},
		Result{Name: "stolen time in the worst experiment", Value: u.StolenMost, Unit: "%", Better: "lower"},
	)
	for _, s := range e.Spread {
		list = append(list, Result{Name: s.Metric.label + ": standard deviation", Value: s.Deviation, Unit: "ms", Better: "lower"},
			Result{Name: s.Metric.label + ": standard deviation within blocks", Value: s.WithinBlocks, Unit: "ms", Better: "lower"})
	}
	for _, v := range e.Verdicts {
		list = append(
			list,
			Result{
				Name:   fmt.Sprintf("whole verdict: false alarms, %d pairs", v.Pairs),
				Value:  100 * float64(v.FalseAlarms) / float64(v.N),
				Unit:   "%",
				Better: "lower",
				Goal:   goal(5),
			},
		)
	}
	for _, c := range e.Cells {
		if c.Rule.Name != ours {
			continue
		}
		for _, rule := range rules() {
			if p, ok := e.cell(rule.Name, c.Metric.name, c.Pairs); ok && rule.Name != ours {
				list = append(list, e.against(c, p)...)
			}
		}
	}
	for _, p := range e.Pooled {
		list = append(
			list,
			Result{
				Name:   fmt.Sprintf("%s: shift by a delay of %d ms", p.Metric.label, p.Delay),
				Value:  p.Shift.Value,
				Unit:   "ms",
				Better: "lower",
				Goal:   goal(float64(p.Delay)),
			},
		)
	}
	return list
}

// against compares a cell of ours with a peer's.
func (e *Evaluation) against(c, peer Cell) (list []Result) {
	name := func(what string) string { return fmt.Sprintf("%s: %s, %d pairs", c.Metric.label, what, c.Pairs) }
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }
	add := func(what, better, unit string, value, theirs float64) {
		r := Result{Name: name(what), Value: value, Unit: unit, Better: better, Peer: peer.Rule.Name, PeerV: &theirs}
		switch {
		case value <= 0 || theirs <= 0: // a ratio with nothing says nothing
		case better == "higher":
			r.Ratio = value / theirs
		default:
			r.Ratio = theirs / value
		}
		list = append(list, r)
	}
	add("false alarms", "lower", "%", percent(c.FalseAlarms, c.N), percent(peer.FalseAlarms, peer.N))
	for _, shift := range []float64{10, 20, 30} {
		add(fmt.Sprintf("%g ms found", shift), "higher", "%", 100*c.Power(shift), 100*peer.Power(shift))
		if shift == 20 && c.Pairs == 50 {
			goal := 80.0
			list[len(list)-1].Goal = &goal
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
