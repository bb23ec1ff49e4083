package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"eidetic/internal/lab"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/frequency"
	"eidetic/internal/run/isolate"
)

// Run carries the task out in namespaces that end with it, makes the inner half's
// connections to origins, and shows a person its progress. The error is an
// *exec.ExitError when the inner half has told the person why it failed.
func (t Task) Run(ctx context.Context, c Commands) error {
	t.Events = false
	return t.run(ctx, c)
}

// RunWithEvents is like Run, and passes the inner half's events on to news instead.
func (t Task) RunWithEvents(ctx context.Context, c Commands, news execute.News) error {
	t.Events = true
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	told := make(chan error, 1)
	go func() { told <- readEvents(read, news) }()
	err = t.run(ctx, c, write)
	write.Close()
	reported := <-told
	var exit *exec.ExitError
	if reported != nil && errors.As(err, &exit) {
		return reported
	}
	return err
}

// run starts the inner half with these files and that of its connections.
func (t Task) run(ctx context.Context, c Commands, files ...*os.File) (err error) {
	t.Reach.ownHosts() // both halves use the same name server
	if err := t.check(ctx); err != nil {
		return err
	}
	if !t.KeepProcessors {
		release, _, holdErr := frequency.This("").Hold()
		if holdErr != nil { // all is as it was, and the run says at which frequency it measures
			t.Warnings = append(t.Warnings, fmt.Sprintf("The processors were left as they are: %v.", holdErr))
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	task, err := handOver(t)
	if err != nil {
		return err
	}
	defer task.Close()
	files = append([]*os.File{task}, files...)
	if t.Origins == OriginsOutside {
		outside, inside, err := isolate.DialSockets()
		if err != nil {
			return err
		}
		defer inside.Close()
		go isolate.ServeDials(ctx, outside, t.Reach.forInside)
		files = append(files, inside)
	}
	return c.run(ctx, c.Inside, files...)
}

// check returns an error if a page that is to be recorded cannot be reached.
func (t Task) check(ctx context.Context) error {
	if t.Origins != OriginsOutside {
		return nil
	}
	for _, a := range t.Plan.Every() {
		if a.Archive != "" || lab.IsAppPage(a.Page) {
			continue
		}
		if err := t.Reach.Check(ctx, a.Page); err != nil {
			return &OriginError{err}
		}
	}
	return nil
}

// OriginError says that a page cannot be recorded because its origin cannot be reached.
type OriginError struct{ Err error }

func (e *OriginError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *OriginError) Unwrap() error { return e.Err }
