package main

import (
	"path/filepath"
	"testing"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/run/execute"
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
		q, err := client.ReadRequest(file)
		if err != nil {
			t.Error(err)
			continue
		}
		plan, err := q.Plan()
		if err == nil {
			err = execute.Check(plan, link.OpenFile)
		}
		if err == nil {
			err = execute.CheckFiles(execute.Files{Folder: filepath.Dir(file)}, plan)
		}
		if err != nil {
			t.Error(q.LocateError(err))
		}
	}
}
