package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// voice holds the phrases that differ between a comparison of arms and one of runs.
type voice struct {
	name      string // of what is judged
	none, few string // headlines if nothing was found, and if there are too few trials
	least     string // what a verdict needs
	trials    func(*lab.Effect) string
}

// ofArms has the phrases for the arms of one run.
func ofArms(c *lab.Comparison) voice {
	v := voice{
		name: "Treatment", none: "No difference between treatment and control was found",
		few:    "Too few trials to tell whether the treatment is slower",
		least:  fmt.Sprintf("%d %s of valid trials, at least %d are needed", c.Pairs, lab.Plural(c.Pairs, "pair", "pairs"), Least),
		trials: func(e *lab.Effect) string { return fmt.Sprintf("%d pairs of trials", e.Pairs) },
	}
	if c.Treatment != "" {
		v.name += " (" + c.Treatment + ")"
	}
	return v
}

// words formats the verdict for people.
func words(c *lab.Comparison, v voice) (headline, detail string) {
	best := telling(c)
	switch c.Verdict {
	case lab.Slower, lab.Faster:
		if film := filmBeside(c, best); film != "" {
			more := map[string]string{lab.Slower: " works more", lab.Faster: " works less"}[c.Verdict]
			return v.name + more + ", and the film shows no difference", joined(v.change(best, true), film, adjusted(best), agreeing(c))
		}
		return v.name + " is " + c.Verdict, joined(v.change(best, true), adjusted(best), agreeing(c))
	case lab.Mixed:
		var slower, faster []string
		for i := range c.Effects {
			switch e := &c.Effects[i]; {
			case !e.Guard:
			case e.Finding == lab.Slower:
				slower = append(slower, v.change(e, false))
			case e.Finding == lab.Faster:
				faster = append(faster, v.change(e, false))
			}
		}
		return v.name + " is slower in some metrics and faster in others",
			fmt.Sprintf("slower: %s; faster: %s; %s", strings.Join(slower, ", "), strings.Join(faster, ", "), v.trials(best))
	case lab.NoChange:
		return v.none, joined(v.change(best, true), leavesOutZero(c, best), adjusted(best),
			amount(best.MinimalEffect, best)+" or more would have been detected with 80 % probability")
	}
	switch {
	case c.Verdict == lab.Equivalent:
		return v.name + " is equivalent to the control within " + marginOf(c),
			joined(v.change(best, true), adjusted(best), "all guarded metrics are within the margin")
	case c.Margin > 0 && c.Pairs >= Least && best != nil:
		return "Whether the treatment differs by more than " + marginOf(c) + " is not known",
			joined(v.change(best, true), adjusted(best), morePairs(c.Missing))
	}
	detail = v.least
	if best != nil {
		detail += "; so far " + v.change(best, false)
	}
	return v.few, detail
}

// marginOf is the margin of a comparison for people.
func marginOf(c *lab.Comparison) string {
	if len(c.Margins) > 0 {
		return "the plan's margins"
	}
	return fmt.Sprintf("%g %%", c.Margin)
}

// joined puts the parts of a sentence together that say something.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// leavesOutZero explains an interval that leaves out 0 although no difference is found; "" for one that holds it.
func leavesOutZero(c *lab.Comparison, e *lab.Effect) string {
	if e.Pairs < Least || e.Shift.Low <= 0 && e.Shift.High >= 0 {
		return ""
	}
	if e.Adjusted <= Level {
		return "the interval leaves out 0, but reaches into the margin, within which differences count as none"
	}
	guards := 0
	for _, e := range c.Effects {
		if e.Guard {
			guards++
		}
	}
	return fmt.Sprintf("the interval leaves out 0 since it is of this metric alone: one of %d guarded metrics does so by chance more often than one "+
		"in twenty times, and p, which is corrected for that, is above 0.05 (uncorrected %s)", guards, strings.TrimPrefix(probability(e.P), "p = "))
}

// morePairs says how many pairs are missing.
func morePairs(missing int) string {
	if missing >= mostMissing {
		return "it is so near the margin that no number of trials would tell"
	}
	return fmt.Sprintf("about %d more %s would tell, if it is as it seems", missing, lab.Plural(missing, "pair", "pairs"))
}

// Stopped marks the comparison of a run that ended before all its trials were done. The
// headline says so, because often nothing else is read: stopping a run once its numbers
// look good biases the result.
func Stopped(c *lab.Comparison) {
	c.Partial = true
	c.Headline += ", in a run that ended early"
}

// telling returns the guard that the sentence quotes: the first one with the verdict's finding.
func telling(c *lab.Comparison) *lab.Effect {
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Guard && e.Shift.Confidence > 0 && (e.Finding == c.Verdict || c.Verdict == lab.Mixed) {
			return e
		}
	}
	return nil
}

// change formats a metric's shift: "SpeedIndex +31 ms (95 % interval +12 to +50)".
func (v voice) change(e *lab.Effect, all bool) string {
	text := fmt.Sprintf("%s %s %s", metric.Label(e.Metric), lab.Change(e.Shift.Value), e.Unit)
	var in []string
	if e.Percent != nil && all && e.Unit != "%" {
		in = append(in, lab.Change(e.Percent.Value)+" %")
	}
	if e.Pairs >= Least {
		in = append(in, fmt.Sprintf("95 %% interval %s to %s", lab.Change(e.Shift.Low), lab.Change(e.Shift.High)))
	}
	if all {
		in = append(in, v.trials(e))
		if e.Recordings > 0 {
			in = append(in, fmt.Sprintf("%d recordings of each", e.Recordings))
		}
		in = append(in, probability(e.Adjusted))
	}
	if len(in) > 0 {
		text += " (" + strings.Join(in, ", ") + ")"
	}
	return text
}

// agreeing says how many guards have the same finding.
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

// amount formats a size without a sign, and its percentage of the control.
func amount(v float64, e *lab.Effect) string {
	text := strings.TrimPrefix(lab.Change(v), "+") + " " + e.Unit
	if e.Control != 0 {
		text += " (" + strings.TrimPrefix(lab.Change(100*v/math.Abs(e.Control)), "+") + " %)"
	}
	return text
}

func probability(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.2g", p)
}

// sayServers says of a comparison of two addresses that it leaves their servers out, in the headline, too, where these
// seemed to differ by more than it would have found: who compares a slower server is not to read that there is no
// difference.
func sayServers(c *lab.Comparison, run *lab.Run) string {
	least := float64(lab.LeastApart)
	if e := telling(c); e != nil && e.Unit == "ms" {
		least = max(least, e.MinimalEffect)
	}
	if run.ServersApart == nil || math.Abs(run.ServersApart.Most()) < least {
		return ""
	}
	if c.Verdict == lab.NoChange || c.Verdict == lab.Equivalent {
		c.Headline += ", the servers' times left out"
	}
	return run.ServersApart.String()
}

// machineOf says how quiet the machine was beside the trials: "the machine was quiet: other work took 0.04 of its 2
// processors"; "" for a device with processors of its own, and for a machine that was never quiet, of which the run
// warns.
func machineOf(run *lab.Run) string {
	c := run.Tolerance.CompanyOf()
	if c == nil || c.Noisy() {
		return ""
	}
	left := 0
	for _, t := range run.Trials {
		if t.Machine != nil && !t.Valid && t.Machine.Busy > c.Limit {
			left++
		}
	}
	text := fmt.Sprintf("the machine was quiet: other work took %.2f of its %d processors beside a usual trial", c.Usual, c.Cores)
	if left > 0 {
		text += fmt.Sprintf(", and %d beside more than %.2f %s left out", left, c.Limit, lab.Plural(left, "is", "are"))
	}
	return text
}
