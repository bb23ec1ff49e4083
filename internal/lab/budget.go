package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Budget is the most that a metric may be.
type Budget struct {
	Max float64 `json:"max" minimum:"0" maximum:"1000000000000" doc:"The most that the median may be, in the metric's unit" example:"1000"`
}

// What is found of a budget. It is Unknown if the interval of the median has the budget in it, or there is none.
const (
	OverBudget   = "over"
	WithinBudget = "within"
)

// BudgetFound is a metric's median beside its budget, of the arm that is judged: the treatment if there is one.
type BudgetFound struct {
	Cell    string  `json:"cell,omitempty"` // of a run of many pages or users
	Metric  string  `json:"metric"`
	Arm     string  `json:"arm"`
	Max     float64 `json:"max"`
	Finding string  `json:"finding"` // over, within or unknown
	Summary Summary `json:"summary"` // N is 0 if no valid trial has the metric
}

// Budgets judges the budgets of the plan by the 95 % interval of the median: over if all of it is above, within if none
// of it is.
func (r *Run) Budgets() []BudgetFound {
	all := []BudgetFound{}
	if len(r.Plan.Budgets) == 0 {
		return all
	}
	cells := r.Plan.Cells()
	for i, view := range r.Views() {
		arm := Control
		if view.Plan.Treatment != nil {
			arm = Treatment
		}
		for _, name := range slices.Sorted(maps.Keys(view.Plan.Budgets)) {
			b := BudgetFound{Cell: cells[i].Name, Metric: name, Arm: arm, Max: view.Plan.Budgets[name].Max, Finding: Unknown}
			for _, s := range view.Summary {
				if s.Metric == name && s.Arm == arm {
					b.Summary = s
				}
			}
			switch s := b.Summary; {
			case s.N < LeastForInterval:
			case s.Low > b.Max:
				b.Finding = OverBudget
			case s.High <= b.Max:
				b.Finding = WithinBudget
			}
			all = append(all, b)
		}
	}
	return all
}

// WorstBudget is the finding of all budgets together: one that is over, or else one that is not known; "" without any.
func WorstBudget(all []BudgetFound) (finding string) {
	for _, b := range all {
		switch {
		case b.Finding == OverBudget:
			return OverBudget
		case finding == "" || b.Finding == Unknown:
			finding = b.Finding
		}
	}
	return finding
}

// Words are a sentence about the budget of what people call label.
func (b BudgetFound) Words(label string) string {
	if b.Cell != "" {
		label = b.Cell + ": " + label
	}
	if b.Arm == Treatment {
		label += " of the treatment"
	}
	number := func(v float64) string {
		return strings.TrimSpace(strings.TrimPrefix(Signed(v, 1), "+") + " " + b.Summary.Unit)
	}
	s := b.Summary
	budget, median := "its budget of "+number(b.Max), fmt.Sprintf("%s (95 %% interval %s … %s)", number(s.Median), number(s.Low), number(s.High))
	if s.N < LeastForInterval {
		median = fmt.Sprintf("%d are valid and have it, and at least %d are needed", s.N, LeastForInterval)
	}
	switch b.Finding {
	case OverBudget:
		return fmt.Sprintf("%s is over %s: %s", label, budget, median)
	case WithinBudget:
		return fmt.Sprintf("%s is within %s: %s", label, budget, median)
	}
	return fmt.Sprintf("%s: whether it is within %s cannot be said with this many trials: %s", label, budget, median)
}
