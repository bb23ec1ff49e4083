package execute

import (
	"errors"
	"fmt"
	"slices"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/verdict"
	"eidetic/netlab/archive"
)

// cellArm is an arm of a cell, with the recording that it replays.
type cellArm struct {
	cell     int
	of       lab.Cell
	arm      lab.NamedArm
	file     string // name of the recording in the run's folder
	recorded *archive.Archive
}

// origin is what a recording is made of.
type origin struct{ page, archive, browser, user, steps string }

// armsOf lists the arms of all cells, with the names of their recordings: the same page is recorded once for
// both arms, and once for all users that are alike.
func armsOf(p lab.Plan) (arms []*cellArm, recordings []*cellArm) {
	made := map[origin]string{}
	for i, c := range p.Cells() {
		for _, a := range c.Plan.Arms() {
			one := &cellArm{cell: i, of: c, arm: a}
			from := origin{archive: a.Archive}
			if a.Archive == "" {
				from.page, from.browser = a.Page, a.Browser.String() // browsers ask for a page in different ways
				if p.IsMany() {
					from.steps = fmt.Sprintf("%+v", c.Plan.Steps)
				}
				if a.User.IsSeeded() {
					from.user = a.User.Name
				}
			}
			var known bool
			if one.file, known = made[from]; !known {
				one.file = recordingName(c, i, a.Name)
				made[from] = one.file
				recordings = append(recordings, one)
			}
			arms = append(arms, one)
		}
	}
	return arms, recordings
}

// recordingName is the file of an arm's recording in the run's folder.
func recordingName(c lab.Cell, i int, arm string) string {
	switch {
	case c.Name == "" && arm == lab.Control:
		return ArchiveFile
	case c.Name == "":
		return treatmentFile
	case arm == lab.Control:
		return fmt.Sprintf("archive-%02d.wacz", i+1)
	}
	return fmt.Sprintf("archive-%02d-treatment.wacz", i+1)
}

// newCells are the results of a run's cells before there are any; nil for a run of one page.
func newCells(p lab.Plan) (all []lab.CellResult) {
	if !p.IsMany() {
		return nil
	}
	for i, c := range p.Cells() {
		all = append(all, lab.CellResult{
			Name: c.Name, Page: c.Page, User: c.User, URL: c.Plan.Arms()[0].Page, Report: report.CellName(i), Summary: []lab.Summary{},
		})
	}
	return all
}

// findCells computes the results of a run of many.
func findCells(run *lab.Run) {
	for i, view := range run.Views() {
		if i < len(run.Cells) {
			run.Cells[i].Summary = summarise(view.Trials)
		}
	}
	together, each := verdict.Many(run, run.Plan.Seed)
	run.Comparison = together
	for i, c := range each {
		if run.State != store.StateDone {
			verdict.Stopped(c)
		}
		if i < len(run.Cells) {
			run.Cells[i].Comparison = c
		}
	}
}

// checkCells returns an error for a page of a plan that cannot be measured.
func checkCells(p lab.Plan, traces TraceOpener) error {
	for i, c := range p.Cells() {
		if err := checkCell(c.Plan, traces); err != nil {
			return placed(p, i, err)
		}
	}
	return nil
}

// ofCells is what trials are of besides arms, in words.
func ofCells(p lab.Plan) string {
	if !p.IsMany() {
		return ""
	}
	return fmt.Sprintf(", %d pages and %d users", max(len(p.Pages), 1), max(len(p.Users), 1))
}

// placed says in which of a plan's pages the error of a cell is.
func placed(p lab.Plan, cell int, err error) error {
	if len(p.Pages) == 0 {
		return err
	}
	at := fmt.Sprintf("pages[%d]", cell/max(len(p.Users), 1))
	var step *lab.StepError
	if errors.As(err, &step) {
		return &lab.StepError{Path: at + "." + step.Path, Err: step.Err}
	}
	return &lab.StepError{Path: at, Err: err}
}

// NeedsProtocolOf and LaunchesAgainOf are NeedsProtocol and LaunchesAgain of any of a plan's journeys.
func NeedsProtocolOf(p lab.Plan) bool {
	return slices.ContainsFunc(p.Cells(), func(c lab.Cell) bool { return NeedsProtocol(c.Plan.Steps) })
}

// LaunchesAgainOf is LaunchesAgain of any of a plan's journeys.
func LaunchesAgainOf(p lab.Plan) bool {
	return slices.ContainsFunc(p.Cells(), func(c lab.Cell) bool { return LaunchesAgain(c.Plan.Steps) })
}

// journeys lists the steps of all of a plan's pages.
func journeys(p lab.Plan) (all [][]lab.Step) {
	if len(p.Pages) == 0 {
		return [][]lab.Step{p.Steps}
	}
	for _, e := range p.Pages {
		all = append(all, e.Steps)
	}
	return all
}
