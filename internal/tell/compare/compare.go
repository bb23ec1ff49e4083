// Package compare compares a run with an earlier one: is it slower, and what else differs between the two? Its input is
// two runs, from the store or from files; its output is the verdict of package verdict and the facts of package
// history. Runs of two boxes of a fleet are compared if both boxes have measured the same reference.
package compare

import (
	"cmp"
	"fmt"
	"math"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/history"
	"eidetic/internal/tell/verdict"
)

// Between is the comparison of a run with an earlier one.
type Between struct {
	Reference string `json:"reference" doc:"ID of the earlier run"`
	// Named is set where the earlier run was asked for as a reference.
	Named  string  `json:"named,omitempty" doc:"The reference that it is" example:"main@3"`
	Run    string  `json:"run" doc:"ID of the run that is judged"`
	Margin float64 `json:"margin_percent" doc:"Differences up to so many percent of the reference are none"`
	// Different is an empty list, not null, if nothing differs.
	Different  []history.Fact  `json:"different" doc:"What in environment, link, plan and recording is not alike, and may be the reason"`
	Comparison *lab.Comparison `json:"comparison" doc:"The reference as control, the run as treatment"`
	// Cells are those of the run, if the runs are of several pages or users.
	Cells []Cell `json:"cells,omitempty" doc:"Of runs of several pages or users: what was found of each that the run has"`
	// Adjusted is set if two boxes of a fleet measured the runs.
	Adjusted *Adjusted `json:"adjusted,omitempty" doc:"How the run's numbers were adjusted, where another box measured it than the reference: the comparison's numbers are those that the reference's box would have measured"`
	Warnings []string  `json:"warnings,omitempty" doc:"What lowers the trust in the comparison, such as a box that drifts"`
}

// Cell is one page of the run for one of its users.
type Cell struct {
	Name       string          `json:"name" example:"checkout / anna"`
	Comparison *lab.Comparison `json:"comparison,omitempty" doc:"Absent where the reference does not have it"`
}

// UsualMargin is the margin of a run whose plan has none, in percent.
const UsualMargin = 5

// MarginOf is the margin by which a run is judged if nobody says another: that of its plan.
func MarginOf(run *lab.Run) float64 { return cmp.Or(run.Plan.Margin, UsualMargin) }

// mostCompared bounds the valid trials of a page and user: every trial of one run is compared
// with every trial of the other.
const mostCompared = 2000

// Runs compares the control of a run with that of an earlier one; see verdict.Between. Runs of several pages or users
// are compared page by page and user by user. Its error names the run that cannot be compared and says why.
func Runs(reference, run *lab.Run, margin float64, seed uint64) (*Between, error) {
	for _, r := range []*lab.Run{reference, run} {
		if err := canCompare(r); err != nil {
			return nil, fmt.Errorf("run %s: %w", r.ID, err)
		}
	}
	if err := haveCommon(reference, run); err != nil {
		return nil, err
	}
	b := &Between{
		Reference: reference.ID, Run: run.ID, Margin: margin, Different: history.Differences(store.Facts(reference), store.Facts(run)),
		Warnings: warnings(reference, run),
	}
	adjusted, scales, err := adjust(reference, run)
	if err != nil {
		return nil, err
	}
	if run.Plan.IsMany() {
		var each []*lab.Comparison
		b.Comparison, each = verdict.BetweenMany(reference, run, margin, seed, scales)
		for i, cell := range run.Plan.Cells() {
			b.Cells = append(b.Cells, Cell{cell.Name, each[i]})
		}
	} else {
		b.Comparison = verdict.Between(reference, run, margin, seed, scales)
	}
	switch c := b.Comparison; {
	case adjusted != nil:
		b.Adjusted = adjusted
		c.Detail += "; " + adjusted.Text
	case reference.ID == run.ID && reference.Wall.Equal(run.Wall):
		c.Verdict, c.Headline, c.Detail = lab.NoChange, "The same run", "both are run "+run.ID+", which does not differ from itself: name another one"
	}
	return b, nil
}

// haveCommon returns an error for runs that have no page and user in common.
func haveCommon(reference, run *lab.Run) error {
	if !reference.Plan.IsMany() && !run.Plan.IsMany() {
		return nil
	}
	names := map[string]bool{}
	for _, cell := range reference.Plan.Cells() {
		names[cell.Name] = true
	}
	for _, cell := range run.Plan.Cells() {
		if names[cell.Name] {
			return nil
		}
	}
	return fmt.Errorf("run %s has %s and run %s has %s, and none of the run is in the reference: pages and users are told apart by their names",
		reference.ID, cellsOf(reference), run.ID, cellsOf(run))
}

// cellsOf names the first pages and users of a run.
func cellsOf(run *lab.Run) string {
	cells := run.Plan.Cells()
	if !run.Plan.IsMany() {
		return "one page without a name"
	}
	text := fmt.Sprintf("%q", lab.Clip(cells[0].Name, 120))
	if more := len(cells) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// canCompare refuses a run that did not end well, one with too many trials, and values so
// large that differences would overflow.
func canCompare(run *lab.Run) error {
	if run.State != store.StateDone {
		return fmt.Errorf("it is %s: only one that is done can be compared", run.State)
	}
	valid := map[string]int{}
	for _, t := range run.Trials {
		if t.Valid {
			valid[t.Cell]++
		}
		for _, m := range t.Measurements {
			if math.Abs(m.Value) > 1e15 {
				return fmt.Errorf("trial %d: %.60s is %v, which nothing takes", t.Number, m.Name, m.Value)
			}
		}
	}
	for _, n := range valid {
		if n > mostCompared {
			return fmt.Errorf("%d valid trials: at most %d can be compared", n, mostCompared)
		}
	}
	return nil
}
