package execute

import (
	"fmt"
	"strings"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/verdict"
	"eidetic/netlab/archive"
)

// cellArm is an arm of a cell, with the recording that it replays.
type cellArm struct {
	cell     int
	of       plan.Cell
	arm      plan.Arm
	file     string // name of the recording in the run's folder
	recorded *archive.Archive
	more     []*take // further recordings of the same
}

// take is one of several recordings of an arm.
type take struct {
	file     string
	recorded *archive.Archive
}

// takes are all recordings of the arm, the first one first.
func (c *cellArm) takes() []*archive.Archive {
	all := []*archive.Archive{c.recorded}
	for _, t := range c.more {
		all = append(all, t.recorded)
	}
	return all
}

// files are their names.
func (c *cellArm) files() []string {
	all := []string{c.file}
	for _, t := range c.more {
		all = append(all, t.file)
	}
	return all
}

// origin is what a recording is made of.
type origin struct {
	page, archive, browser, user, steps string
	app                                 lab.App
}

// armsOf lists the arms of all cells, with the names of their recordings: the same page is recorded once for
// both arms, and once for all users that are alike.
func armsOf(p plan.Checked) (arms []*cellArm, recordings []*cellArm) {
	made := map[origin]string{}
	for i, c := range p.Cells {
		for _, a := range c.Arms {
			one := &cellArm{cell: i, of: c, arm: a}
			from := origin{archive: a.Archive}
			if a.Archive == "" {
				from.page, from.browser = a.Page, browserKey(a.Browser) // browsers ask for a page in different ways
				if a.App != nil {
					from.app = *a.App
				}
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
			if a.Archive == "" {
				for n := 2; n <= p.Recordings; n++ {
					one.more = append(one.more, &take{file: strings.TrimSuffix(one.file, ".wacz") + fmt.Sprintf(".%d.wacz", n)})
				}
			}
			arms = append(arms, one)
		}
	}
	return arms, recordings
}

// recordingName is the file of an arm's recording in the run's folder.
func recordingName(c plan.Cell, i int, arm string) string {
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
func newCells(p plan.Checked) (all []lab.CellResult) {
	if !p.IsMany() {
		return nil
	}
	for i, c := range p.Cells {
		all = append(all, lab.CellResult{
			Name: c.Name, Page: c.Page, User: c.User, URL: c.Arms[0].Page, Report: report.CellName(i), Summary: []lab.Summary{},
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
