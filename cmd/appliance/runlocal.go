package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/keep/store"
	"eidetic/internal/plan"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/sandbox"
)

// defaultOut is where a run on this machine is kept without --out.
const defaultOut = "out/run"

// here carries the plan out on this machine.
func (c *RunCmd) here(ctx context.Context, std *streams, q plan.Request) error {
	task, asked, err := c.task(ctx, q)
	if err != nil {
		return usage(q.Locate(err))
	}
	if c.Resume {
		id, err := execute.Unfinished(ctx, task.Out, asked, versionLine())
		if err != nil {
			return cannot(err)
		}
		if id != "" {
			task.ID = id
		}
	}
	l := localRun{outcomeFlags: c.outcomeFlags, Out: task.Out, Compare: asked.Compares()}
	l.NoServe = true
	err = l.run(ctx, std, &task)
	if _, readErr := os.Stat(l.folder(task.ID)); readErr != nil { // it did not get as far as a folder
		return cmp.Or(err, cannot(readErr))
	}
	if copied := c.copyResults(l.folder(task.ID)); copied != nil {
		return cmp.Or(err, copied)
	}
	return worse(err, c.hereAgainst(std, l.folder(task.ID)))
}

// task is what the half in namespaces is asked for, with its plan.
func (c *RunCmd) task(ctx context.Context, q plan.Request) (task sandbox.Task, asked plan.Checked, err error) {
	local := sandbox.Local{
		ID: store.NewID(time.Now(), cmp.Or(q.Name, "run")), Out: cmp.Or(c.Out, defaultOut), Beside: cmp.Or(c.beside, filepath.Dir(q.File())),
		NoSandbox: c.NoSandbox, KeepProcessors: c.KeepProcessors, Reach: c.reach,
	}
	return local.Task(ctx, q)
}

// copyResults puts the run's numbers where a script looks for them.
func (c *RunCmd) copyResults(folder string) error {
	if c.Out == "" {
		return nil
	}
	for _, name := range []string{"run.json", "report.json"} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = atomicfile.WriteFile(filepath.Join(c.Out, name), content, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
