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

// change is a card's comparison of one metric.
type change struct {
	Shift, Low, High, Percent string
	Control, Treatment        string // medians
	Finding, Kind             string
	Chance, Delta, Minimal    string
	Raw, Explained            string // without covariates, and what they explain; "" where none were used
	Label                     string
	Note                      string // why the finding does not contradict the interval; "" where it does not seem to
	Effect                    *lab.Effect
}

// Bounded says whether the change has a 95 % interval.
func (c change) Bounded() bool { return c.Effect.Bounded() }

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
		c.Finding, c.Kind, c.Note = Finding(run, e), "plain", noContradiction(run.Comparison, c)
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

// noContradiction explains an interval that leaves out 0 although no difference is found; "" where it does not.
func noContradiction(c *lab.Comparison, of change) string {
	e := of.Effect
	if !of.Bounded() || e.Finding != lab.NoChange || e.Shift.Low <= 0 && e.Shift.High >= 0 {
		return ""
	}
	if e.Guard && e.Adjusted <= c.Level {
		return fmt.Sprintf("The interval leaves out 0 but reaches into the margin of %g %%, within which a difference does not matter.", c.Margin)
	}
	same, kind := 0, map[bool]string{true: "guarded", false: "other"}[e.Guard]
	for _, other := range c.Effects {
		if other.Guard == e.Guard {
			same++
		}
	}
	return fmt.Sprintf("95 %% for this metric alone; the verdict corrects for %d %s metrics (p %s, corrected %s).", same, kind, chance(e.P), of.Chance)
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
