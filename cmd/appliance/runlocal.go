package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/atomicfile"
	"eidetic/internal/client"
	"eidetic/internal/doctor"
	"eidetic/internal/execute"
	"eidetic/internal/experiment"
	"eidetic/internal/lab"
	"eidetic/internal/report"
	"eidetic/internal/samplesite"
	"eidetic/internal/sandbox"
	"eidetic/internal/store"
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
	if err := doctor.CheckVirtualDevice(ctx); err != nil {
		return cannot(err)
	}
	if _, err := makeOut(task.Out); err != nil {
		return cannot(err)
	}
	out := std.out
	if c.JSON {
		out = std.err
	}
	bar := newProgress(out)
	defer bar.close()
	failure := task.RunWithEvents(ctx, ownCommands(), execute.News{
		Say: func(text string) { bar.say("%s", text) }, Step: bar.step, Film: func(execute.FilmNews) {},
	})
	bar.close()
	folder := filepath.Join(task.Out, "runs", task.ID)
	run, err := store.ReadRun(folder)
	if err != nil { // it did not get as far as a folder
		return cannot(errors.Join(failure, ctx.Err()))
	}
	for i, t := range run.Trials {
		bar.step(experiment.Step{Trial: t.Number, Of: len(run.Trials), Done: run.Trials[i]})
	}
	printFound(out, run)
	fmt.Fprintf(out, "The report opens from disk: %s\n", filepath.Join(folder, report.FileName))
	if err := c.copyResults(folder); err != nil {
		return cannot(err)
	}
	if c.JSON {
		if err := printJSON(std.out, run); err != nil {
			return cannot(err)
		}
	}
	if failure != nil {
		if ctx.Err() != nil {
			return &exitError{exitCannot, errors.New("interrupted; what was finished is kept")}
		}
		return cannot(failure)
	}
	return gate(run, plan.Treatment != nil)
}

// task is what the half in namespaces is asked for.
func (c *RunCmd) task(ctx context.Context, plan lab.Plan, q *client.Request) (sandbox.Task, error) {
	plan = plan.WithArms(plan.Arms())
	task := sandbox.Task{ID: store.NewID(time.Now(), nameOf(plan)), Plan: plan, Out: c.Out, Origins: sandbox.OriginsNone}
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
	if len(lab.Pictures(plan.Steps))+len(lab.Gestures(plan.Steps)) > 0 {
		if task.Files, err = filepath.Abs(filepath.Dir(q.File())); err != nil {
			return task, err
		}
		if task.Files, err = filepath.EvalSymlinks(task.Files); err != nil {
			return task, err
		}
		if _, _, err := execute.ReadFiles(task.Files, plan.Steps); err != nil {
			return task, err
		}
	}
	return task, c.origins(ctx, &task)
}

// origins finds out where the pages come from: the sample site's are served here.
func (c *RunCmd) origins(ctx context.Context, task *sandbox.Task) error {
	arms := task.Plan.Arms()
	for i := range arms {
		a := &arms[i]
		if a.Archive != "" {
			real, err := filepath.EvalSymlinks(a.Archive)
			if err != nil {
				return fmt.Errorf("archive of the %s: %w", a.Name, err)
			}
			if a.Archive, err = filepath.Abs(real); err != nil {
				return err
			}
			continue
		}
		u, err := url.Parse(a.Page)
		if err != nil {
			return err
		}
		kind := sandbox.OriginsOutside
		if _, ours := samplesite.Hosts()[u.Hostname()]; ours {
			kind = sandbox.OriginsSample
		}
		if task.Origins != sandbox.OriginsNone && task.Origins != kind {
			return errors.New("page of the treatment: one page is the sample site's and the other is not; record one of them first (appliance record)")
		}
		task.Origins = kind
	}
	task.Plan = task.Plan.WithArms(arms)
	if task.Origins != sandbox.OriginsOutside {
		return nil
	}
	var pages []string
	for _, a := range arms {
		pages = append(pages, a.Page)
	}
	var err error
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
