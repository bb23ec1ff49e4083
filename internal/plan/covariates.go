package plan

import (
	"cmp"
	"slices"

	"eidetic/internal/lab"
)

// checkCovariates fills in by what a comparison is adjusted, where the plan does not say, and returns an error for what
// it cannot be adjusted by.
func (c *Checked) checkCovariates() error {
	if len(c.Covariates) > 0 && !c.Compares() {
		return fieldError("covariates", "there is nothing to compare: the plan has no treatment")
	}
	for i, name := range c.Covariates {
		switch {
		case slices.Index(c.Covariates, name) < i:
			return fieldError("covariates", "%s stands there twice", name)
		case name == lab.CovariateNone && len(c.Covariates) > 1:
			return fieldError("covariates", "none is for none: leave out the others")
		}
	}
	if len(c.Covariates) == 0 && c.Compares() {
		c.Covariates = c.usualCovariates()
		c.fill()
	}
	return nil
}

// usualCovariates are those that no arm of the plan can change: none if the arms have different browsers or states.
// What the browser does before the key depends on nothing else if its profile is empty, and how long it takes to ask
// for the page only on the page's address and the link.
func (c *Checked) usualCovariates() (names []string) {
	empty, same := true, true
	for _, cell := range c.Cells {
		a, b := cell.Arms[0].Arm, cell.Arms[1].Arm
		if a.App != nil || a.Browser.String() != b.Browser.String() || cmp.Or(a.State, lab.StateCold) != cmp.Or(b.State, lab.StateCold) ||
			cmp.Or(a.Process, "same") != cmp.Or(b.Process, "same") {
			return nil
		}
		empty = empty && cmp.Or(a.State, lab.StateCold) == lab.StateCold
		same = same && a.Page == b.Page && a.Link == b.Link && a.Inject == b.Inject
	}
	for _, name := range lab.Covariates() {
		switch name {
		case lab.CovariateSettle, lab.CovariatePage:
			if !empty {
				continue
			}
		case lab.CovariateRequest:
			if !empty || !same {
				continue
			}
		}
		names = append(names, name)
	}
	return names
}
