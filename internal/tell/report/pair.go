package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// found is the comparison's result at the top of the report.
type found struct {
	Kind, Sign       string // shown in addition to the words
	Headline, Detail string
}

// side is an arm of a comparison, with the pictures that represent it.
type side struct {
	Arm     string
	Name    string // "Treatment"
	Differs string // "link 3g"
	Seen    *trial
	Cells   []cell // a picture for each instant of the common axis
}

// cell is the screen at one instant.
type cell struct {
	thumb
	Held bool // no newer picture exists; the one of the cell before is repeated
}

// change is a card's comparison of one metric.
type change struct {
	Shift, Low, High, Percent string
	Control, Treatment        string // medians
	Finding, Kind             string
	Chance, Delta, Minimal    string
	Raw, Explained            string // without covariates, and what they explain; "" where none were used
	Label                     string
	Effect                    *lab.Effect
}

// both says whether the run has two arms.
func both(run *lab.Run) bool { return len(armsOf(run)) > 1 }

// armName is the report's name for an arm.
func armName(arm string) string {
	switch arm {
	case lab.Control:
		return "Control"
	case lab.Treatment:
		return "Treatment"
	}
	return arm
}

// differsOf describes what distinguishes an arm from the other.
func differsOf(run *lab.Run, arm string) string {
	if c := run.Comparison; c != nil {
		switch arm {
		case lab.Control:
			return c.Control
		case lab.Treatment:
			return c.Treatment
		}
	}
	return ""
}

func foundOf(run *lab.Run) *found {
	c := run.Comparison
	if c == nil {
		return nil
	}
	f := &found{Headline: c.Headline, Detail: sentence(c.Detail)}
	switch c.Verdict {
	case lab.Slower:
		f.Kind, f.Sign = "bad", "▲"
	case lab.Faster:
		f.Kind, f.Sign = "good", "▼"
	case lab.Mixed:
		f.Kind, f.Sign = "bad", "◆"
	case lab.NoChange:
		f.Kind, f.Sign = "good", "="
	case lab.Equivalent:
		f.Kind, f.Sign = "good", "≈"
	default:
		f.Kind, f.Sign = "warn", "?"
	}
	return f
}

// changesOf lists the comparison's metrics in their stored order, guards first.
func changesOf(run *lab.Run) []change {
	if run.Comparison == nil {
		return nil
	}
	var out []change
	for i := range run.Comparison.Effects {
		e := &run.Comparison.Effects[i]
		c := change{
			Effect: e, Label: describe(e.Metric, e.Unit).Label, Shift: signed(e.Shift.Value, e.Unit), Low: signed(e.Shift.Low, e.Unit),
			High:    signed(e.Shift.High, e.Unit),
			Control: number(e.Control, e.Unit), Treatment: number(e.Treatment, e.Unit), Minimal: number(e.MinimalEffect, e.Unit),
			Delta: strings.TrimPrefix(signed(e.Delta, ""), "+") + ", " + e.DeltaSize, Chance: chance(e.Adjusted),
		}
		if a := e.Adjustment; a != nil {
			c.Raw = fmt.Sprintf("%s (%s to %s, p %s)", signed(a.Raw.Value, e.Unit), signed(a.Raw.Low, e.Unit),
				signed(a.Raw.High, e.Unit), chance(a.RawP))
			c.Explained = fmt.Sprintf("%.0f %%", 100*a.Explained)
		}
		if e.Percent != nil {
			c.Percent = signed(e.Percent.Value, "%") + " %"
		}
		if e.Shift.Confidence == 0 { // the metric was not tested
			c.Shift, c.Chance, c.Delta = "–", "–", "–"
			for arm, value := range map[string]*string{lab.Control: &c.Control, lab.Treatment: &c.Treatment} {
				if summaryOf(run, e.Metric, arm) == nil {
					*value = "–"
				}
			}
		}
		c.Finding, c.Kind = Finding(run, e), "plain"
		switch e.Finding {
		case lab.Slower:
			c.Kind = "bad"
		case lab.Faster, lab.Equivalent:
			c.Kind = "good"
		}
		out = append(out, c)
	}
	// Of a journey the guards come first, and then each step's metrics in the order of the plan.
	place := placesOfSteps(run)
	slices.SortStableFunc(out, func(a, b change) int {
		return cmp.Or(guardFirst(a, b), cmp.Compare(place(a.Effect.Metric), place(b.Effect.Metric)))
	})
	return out
}

// chance formats a p-value.
func chance(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return number(p, "")
}

func guardFirst(a, b change) int {
	switch {
	case a.Effect.Guard == b.Effect.Guard:
		return 0
	case a.Effect.Guard:
		return -1
	}
	return 1
}

// signed formats a difference, for times with at most a tenth of a millisecond.
func signed(v float64, unit string) string {
	text := number(v, unit)
	if unit == "ms" && math.Abs(v) < 10 {
		text = grouped(strconv.FormatFloat(v, 'f', 1, 64))
	}
	if v > 0 && strings.Trim(text, "0.") != "" {
		return "+" + text
	}
	return text
}

// sidesOf describes both arms, with their filmstrips on one axis.
func sidesOf(run *lab.Run, trials []trial) []side {
	if !both(run) {
		return nil
	}
	var sides []side
	for _, arm := range armsOf(run) {
		s := side{Arm: arm, Name: armName(arm), Differs: differsOf(run, arm)}
		if i, ok := typical(run, arm); ok {
			s.Seen = &trials[i]
		}
		sides = append(sides, s)
	}
	align(sides)
	return sides
}

// slack is how much later than an instant of the axis, in ms, a picture may be and still
// represent it: one frame, with some jitter.
const slack = 25

// align selects, for every instant of an axis, the picture that each arm showed then. The
// axis has the larger step of the two filmstrips, which align returns, in ms; 0 if there is no axis.
func align(sides []side) (step float64) {
	end := 0.0
	for _, s := range sides {
		if s.Seen == nil || len(s.Seen.Thumbs) < 2 {
			return 0 // one arm has no pictures, or only one picture of its whole strip
		}
		n := len(s.Seen.Thumbs) - 1
		first, last := s.Seen.Thumbs[0].TimeMS, s.Seen.Thumbs[n].TimeMS
		step, end = max(step, (last-first)/float64(n)), max(end, last)
	}
	step = math.Round(step/100) * 100 // filmstrips have steps of whole tenths of a second
	if !(step > 0) || end/step > maxThumbs {
		return 0
	}
	for i := range sides {
		thumbs, at := sides[i].Seen.Thumbs, -1
		for k := 0; float64(k)*step <= end+slack; k++ {
			was := at
			for at+1 < len(thumbs) && thumbs[at+1].TimeMS <= float64(k)*step+slack {
				at++
			}
			shown := max(at, 0)
			sides[i].Cells = append(sides[i].Cells, cell{thumb: thumbs[shown], Held: k > 0 && at == was})
		}
	}
	return step
}
