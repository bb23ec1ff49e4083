package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// ofMany is a run of three pages for two users, with a trial of each arm.
func ofMany() *lab.Run {
	run := done("20261121-111400-many", "many", 0)
	run.Trials = nil
	run.Plan.Page, run.Plan.Treatment = "", &lab.Arm{Link: "3g"}
	for _, name := range []string{"home", "checkout", "search"} {
		run.Plan.Pages = append(run.Plan.Pages, lab.PlanPage{Name: name, Page: "https://www.shop.example/" + name})
	}
	run.Plan.Users = []lab.PlanUser{{Name: "new"}, {Name: "anna", Viewport: "412x915"}}
	for i, c := range run.Plan.Cells() {
		for _, arm := range []string{lab.Control, lab.Treatment} {
			run.Trials = append(run.Trials, &lab.Trial{Number: len(run.Trials) + 1, Arm: arm, Cell: c.Name, Valid: true, Measurements: []lab.Measurement{{Name: "a_ms", Value: 1}}})
		}
		run.Cells = append(run.Cells, lab.CellResult{
			Name: c.Name, URL: c.Plan.Page, Report: fmt.Sprintf("cell-%02d.html", i+1), Comparison: &lab.Comparison{Verdict: lab.Slower},
			Summary: []lab.Summary{{Metric: "a_ms", Unit: "ms", Arm: lab.Control, N: 1, Median: 1}},
		})
	}
	run.Summary = []lab.Summary{}
	return run
}

// A run of many has a history for each page and user, links to their reports beside that of the newest run, and no more
// of either once it is gone.
func TestRunOfMany(t *testing.T) {
	root := filepath.Join(t.TempDir(), "[a]") // a name that is a pattern, too
	run := ofMany()
	f, err := Create(root, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Save(run); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(filepath.Join(root, "cell-06-timeline.html")); err != nil || to != "latest/cell-06-timeline.html" {
		t.Errorf("the link to the last timelines: %q, %v", to, err)
	}
	s, err := Open(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	found, err := s.Series(t.Context(), "", Series{Name: "many · checkout / anna"}, 10)
	if err != nil || len(found) != 1 || found[0].Count != 1 || found[0].Page != "https://www.shop.example/checkout" ||
		!strings.Contains(found[0].Browser, "412x915") {
		t.Fatalf("Series() of a page and user = %+v, %v; want one", found, err)
	}
	if all, err := s.Series(t.Context(), "", Series{}, 100); err != nil || len(all) != 6 {
		t.Errorf("%d series, %v; want one of each page and user", len(all), err)
	}
	past, err := s.Past(t.Context(), found[0].Key, 10)
	if err != nil || len(past) != 1 || past[0].Trials != 1 || len(past[0].Summary) == 0 {
		t.Errorf("Past() = %+v, %v; want the control's trial of it", past, err)
	}
	read, err := s.Run(run.ID)
	if err != nil || len(read.Cells) != 6 || read.Cells[3].Comparison == nil || read.Trials[0].Cell != "home / new" {
		t.Errorf("the run, read again: %+v, %v", read, err)
	}
	again, err := os.Open(filepath.Join(root, "runs", run.ID, reportFile))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got, err := DecodeResult(again); err != nil || len(got.Views()) != 6 || len(got.Views()[3].Trials) != 2 || got.Cells[3].Comparison == nil {
		t.Errorf("the run of report.json: %+v, %v; want its pages and users", got, err)
	}

	one := done("20261121-121400-one", "one", 0)
	f, err = Create(root, one)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if left, _ := fs.Glob(os.DirFS(root), "cell-*"); len(left) != 0 {
		t.Errorf("a run of one page leaves %q of the one before", left)
	}
	if err := os.RemoveAll(filepath.Join(root, "runs", run.ID)); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Series(t.Context(), "", Series{Name: "many · home / new"}, 10); err != nil || len(all) != 0 {
		t.Errorf("a run that is gone has series %+v, %v", all, err)
	}
}

// A run.json whose lists would make too many pages is refused before anything goes through them.
func TestDecodeHostileCells(t *testing.T) {
	pages := strings.TrimSuffix(strings.Repeat(`{"page":"https://a.test/"},`, 2000), ",")
	for name, text := range map[string]string{
		"pages": `{"id":"a","state":"done","plan":{"pages":[` + pages + `]}}`,
		"users": `{"id":"a","state":"done","plan":{"page":"https://a.test/","users":[{"name":"a"},{"name":"a"}]}}`,
		"cells": `{"id":"a","state":"done","cells":[` + strings.TrimSuffix(strings.Repeat(`{},`, 200), ",") + `]}`,
	} {
		if _, err := DecodeRun(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: DecodeRun() = %v; want an error that names them", name, err)
		}
	}
}
