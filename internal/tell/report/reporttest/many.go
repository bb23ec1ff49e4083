package reporttest

import (
	"fmt"
	"math/rand/v2"

	"eidetic/internal/lab"
	"eidetic/internal/tell/verdict"
)

// Many makes a run of three pages for two users with pairs of trials each, of which the treatment of the second page is
// slower by so many ms for both users.
func Many(seed uint64, pairs int, slower float64) *lab.Run {
	run := Run(seed, 0)
	run.ID, run.Name, run.Link.Name = "20261121-111400-many", "many", "lte"
	run.Archive = lab.ArchiveInfo{}
	run.Plan.Trials, run.Plan.Link, run.Plan.Treatment = pairs, "lte", &lab.Arm{Link: "3g"}
	for _, name := range []string{"home", "checkout", "search"} {
		run.Plan.Pages = append(run.Plan.Pages, lab.PlanPage{Name: name, Page: run.Page + name})
	}
	run.Plan.Users = []lab.PlanUser{{Name: "new"}, {Name: "anna", Viewport: "412x915"}}
	rng := rand.New(rand.NewPCG(seed, 5))
	for i, c := range run.Plan.Cells() {
		for k := range 2 * pairs {
			n, delay, arm := len(run.Trials)+1, 0.0, lab.Control
			if k%4 == 0 || k%4 == 3 {
				arm = lab.Treatment
				if c.Page == "checkout" {
					delay = slower
				}
			}
			t := delayed(rng, n, delay)
			t.Arm, t.Block, t.Cell, t.Page = arm, 1+k/10, c.Name, c.Plan.Page
			run.Trials = append(run.Trials, t)
		}
		run.Cells = append(run.Cells, lab.CellResult{
			Name: c.Name, Page: c.Page, User: c.User, URL: c.Plan.Page, Report: fmt.Sprintf("cell-%02d.html", i+1),
			Archive: &lab.ArchiveInfo{File: fmt.Sprintf("archive-%02d.wacz", i+1), Exchanges: 62},
		})
	}
	CompareMany(run)
	return run
}

// CompareMany recomputes the results of a run of many.
func CompareMany(run *lab.Run) {
	run.Summary = []lab.Summary{}
	for i, view := range run.Views() {
		Compare(view)
		run.Cells[i].Summary = view.Summary
	}
	together, each := verdict.Many(run, 1)
	run.Comparison = together
	for i, c := range each {
		run.Cells[i].Comparison = c
	}
}
