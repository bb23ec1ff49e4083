package service

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// After a kill -9, the runs that were in progress are first in the queue again; those that cannot go
// on, or have no folder, are not.
func TestResumeJobs(t *testing.T) {
	r := newRunner(t)
	file := filepath.Join(r.data, "queue.db")
	before, err := store.OpenQueue(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		id     string
		folder bool
		miss   string
	}{{"goes-on", true, ""}, {"fills", true, lab.MissFill}, {"no-folder", false, ""}} {
		plan := lab.Plan{Device: c.id, Miss: c.miss}
		if err := before.Add(t.Context(), store.Job{ID: c.id, Device: c.id, Created: time.Unix(int64(i), 0), Plan: plan}); err != nil {
			t.Fatal(err)
		}
		if _, err := before.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !c.folder {
			continue
		}
		run := &lab.Run{ID: c.id, State: store.StateRunning, Plan: plan, Environment: lab.Environment{Appliance: "v1"}}
		f, err := store.Create(r.data, run)
		if err != nil {
			t.Fatal(err)
		}
		if c.id == "goes-on" { // its process is still about to end
			defer time.AfterFunc(300*time.Millisecond, func() { _ = f.Close() }).Stop()
		} else if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := before.Add(t.Context(), store.Job{ID: "waits", Device: "goes-on", Created: time.Unix(9, 0)}); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	jobs, err := store.OpenQueue(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Close()
	if got := resumeJobs(t.Context(), jobs, r.runs, "v1", slog.New(slog.DiscardHandler)); !slices.Equal(got, []string{"goes-on"}) {
		t.Errorf("resumeJobs() = %q; want the one that can go on", got)
	}
	if first, err := jobs.Next(t.Context()); err != nil || first.ID != "goes-on" {
		t.Errorf("the next job: %+v, %v; want the one that goes on", first, err)
	}
	if _, err := jobs.Next(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another job begins: %v; want it to wait for the device", err)
	}
}
