package suite

import (
	"fmt"
	"math"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/internal/metric"
)

// Known is a row of the table of known answers: what was asked for by the page's knob, what the page did by its own
// clock, and what was measured on its film.
type Known struct {
	Entry   string  `json:"entry"`
	Metric  string  `json:"metric"` // "pan/input_to_movement_ms − that of pan-0"
	Browser string  `json:"browser"`
	Within  float64 `json:"within"`
	// Asked is the knob. Did and Measured are medians over the valid trials, and Off is the largest distance of a
	// trial's measured value from its answer.
	Asked    float64  `json:"asked"`
	Did      *float64 `json:"did,omitempty"`
	Measured *float64 `json:"measured,omitempty"`
	Off      float64  `json:"off"`
	// Blur is the median of how late the instruments may have been in a trial, for an answer in ms: it widens the
	// bound.
	Blur   float64 `json:"blur_ms,omitempty"`
	Trials int     `json:"trials"`
	// Holds: the median distance, without its trial's blur, is within the bound.
	Holds bool   `json:"holds"`
	Why   string `json:"why,omitempty"` // there is no number
}

// Knowns makes the table of the known answers of what was measured, in the order of the suite, for each browser.
func (r *Result) Knowns() ([]Known, error) {
	s, err := r.Source()
	if err != nil {
		return nil, err
	}
	var all []Known
	for _, e := range s.Entries {
		if r.Find(e.Name) == nil {
			continue // it was not measured yet
		}
		for _, t := range e.Truths {
			for _, b := range r.Browsers {
				all = append(all, r.known(e, t, b))
			}
		}
	}
	return all, nil
}

// sharp is the largest blur, in ms, of a trial in which frames are counted: with more, a picture may have come and gone
// unseen.
const sharp = 17

// saidBy lists what the pages of trials did, and the trials' blurs.
func saidBy(trials []Trial, name string) (did, blur []float64) {
	for _, t := range trials {
		if v, ok := t.Did[name]; ok {
			did = append(did, v)
		}
		blur = append(blur, t.Blur)
	}
	return did, blur
}

func (r *Result) known(e Entry, truth Truth, browser string) Known {
	k := Known{Entry: e.Name, Metric: truth.Metric, Browser: browser, Within: truth.Within, Asked: truth.Is}
	var base, didBase, baseBlur float64
	switch {
	case truth.Less != "":
		k.Metric += " − " + truth.Less
	case truth.Over != "":
		k.Metric += " − that of " + truth.Over
		trials := r.valid(truth.Over, browser)
		m := medianOf(trials, truth.Metric)
		did, blur := saidBy(trials, truth.Did)
		if m == nil || truth.Did != "" && len(did) == 0 {
			k.Why = truth.Over + ": " + r.why(truth.Over)
			return k
		}
		base, baseBlur = *m, stats.Median(blur)
		if truth.Did != "" {
			didBase = stats.Median(did)
		}
	}
	inTime := metric.Parse(truth.Metric).Entry().Unit == "ms"
	var measured, did, off, beyond, blur []float64
	blurred := 0
	for _, t := range r.valid(e.Name, browser) {
		v, ok := t.Values[truth.Metric]
		less, has := t.Values[truth.Less]
		if !ok || truth.Less != "" && !has {
			continue
		}
		if !inTime && t.Blur > sharp {
			blurred++
			continue
		}
		v -= base + less
		answer := truth.Is
		if truth.Did != "" {
			if answer, has = t.Did[truth.Did]; !has {
				continue // the page said nothing: its clock stopped before it could
			}
			answer -= didBase
			did = append(did, answer)
		}
		if inTime {
			t.Blur += baseBlur
		}
		measured, off, blur = append(measured, v), append(off, v-answer), append(blur, t.Blur)
		if !inTime {
			t.Blur = 0
		}
		beyond = append(beyond, math.Abs(v-answer)-t.Blur)
	}
	k.Trials = len(measured)
	if k.Trials == 0 {
		k.Why = r.why(e.Name)
		if len(r.valid(e.Name, browser)) > 0 {
			k.Why = fmt.Sprintf("no valid trial has it: %s", truth.Metric)
		}
		if blurred > 0 {
			k.Why = fmt.Sprintf("none of %d valid trials has a blur of at most a frame: the machine is too busy to count frames", blurred)
		}
		return k
	}
	m := stats.Median(measured)
	k.Measured = &m
	if len(did) > 0 {
		d := stats.Median(did)
		k.Did = &d
	}
	k.Off = slices.MaxFunc(off, func(a, b float64) int { return int(math.Copysign(1, math.Abs(a)-math.Abs(b))) })
	if inTime {
		k.Blur = stats.Median(blur)
	}
	k.Holds = stats.Median(beyond) <= truth.Within
	return k
}
