package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/terminal"
)

// gate returns the error with the exit status that a run stands for, so that a
// script can stop at a regression, and cannot mistake a run without a verdict for
// one that found no difference. The verdict itself has been printed already.
func gate(run *lab.Run, compared bool) error {
	if run.State != store.StateDone {
		return cannot(fmt.Errorf("the run is %s and has no verdict: %s", run.State, terminal.Plain(run.Error)))
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
			return cannot(fmt.Errorf("no trial of the %s was valid; the report has the reasons", terminal.Plain(arm)))
		}
	}
	var err error
	switch {
	case compared && run.Comparison == nil:
		err = cannot(errors.New("the run has two arms, but its comparison is missing"))
	case compared:
		err = gateOf(run.Comparison, "the treatment is slower", "ask for more trials with --trials")
	}
	return withBudgets(err, run)
}

// withBudgets adds to the error of a run what its budgets say: a regression or a budget that is not kept comes before
// what is not known.
func withBudgets(err error, run *lab.Run) error {
	var exit *exitError
	if errors.As(err, &exit) && exit.status == exitFailed {
		return err
	}
	all := run.Budgets()
	switch lab.WorstBudget(all) {
	case lab.OverBudget:
		return failed(nil)
	case lab.Unknown:
		if err == nil {
			i := slices.IndexFunc(all, func(b lab.BudgetFound) bool { return b.Finding == lab.Unknown })
			says := terminal.Plain(all[i].Words(metric.Label(all[i].Metric)))
			err = &exitError{exitUnsure, fmt.Errorf("%s; ask for more trials with --trials", says)}
		}
	}
	return err
}

// gateOf returns the error with the exit status of a comparison. slower is the
// question that the comparison answers, and more says how to get an answer.
func gateOf(c *lab.Comparison, slower, more string) error {
	switch c.Verdict {
	case lab.Faster, lab.NoChange, lab.Equivalent:
		return nil
	case lab.Slower, lab.Mixed:
		return failed(nil)
	default:
		why, _, _ := strings.Cut(c.Detail, "; ") // all of it stands above
		return cannot(fmt.Errorf("whether %s is not known: %s; %s", slower, terminal.Plain(why), more))
	}
}
