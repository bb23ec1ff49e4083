package main

import (
	"errors"
	"fmt"
	"strings"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// gate returns the error with the exit status that a run stands for, so that a
// script can stop at a regression, and cannot mistake a run without a verdict for
// one that found no difference. The verdict itself has been printed already.
func gate(run *lab.Run, compared bool) error {
	if run.State != store.StateDone {
		return cannot(fmt.Errorf("the run is %s and has no verdict: %s", run.State, client.Plain(run.Error)))
	}
	valid := map[string]int{lab.Control: 0}
	if compared {
		valid[lab.Treatment] = 0
	}
	for _, t := range run.Trials {
		if t.Valid {
			valid[t.Arm]++
		}
	}
	for arm, n := range valid {
		if n == 0 {
			return cannot(fmt.Errorf("no trial of the %s was valid; the report has the reasons", client.Plain(arm)))
		}
	}
	if !compared {
		return nil
	}
	if run.Comparison == nil {
		return cannot(errors.New("the run has two arms and does not say what it found"))
	}
	return gateOf(run.Comparison, "the treatment is slower", "ask for more trials with --trials")
}

// gateOf returns the error with the exit status of a comparison. slower is the
// question that the comparison answers, and more says how to get an answer.
func gateOf(c *lab.Comparison, slower, more string) error {
	switch c.Verdict {
	case lab.Faster, lab.NoChange, lab.Equivalent:
		return nil
	case lab.Slower, lab.Mixed:
		return &exitError{exitFailed, nil}
	default:
		why, _, _ := strings.Cut(c.Detail, "; ") // all of it stands above
		return cannot(fmt.Errorf("whether %s is not known: %s; %s", slower, client.Plain(why), more))
	}
}
