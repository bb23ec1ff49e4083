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

	"eidetic/cmd/appliance/client"
	"eidetic/internal/base/atomicfile"
	"eidetic/internal/base/programs"
	"eidetic/internal/box/doctor"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/device"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/sandbox"
	"eidetic/netlab/link"
)

// defaultOut is where a run on this machine is kept without --out.
const defaultOut = "out/run"

// here carries the plan out on this machine.
func (c *RunCmd) here(ctx context.Context, std *streams, q *client.Request) error {
	plan, err := q.Plan()
	if err != nil {
		return usage(q.LocateError(err))
	}
	task, err := c.task(ctx, plan, q)
	if err != nil {
		return usage(q.LocateError(err))
	}
	if c.Resume {
		id, err := execute.Unfinished(ctx, task.Out, task.Plan, versionLine())
		if err != nil {
			return cannot(err)
		}
		if id != "" {
			task.ID = id
		}
	}
	l := localRun{Out: task.Out, Compare: plan.Compares()}
	if c.JSON {
		err = c.quietly(ctx, std, &task)
	} else {
		err = l.run(ctx, std, &task)
	}
	run, readErr := store.ReadRun(l.folder(task.ID))
	if readErr != nil { // it did not get as far as a folder
		return cmp.Or(err, cannot(readErr))
	}
	out := std.out
	if c.JSON {
		out = std.err
		err = cmp.Or(err, printJSON(std.out, run), gate(run, l.Compare))
	}
	printFound(out, run)
	return cmp.Or(err, c.copyResults(l.folder(task.ID)))
}

// quietly carries the task out with its progress on standard error, where --json leaves it.
func (c *RunCmd) quietly(ctx context.Context, std *streams, task *sandbox.Task) error {
	if err := doctor.CheckVirtualDevice(ctx); err != nil {
		return cannot(err)
	}
	if _, err := makeOut(task.Out); err != nil {
		return cannot(err)
	}
	bar := newProgress(std.err)
	defer bar.close()
	err := task.RunWithEvents(ctx, ownCommands(), execute.News{
		Say: func(text string) { bar.say("%s", text) }, Step: bar.step, Film: func(execute.FilmNews) {},
	})
	if err != nil {
		return runError(ctx, err)
	}
	return nil
}

// task is what the half in namespaces is asked for.
func (c *RunCmd) task(ctx context.Context, plan lab.Plan, q *client.Request) (sandbox.Task, error) {
	if err := plan.CheckMany(); err != nil { // first, as it bounds what the rest goes through
		return sandbox.Task{}, err
	}
	if !plan.IsMany() {
		plan = plan.WithArms(plan.Arms())
	}
	task := sandbox.Task{
		ID: store.NewID(time.Now(), nameOf(plan)), Plan: plan, Out: c.Out, Origins: sandbox.OriginsNone, NoSandbox: c.NoSandbox,
	}
	if task.Out == "" {
		task.Out = defaultOut
	}
	var err error
	if task.Out, err = filepath.Abs(task.Out); err != nil {
		return task, err
	}
	if plan.Device != "" && plan.Device != "virtual" {
		return task, fmt.Errorf("device: %q is a device of a box; name the box with --box, or leave the device out for this machine's virtual one", plan.Device)
	}
	if err := execute.Check(plan, link.OpenFile); err != nil {
		return task, err
	}
	for _, a := range plan.Every() {
		if err := findBrowser(a.Browser); err != nil {
			return task, fmt.Errorf("browser of the %s: %w", a.Name, err)
		}
	}
	if len(execute.FilesOf(plan)) > 0 {
		if task.Files, err = filepath.Abs(filepath.Dir(q.File())); err != nil {
			return task, err
		}
		if task.Files, err = filepath.EvalSymlinks(task.Files); err != nil {
			return task, err
		}
		if err := execute.CheckFiles(execute.Files{Folder: task.Files}, plan); err != nil {
			return task, err
		}
	}
	return task, c.origins(ctx, &task)
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

// origins finds out where the pages come from, and makes the names of recordings absolute.
func (c *RunCmd) origins(ctx context.Context, task *sandbox.Task) (err error) {
	var pages []string
	for _, a := range task.Plan.Every() {
		pages = append(pages, a.Page)
	}
	words := map[string]string{"archive": "archive of the control", "treatment.archive": "archive of the treatment"}
	task.Plan, err = task.Plan.MapArchives(func(field, name string) (string, error) {
		real, err := filepath.EvalSymlinks(name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", cmp.Or(words[field], field), err)
		}
		return filepath.Abs(real)
	})
	if err != nil {
		return err
	}
	if task.Origins, err = sandbox.OriginsOf(task.Plan); err != nil || task.Origins != sandbox.OriginsOutside {
		return err
	}
	task.Reach, err = c.reach(ctx, pages...)
	return err
}

// nameOf is what the run's ID ends with.
func nameOf(p lab.Plan) string {
	if p.Name != "" {
		return p.Name
	}
	return "run"
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
