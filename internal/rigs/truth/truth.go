// Package truth tests the product's promise with real page loads: how often it
// calls two equal arms different, how small a real delay it finds, and how often its
// intervals contain the true shift.
//
// In flows a [Plan]; it names experiments of pairs of trials, of two kinds. In an
// A/A experiment both arms load the same recording; in the others, scripts of the
// treatment's recording work for some milliseconds ([WithDelay]). A program carries the
// experiments out and saves each trial in [Data]. Out flow the tables of [Evaluate]: of
// the real experiments, and of many that are resampled from the trials of the A/A
// experiments ([Pool]), each with a known shift added. The same data
// go through the rules of other tools (package analysis/stats/peers).
package truth

import (
	"fmt"
	"slices"
	"time"

	"eidetic/internal/lab"
)

// Plan is what is measured. Trials of two plans that differ do not belong together.
type Plan struct {
	AA         int           `json:"aa"`          // A/A experiments
	AAPairs    int           `json:"aa_pairs"`    // of each
	Delays     []int         `json:"delays_ms"`   // of the treatment, in the others
	Repeats    int           `json:"repeats"`     // experiments of each delay
	DelayPairs int           `json:"delay_pairs"` // of each
	Link       string        `json:"link"`
	Still      time.Duration `json:"still_ns"`
	Seed       uint64        `json:"seed"`
	Browser    string        `json:"browser"`
	Recording  string        `json:"recording_sha256"` // of which both arms' archives are copies
}

// Validate returns an error that says what is wrong with the plan.
func (p Plan) Validate() error {
	switch {
	case p.AA < 1 || p.AAPairs < 6 || p.Repeats < 0 || p.Repeats > 0 && p.DelayPairs < 6:
		return fmt.Errorf(
			"%d A/A experiments of %d pairs and %d of each delay of %d pairs: at least one, and 6 pairs in each",
			p.AA,
			p.AAPairs,
			p.Repeats,
			p.DelayPairs,
		)
	case slices.ContainsFunc(p.Delays, func(d int) bool { return d < 1 || d > 99 }):
		return fmt.Errorf("delays of %v ms: each from 1 to 99", p.Delays)
	}
	return nil
}

// Experiment is one of a plan.
type Experiment struct {
	Name  string
	Delay int // of the treatment, ms; 0 in an A/A experiment
	Pairs int
	Seed  uint64
}

// Experiments lists the experiments in the order in which they are carried out. They are
// arranged in as many rounds as each delay has experiments, so that changes over the hour
// affect every kind of experiment, and so that an interrupted plan has some of each.
func (p Plan) Experiments() (all []Experiment) {
	rounds := max(p.Repeats, 1)
	add := func(name string, delay, pairs int) {
		all = append(all, Experiment{name, delay, pairs, p.Seed*1000 + uint64(len(all))})
	}
	aa := 0
	for round := range rounds {
		for ; aa < (round+1)*p.AA/rounds; aa++ {
			add(fmt.Sprintf("aa-%02d", aa+1), 0, p.AAPairs)
		}
		if p.Repeats > 0 {
			for _, d := range p.Delays {
				add(fmt.Sprintf("delay-%02dms-%d", d, round+1), d, p.DelayPairs)
			}
		}
	}
	return all
}

// Trials returns the number of trials of the plan, without repetitions of invalid ones.
func (p Plan) Trials() (n int) {
	for _, e := range p.Experiments() {
		n += 2 * e.Pairs
	}
	return n
}

// Value is a measured metric with the bounds that its frames give it.
type Value struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// Trial is a line of the data.
type Trial struct {
	Experiment string           `json:"experiment"`
	Delay      int              `json:"delay_ms"` // of the experiment's treatment
	Number     int              `json:"number"`   // in the experiment, from 1
	Arm        string           `json:"arm"`
	Block      int              `json:"block"`
	Valid      bool             `json:"valid"`
	Reasons    []string         `json:"reasons,omitempty"`
	Faults     []string         `json:"faults,omitempty"` // the reasons besides its blur
	Blur       *lab.Blur        `json:"blur,omitempty"`
	Metrics    map[string]Value `json:"metrics"`
	// Before are the covariates.
	Before  map[string]float64 `json:"before,omitempty"`
	Seconds float64            `json:"seconds"`
	Steal   float64            `json:"steal_percent"` // of all processors' time
	Wall    time.Time          `json:"wall"`          // its end
	// Software is the version that carried it out.
	Software string `json:"software,omitempty"`
}

// FromLab returns the part of a trial that the data keep.
func FromLab(e Experiment, t *lab.Trial) Trial {
	out := Trial{
		Experiment: e.Name, Delay: e.Delay, Number: t.Number, Arm: t.Arm, Block: t.Block,
		Valid: t.Valid, Reasons: t.Invalid, Faults: t.Faults, Blur: t.Blur, Metrics: map[string]Value{}, Before: t.Before,
	}
	for _, m := range t.Measurements {
		if m.Unit == "ms" {
			out.Metrics[m.Name] = Value{m.Value, m.Low, m.High}
		}
	}
	return out
}

// Lab restores the trial, as far as a continued experiment and a verdict use it.
func (t Trial) Lab() *lab.Trial {
	out := &lab.Trial{
		Number:  t.Number,
		Arm:     t.Arm,
		Block:   t.Block,
		Valid:   t.Valid,
		Invalid: t.Reasons,
		Faults:  t.Faults,
		Blur:    t.Blur,
		Before:  t.Before,
	}
	for name, v := range t.Metrics {
		out.Measurements = append(out.Measurements, lab.Measurement{Name: name, Value: v.Value, Unit: "ms", Low: v.Low, High: v.High})
	}
	return out
}
