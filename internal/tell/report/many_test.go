package report

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// A run of many has a page with a row for each page and user, which leads to a report of its own.
func TestManyReports(t *testing.T) {
	run := reporttest.Many(2, 8, 400)
	dir, text := write(t, run, reporttest.Options{})
	for _, want := range []string{"3 pages for 2 users", "slower: checkout / new, checkout / anna", "All together", "checkout / anna", `href="cell-04.html"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in the report", want)
		}
	}
	links := regexp.MustCompile(`href="(cell-[^"]+)"`).FindAllStringSubmatch(text, -1)
	if len(links) < 6 {
		t.Errorf("%d links to reports of pages and users; want 6 or more", len(links))
	}
	for i, c := range run.Plan.Cells() {
		page, err := os.ReadFile(filepath.Join(dir, CellName(i)))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"many · " + c.Name, `href="report.html">All pages and users`, CellTimelineName(i) + "#", run.Cells[i].Comparison.Headline} {
			if !strings.Contains(string(page), want) {
				t.Errorf("%q is missing in the report of %s", want, c.Name)
			}
		}
		if n := strings.Count(string(page), `<details class="trial`); n != 16 {
			t.Errorf("the report of %s shows %d trials; want its 16", c.Name, n)
		}
		lines, err := os.ReadFile(filepath.Join(dir, CellTimelineName(i)))
		if err != nil || !strings.Contains(string(lines), CellName(i)) {
			t.Errorf("the timelines of %s: %v; want a link back to %s", c.Name, err, CellName(i))
		}
		if !IsPage(CellName(i)) || !IsPage(CellTimelineName(i)) {
			t.Errorf("IsPage(%s) is false", CellName(i))
		}
	}
	for _, name := range []string{"cell-1.html", "cell-01.htm", "x/cell-01.html", "cell-01.html.html", "trials/001/report.html"} {
		if IsPage(name) {
			t.Errorf("IsPage(%q) = true", name)
		}
	}
}

// A run of many with one arm, and one that failed before its first trial, have a report too.
func TestManyReportStates(t *testing.T) {
	one := reporttest.Many(3, 4, 0)
	one.Plan.Treatment = nil
	for _, trial := range one.Trials {
		trial.Arm = lab.Control
	}
	reporttest.CompareMany(one)
	if _, text := write(t, one, reporttest.Options{}); !strings.Contains(text, "Medians of the valid trials") || strings.Contains(text, "not compared") {
		t.Error("the report of one arm has no medians")
	}
	none := reporttest.Many(3, 4, 0)
	none.Trials, none.State, none.Error = nil, "failed", "the browser did not start"
	reporttest.CompareMany(none)
	if _, text := write(t, none, reporttest.Options{}); !strings.Contains(text, "This run failed: the browser did not start.") {
		t.Error("the report of a run without trials does not say why")
	}
}

// Names that a person chose do nothing in the report.
func TestManyHostileNames(t *testing.T) {
	run := reporttest.Many(5, 2, 0)
	const name = `<script>alert(1)</script>" onload="x`
	run.Plan.Users[0].Name = strings.ReplaceAll(name, "/", "")
	for i, c := range run.Plan.Cells() {
		run.Cells[i].Name = c.Name
	}
	if _, text := write(t, run, reporttest.Options{}); strings.Contains(text, "<script>alert") || strings.Contains(text, `" onload="x`) {
		t.Error("the name of a user is part of the page's code")
	}
}
