package sandbox

import (
	"context"
	"fmt"
	"path/filepath"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/device"
	"eidetic/internal/run/execute"
	"eidetic/netlab/link"
)

// Local is how a person has a plan carried out on this machine's virtual device.
type Local struct {
	ID     string // of the run
	Out    string // the store
	Beside string // the folder of the files that the plan names
	// NoSandbox and KeepProcessors are those of [Task].
	NoSandbox, KeepProcessors bool
	// Reach says how origins are reached that the pages are recorded from.
	Reach func(ctx context.Context, pages ...string) (Reach, error)
}

// Task checks a plan and makes a task of it. An error names the plan's field.
func (l Local) Task(ctx context.Context, q plan.Request) (t Task, asked plan.Checked, err error) {
	if q.Device != "" && q.Device != "virtual" {
		return t, asked, &lab.FieldError{Path: "device", Err: fmt.Errorf(
			"%q is a device of a box; name the box with --box, or leave the device out for this machine's virtual one", q.Device)}
	}
	beside, err := filepath.Abs(l.Beside)
	if err != nil {
		return t, asked, err
	}
	if asked, err = plan.Check(q, plan.Options{Scope: plan.ScopePerson, Traces: link.OpenFile, From: &plan.Folder{Path: beside}}); err != nil {
		return t, asked, err
	}
	if err := execute.CheckVirtual(asked); err != nil {
		return t, asked, err
	}
	for _, a := range asked.Every() {
		if err := device.CheckBrowser(a.Browser); err != nil {
			field := "browser"
			if a.App != nil {
				field = "app.command"
			}
			return t, asked, &lab.FieldError{Path: a.Field(field), Err: err}
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
		return t, asked, err
	}
	t = Task{ID: l.ID, Plan: asked.Plan, NoSandbox: l.NoSandbox, KeepProcessors: l.KeepProcessors}
	if len(asked.Contents) > 0 {
		if t.Files, err = filepath.EvalSymlinks(beside); err != nil {
			return t, asked, err
		}
	}
	if t.Out, err = filepath.Abs(l.Out); err != nil {
		return t, asked, err
	}
	if t.Origins, err = OriginsOf(t.Plan); err != nil || t.Origins != OriginsOutside {
		return t, asked, err
	}
	var pages []string
	for _, a := range t.Plan.Every() {
		pages = append(pages, a.Page)
	}
	t.Reach, err = l.Reach(ctx, pages...)
	return t, asked, err
}
