package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"eidetic/internal/plan"
	"eidetic/internal/tell/suite"
	"eidetic/netlab/link"
)

// TestPlansOfTheGuide: every plan that a reader is told to carry out is one, with all its files.
func TestPlansOfTheGuide(t *testing.T) {
	files, err := filepath.Glob("../../docs/plans/*.yaml")
	if apps, more := filepath.Glob("../../docs/plans/apps/*.yaml"); more == nil {
		files = append(files, apps...)
	}
	if err != nil || len(files) < 8 {
		t.Fatalf("%d plans, %v; want those of docs/plans", len(files), err)
	}
	for _, file := range files {
		q, err := plan.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := plan.Check(q, plan.Options{Scope: plan.ScopePerson, Traces: link.OpenFile, From: &plan.Folder{Path: filepath.Dir(file)}}); err != nil {
			t.Error(q.Locate(err))
		}
	}
}

// TestPlansInDocuments: each block of a document that is fenced as "yaml plan" can be carried out, with the files of
// docs/plans.
func TestPlansInDocuments(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if formats, more := filepath.Glob("../../docs/formats/*.md"); more == nil {
		files = append(files, formats...)
	}
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, block := range regexp.MustCompile("(?s)```yaml plan\n(.*?)```").FindAllSubmatch(text, -1) {
			found++
			name := filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d.yaml", filepath.Base(file), n+1))
			if err := os.WriteFile(name, block[1], 0o600); err != nil {
				t.Fatal(err)
			}
			q, err := plan.ReadFile(name)
			if err != nil {
				t.Error(err)
				continue
			}
			o := plan.Options{Scope: plan.ScopePerson, Traces: link.OpenFile, From: &plan.Folder{Path: "../../docs/plans"}}
			if _, err := plan.Check(q, o); err != nil {
				t.Error(q.Locate(err))
			}
		}
	}
	if found < 6 {
		t.Errorf("%d plans in documents; want at least 6", found)
	}
}

// TestSuitesOfTheGuide: every suite beside the plans of the guide is one, but for the recordings that a reader puts there.
func TestSuitesOfTheGuide(t *testing.T) {
	files, err := filepath.Glob("../../docs/plans/suites/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d suites, %v; want those of docs/plans/suites", len(files), err)
	}
	for _, file := range files {
		s, err := suite.Open(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for i := range s.Entries {
			q, err := s.PlanOf(i, nil, 0, 0)
			if err != nil {
				t.Error(err)
				continue
			}
			if q.Archive == "" || !filepath.IsLocal(q.Archive) {
				t.Errorf("%s: entry %s: archive %q; want a file beside the suite", file, s.Entries[i].Name, q.Archive)
			}
			if _, err := plan.Check(q, plan.Options{Scope: plan.ScopePerson, From: &plan.Folder{Path: filepath.Dir(file)}}); err != nil {
				t.Error(s.Locate(i, err))
			}
		}
	}
}
