package report

import (
	"fmt"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// validity is that of a run: a line, and what opens below it.
type validity struct {
	Good   bool
	Says   string // "18 of 20 trials are valid, 2 are thrown away"
	Marks  []validityMark
	Thrown []thrown
}

// validityMark is a trial in the strip of trials.
type validityMark struct {
	Number           int
	Kind, Sign, Says string // Kind is "good", "bad" or "extra"
	Arm              string
}

// thrown is a reason with the trials that were thrown away for it.
type thrown struct {
	Reason string
	Trials []int
}

// mostReasons bounds the reasons; each trial has its own.
const mostReasons = 20

func validityOf(run *lab.Run, trials []trial, facts []fact) *validity {
	n, ok := run.Measured(), valid(run)
	if n == 0 {
		return nil
	}
	k := &validity{Good: true, Says: fmt.Sprintf("%d of %d trials are valid", ok, n)}
	if left := n - ok; left > 0 {
		k.Says += fmt.Sprintf("; %d %s thrown away", left, lab.Plural(left, "is", "are"))
	}
	var less []string
	for _, f := range facts {
		if k.Good = k.Good && f.Good; !f.Good && f.Label != factTrials {
			less = append(less, f.Label+": "+f.Value)
		}
	}
	if len(less) > 0 {
		k.Says += ". " + strings.Join(less, "; ")
	}
	at := map[string]int{}
	for _, t := range trials {
		m := validityMark{Number: t.Number, Kind: "good", Sign: "✓", Says: "valid", Arm: t.ArmName}
		switch extra := t.Extra(); {
		case t.Valid:
		case extra != "":
			m.Kind, m.Sign, m.Says = "extra", "·", extra
		default:
			m.Kind, m.Sign, m.Says = "bad", "✕", "thrown away"
			for _, reason := range t.Reasons {
				reason = gist(reason)
				if _, known := at[reason]; !known {
					if len(k.Thrown) == mostReasons {
						continue
					}
					at[reason] = len(k.Thrown)
					k.Thrown = append(k.Thrown, thrown{Reason: reason})
				}
				if list := &k.Thrown[at[reason]].Trials; !slices.Contains(*list, t.Number) {
					*list = append(*list, t.Number)
				}
			}
		}
		k.Marks = append(k.Marks, m)
	}
	return k
}

// gist is a reason without the numbers of its trial: what stands before the first colon. The trial itself has all of
// it.
func gist(reason string) string {
	if short, _, cut := strings.Cut(reason, ": "); cut {
		return sentence(short)
	}
	return reason
}
