package verdict

import (
	"fmt"
	"math"
	"strings"

	"eidetic/internal/lab"
)

// words are the verdict as a person reads it.
func words(c *lab.Comparison) (headline, detail string) {
	name := "Treatment"
	if c.Treatment != "" {
		name += " (" + c.Treatment + ")"
	}
	best := telling(c)
	switch c.Verdict {
	case lab.Slower, lab.Faster:
		return name + " is " + c.Verdict, fmt.Sprintf("%s; %s", change(best, true), agreeing(c))
	case lab.Mixed:
		var slower, faster []string
		for i := range c.Effects {
			switch e := &c.Effects[i]; {
			case !e.Guard:
			case e.Finding == lab.Slower:
				slower = append(slower, change(e, false))
			case e.Finding == lab.Faster:
				faster = append(faster, change(e, false))
			}
		}
		return name + " is slower in some metrics and faster in others",
			fmt.Sprintf("slower: %s; faster: %s; %d pairs of trials", strings.Join(slower, ", "), strings.Join(faster, ", "), c.Pairs)
	case lab.NoChange:
		return "No difference between treatment and control was found",
			fmt.Sprintf("%s; %s or more would have been found four times of five", change(best, true), amount(best.MinimalEffect, best))
	}
	detail = fmt.Sprintf("%d %s of valid trials, at least %d are needed", c.Pairs, lab.Plural(c.Pairs, "pair", "pairs"), Least)
	if best != nil {
		detail += "; so far " + change(best, false)
	}
	return "Too few trials to tell whether the treatment is slower", detail
}

// Stopped marks what was found in a run that ended before all its trials were
// done. The headline says so, since it is often all that is read: whoever stops
// a run when its numbers please has made the finding himself.
func Stopped(c *lab.Comparison) {
	c.Partial = true
	c.Headline += ", in a run that ended early"
}

// telling is the guard that the sentence quotes: the first that shows the verdict.
func telling(c *lab.Comparison) *lab.Effect {
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Guard && e.Shift.Confidence > 0 && (e.Finding == c.Verdict || c.Verdict == lab.Mixed) {
			return e
		}
	}
	return nil
}

// change is a metric's shift in words: "SpeedIndex +31 ms (95 % interval +12 to +50)".
func change(e *lab.Effect, all bool) string {
	text := fmt.Sprintf("%s %s %s", lab.MetricLabel(e.Metric), signed(e.Shift.Value), e.Unit)
	var in []string
	if e.Percent != nil && all {
		in = append(in, signed(e.Percent.Value)+" %")
	}
	if e.Pairs >= Least {
		in = append(in, fmt.Sprintf("95 %% interval %s to %s", signed(e.Shift.Low), signed(e.Shift.High)))
	}
	if all {
		in = append(in, fmt.Sprintf("%d pairs of trials", e.Pairs), probability(e.Adjusted))
	}
	if len(in) > 0 {
		text += " (" + strings.Join(in, ", ") + ")"
	}
	return text
}

// agreeing says how many guards show the same.
func agreeing(c *lab.Comparison) string {
	same, all := 0, 0
	for _, e := range c.Effects {
		if e.Guard {
			all++
			if e.Finding == c.Verdict {
				same++
			}
		}
	}
	return fmt.Sprintf("%d of %d guarded metrics %s %s", same, all, lab.Plural(same, "is", "are"), c.Verdict)
}

// amount is a size without a sign, and relative to the control.
func amount(v float64, e *lab.Effect) string {
	text := strings.TrimPrefix(signed(v), "+") + " " + e.Unit
	if e.Control != 0 {
		text += " (" + strings.TrimPrefix(signed(100*v/math.Abs(e.Control)), "+") + " %)"
	}
	return text
}

func probability(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.2g", p)
}

// signed writes a difference with no more digits than tell something.
func signed(v float64) string {
	if math.Abs(v) < 10 {
		return lab.Signed(v, 1)
	}
	return lab.Signed(v, 0)
}
