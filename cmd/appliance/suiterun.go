package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"eidetic/internal/base/programs"
	"eidetic/internal/box/doctor"
	"eidetic/internal/box/suites"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/device"
	"eidetic/internal/run/execute"
	"eidetic/internal/tell/suite"
	"eidetic/internal/tell/terminal"
	"eidetic/netlab/link"
)

// suiteHere measures a suite on this machine. It is a suites.Lab.
type suiteHere struct {
	suite *suite.Suite
	out   string
	only  []string
	bar   *terminal.Progress
	quiet bool
	run   RunCmd
}

// all carries out what the result lacks.
func (l *suiteHere) all(ctx context.Context, r *suite.Result) error {
	for _, name := range r.Browsers {
		if err := findNamed(name); err != nil {
			return usage(err)
		}
	}
	keep := func(change func()) error {
		change()
		return cannot(r.Write(l.out))
	}
	m := &suites.Machine{Suite: l.suite, Result: r, Only: l.only, Lab: l, Runs: l.out, Keep: keep,
		Begins: func(j suites.Job, n, of int) { l.bar.Say("%s, %d of %d", j.Entry.Name, n, of) },
		Ended: func(o suite.Outcome) {
			if o.State != store.StateDone {
				l.bar.Say("%s: %s", o.Entry, terminal.Plain(o.Error))
			}
		},
	}
	jobs, err := m.Jobs()
	if err != nil {
		return usage(err)
	}
	if len(jobs) > 0 {
		if err := doctor.CheckVirtualDevice(ctx); err != nil {
			return cannot(err)
		}
	}
	err = m.Work(ctx, jobs)
	switch {
	case ctx.Err() != nil:
		return cannot(errors.New("interrupted; the same command goes on"))
	case err != nil:
		return err
	}
	return keep(func() {
		if r.Ended.IsZero() && m.IsComplete() {
			r.Ended = time.Now().UTC()
		}
	})
}

// Check implements suites.Lab: the recording of an entry is beside the suite, and its hash is the one that the suite
// says.
func (l *suiteHere) Check(e suite.Entry, q *plan.Request) error {
	if q.Archive != "" {
		file := q.Archive
		if !filepath.IsAbs(file) {
			file = filepath.Join(l.run.beside, file)
		}
		err := suite.CheckRecording(file, e.SHA256)
		if err == nil {
			err = q.Set("archive", file)
		}
		if err != nil {
			return &lab.FieldError{Path: "archive", Err: err}
		}
	}
	_, err := plan.Check(*q, plan.Options{Scope: plan.ScopePerson, Traces: link.OpenFile, From: &plan.Folder{Path: l.run.beside}})
	return err
}

// Make implements suites.Lab.
func (l *suiteHere) Make(ctx context.Context, j suites.Job, earlier suite.Outcome, begun func(string) error) (string, error) {
	task, asked, err := l.run.task(ctx, j.Plan)
	if err != nil {
		return "", usage(l.suite.Locate(j.At, err))
	}
	task.ID = store.NewID(time.Now(), l.suite.Name+"-"+j.Entry.Name)
	if earlier.State == suite.StateBegun {
		run, err := store.ReadRun(filepath.Join(l.out, "runs", earlier.Run))
		switch {
		case err == nil && run.State == store.StateDone: // it was killed between the run's end and its own note of that
			return earlier.Run, nil
		case err == nil && execute.Resumable(run, versionLine()) == nil && execute.SamePlan(run, asked):
			task.ID = earlier.Run
		}
	}
	if err := begun(task.ID); err != nil {
		return "", err
	}
	news := newsOf(l.bar)
	if l.quiet {
		news.Say = func(string) {}
	}
	return task.ID, task.RunWithEvents(ctx, ownCommands(), news)
}

// findNamed returns an error for a browser of a name or path that this machine lacks.
func findNamed(name string) error {
	err := device.CheckBrowser(lab.BrowserNamed(name))
	if err == nil && name == lab.Chromium {
		_, err = programs.Chromium().Find()
	}
	if err != nil {
		return fmt.Errorf("--browser %s: %w", name, err)
	}
	return nil
}
