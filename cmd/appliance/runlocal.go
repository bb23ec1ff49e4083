package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/base/programs"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/device"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/sandbox"
	"eidetic/netlab/link"
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
	wrong := func(err error) (sandbox.Task, plan.Checked, error) { return task, asked, err }
	if q.Device != "" && q.Device != "virtual" {
		return wrong(&lab.FieldError{Path: "device", Err: fmt.Errorf(
			"%q is a device of a box; name the box with --box, or leave the device out for this machine's virtual one", q.Device)})
	}
	beside, err := filepath.Abs(cmp.Or(c.beside, filepath.Dir(q.File())))
	if err != nil {
		return wrong(err)
	}
	if asked, err = plan.Check(q, plan.Options{Scope: plan.ScopePerson, Traces: link.OpenFile, From: &plan.Folder{Path: beside}}); err != nil {
		return wrong(err)
	}
	if err := execute.CheckVirtual(asked); err != nil {
		return wrong(err)
	}
	for _, a := range asked.Every() {
		if err := findBrowser(a.Browser); err != nil {
			field := "browser"
			if a.App != nil {
				field = "app.command"
			}
			return wrong(&lab.FieldError{Path: a.Field(field), Err: err})
		}
	}
	asked, err = asked.WithArchives(func(field, name string) (string, error) {
		real, err := filepath.EvalSymlinks(name)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err != nil {
			err = &lab.FieldError{Path: field, Err: err}
		}
		return real, err
	})
	if err != nil {
		return wrong(err)
	}
	id := store.NewID(time.Now(), cmp.Or(q.Name, "run"))
	task = sandbox.Task{ID: id, Plan: asked.Plan, NoSandbox: c.NoSandbox, KeepProcessors: c.KeepProcessors}
	if len(asked.Contents) > 0 {
		if task.Files, err = filepath.EvalSymlinks(beside); err != nil {
			return wrong(err)
		}
	}
	if task.Out, err = filepath.Abs(cmp.Or(c.Out, defaultOut)); err != nil {
		return wrong(err)
	}
	return task, asked, c.origins(ctx, &task)
}

// findBrowser returns an error for a browser that this machine lacks.
func findBrowser(b *lab.Browser) (err error) {
	if err := device.CheckExtensions(b); err != nil {
		return err
	}
	switch {
	case b == nil:
	case b.Command != "":
		_, err = exec.LookPath(strings.Fields(b.Command)[0])
	case b.Family() == lab.Firefox:
		_, err = programs.Firefox().Find()
	}
	return err
}

// origins finds out where the pages come from.
func (c *RunCmd) origins(ctx context.Context, task *sandbox.Task) (err error) {
	if task.Origins, err = sandbox.OriginsOf(task.Plan); err != nil || task.Origins != sandbox.OriginsOutside {
		return err
	}
	var pages []string
	for _, a := range task.Plan.Every() {
		pages = append(pages, a.Page)
	}
	task.Reach, err = c.reach(ctx, pages...)
	return err
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
