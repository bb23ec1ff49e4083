package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// checkBudgets returns an error for budgets that no run can keep or exceed.
func (c *Checked) checkBudgets() error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(c.Budgets)) {
		err := c.checkMetric("budgets", name)
		if err == nil && !(c.Budgets[name].Max > 0) {
			err = fieldError("budgets."+name+".max", "%v: a number above 0", c.Budgets[name].Max)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// checkMargins returns an error for margins of metrics and pages that judge nothing.
func (c *Checked) checkMargins() error {
	var all []error
	check := func(field string, margins map[string]float64) {
		for _, name := range slices.Sorted(maps.Keys(margins)) {
			err := c.checkMetric(field, name)
			if err == nil && !(margins[name] > 0 && margins[name] <= 100) {
				err = fieldError(field+"."+name, "%v: a percentage above 0, at most 100", margins[name])
			}
			all = append(all, err)
		}
		if len(margins) > 0 && c.Margin == 0 {
			all = append(all, fieldError(field, "margin_percent is missing: it is the margin of all other metrics"))
		}
	}
	check("margins_percent", c.Margins)
	for i, e := range c.Pages {
		field := fmt.Sprintf("pages[%d].margins_percent", i)
		check(field, e.Margins)
		if e.Margin != 0 && c.Margin == 0 {
			all = append(all, fieldError(fmt.Sprintf("pages[%d].margin_percent", i), "the plan has none: it is the margin of all other pages"))
		}
	}
	return errors.Join(all...)
}

// checkMetric returns an error for the name of a metric that the plan cannot have.
func (c *Checked) checkMetric(field, name string) error {
	ref := metric.Parse(name)
	switch {
	case name == "" || len(name) > 300:
		return fieldError(field, "%.40q: the name of a metric has 1 to 300 bytes", name)
	case ref.ID == 0:
		return fieldError(field+"."+name, "there is no metric of this name: did you mean %s?",
			bounded.Nearest(ref.Name, metric.Names(metric.All())))
	case ref.Step != "" && !slices.Contains(c.stepPaths(), ref.Step):
		return fieldError(field+"."+name, "the plan has no step %.60q%s", ref.Step, nearestOf(ref.Step, c.stepPaths()))
	}
	return nil
}

// stepPaths are the paths of the steps of all cells.
func (c *Checked) stepPaths() (all []string) {
	for _, cell := range c.Cells {
		all = append(all, lab.StepPaths(cell.Plan.Steps)...)
	}
	return all
}

// nearestOf asks whether the nearest of some names was meant, if there are any.
func nearestOf(name string, all []string) string {
	if len(all) == 0 {
		return ""
	}
	return ": did you mean " + bounded.Nearest(name, all) + "?"
}
