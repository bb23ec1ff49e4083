package main

import (
	"path/filepath"
	"testing"

	"eidetic/internal/plan"
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
