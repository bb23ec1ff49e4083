package service

import (
	"context"
	"errors"
	"testing"

	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/execute"
	"eidetic/internal/tell/report"
)

// killedDevice measures in a process that is killed.
type killedDevice struct {
	noDevice
	root string
}

func (killedDevice) refuses(plan.Checked) error { return nil }
func (d killedDevice) carryOut(_ context.Context, id string, _ plan.Checked, _ execute.News) error {
	folder, err := store.Create(d.root, &lab.Run{ID: id, State: store.StateRunning})
	return errors.Join(errors.New("inside: signal: killed"), err, folder.Close())
}

// A run whose process was killed has the reason and a report in its folder at once.
func TestRunOfAKilledProcess(t *testing.T) {
	r := newRunner(t)
	r.devices.add("killed", killedDevice{root: r.data})
	q := lab.Plan{Device: "killed", Trials: 1, Timing: "recorded", Still: 1, Limit: 60, Arm: lab.Arm{Page: "https://www.x.test/"}}
	if err := r.Run(t.Context(), "1", q, func(runqueue.Progress) {}); err == nil {
		t.Error("Run() of a process that is killed = nil; want an error")
	}
	run, err := r.runs.Run("1")
	if err != nil || run.State != store.StateInterrupted || run.Error != "inside: signal: killed" {
		t.Errorf("the folder says %+v, %v; want an interrupted run with the reason", run, err)
	}
	files, err := r.runs.Files("1")
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if _, err := files.Stat(report.FileName); err != nil {
		t.Error(err)
	}
}
