package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"eidetic/internal/box/doctor"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/tell/report"
	"eidetic/internal/web/panel"
	"eidetic/netlab/link"
)

// localRun is a run on this machine's virtual device that a person waits for, and whose
// report the panel shows afterwards.
type localRun struct {
	Out     string
	Listen  string // where the panel listens; empty: no panel
	Compare bool   // the exit status tells whether the treatment is slower
}

// usualPanel is where the panel is unless a person says another address; where another program is there, it is elsewhere.
const usualPanel = "127.0.0.1:8080"

// run carries the task out.
func (l localRun) run(ctx context.Context, std *streams, t *sandbox.Task) error {
	var listener net.Listener
	if l.Listen != "" {
		at, err := panel.Listen(ctx, l.Listen, "--listen")
		if errors.Is(err, syscall.EADDRINUSE) && l.Listen == usualPanel {
			if at, err = panel.Listen(ctx, "127.0.0.1:0", "--listen"); err == nil {
				fmt.Fprintf(std.err, "Port 8080 is taken by another program: the panel will be at http://%s/\n", at.Addr())
			}
		}
		if err != nil {
			return cannot(err)
		}
		defer at.Close()
		if !panel.Loopback(at.Addr()) { // refused now, and not after all trials
			return usage(fmt.Errorf("--listen %s: others can reach this address, and this panel asks for no token; "+
				"listen on 127.0.0.1, or make the run with --no-serve and show it with appliance serve, which makes a token", l.Listen))
		}
		listener = at
	}
	if err := doctor.CheckVirtualDevice(ctx); err != nil {
		return cannot(err)
	}
	made, err := makeOut(l.Out)
	if err != nil {
		return cannot(err)
	}
	if err := t.Run(ctx, ownCommands()); err != nil {
		if made {
			_ = os.Remove(l.Out) // fails if something is in it, which is then kept
		}
		l.tellFound(std, t.ID)
		l.tellReport(std, t.ID) // the report explains why no trial was valid
		return runError(ctx, err)
	}
	l.tellFound(std, t.ID)
	l.tellReport(std, t.ID)
	if t.Origins != sandbox.OriginsNone {
		l.tell(std, t.ID, execute.ArchiveFile, "The recording can be replayed again: appliance demo --archive %s\n")
	}
	if listener != nil {
		if err := servePanel(ctx, std, l.Out, listener); err != nil {
			return err
		}
	}
	run, err := store.ReadRun(l.folder(t.ID))
	if err != nil {
		return cannot(err)
	}
	return gate(run, l.Compare)
}

// folder is where the run is.
func (l localRun) folder(id string) string { return filepath.Join(l.Out, "runs", id) }

// tellFound ends with the answer, as far as the run got.
func (l localRun) tellFound(std *streams, id string) {
	if run, err := store.ReadRun(l.folder(id)); err == nil {
		printAnswer(std.out, run) // the verdict's sentence came with the progress
	}
}

// tellReport names the report, if there is one.
func (l localRun) tellReport(std *streams, id string) {
	l.tell(std, id, report.FileName, "The report opens from disk: %s\n")
}

// tell prints a line with the name of a file of the run, if it is there.
func (l localRun) tell(std *streams, id, name, text string) {
	file := filepath.Join(l.folder(id), name)
	if _, err := os.Stat(file); err == nil {
		fmt.Fprintf(std.out, text, file)
	}
}

// checkFlags checks a plan of flags, of which a 0 is said, too.
func checkFlags(p lab.Plan, trials int, still, limit time.Duration) error {
	q := plan.Request{Plan: p}
	err := errors.Join(q.Set("trials", trials), q.Set("still_s", still.Seconds()), q.Set("limit_s", limit.Seconds()))
	if err == nil {
		_, err = plan.Check(q, plan.Options{Scope: plan.ScopePerson, Traces: link.OpenFile})
	}
	return err
}

// ended gives the end of the half in namespaces, which has told the person why it
// failed, its exit status.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exitError{exitCannot, errors.New("interrupted; what was finished is kept")}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &exitError{exit.ExitCode(), nil}
	}
	return cannot(fmt.Errorf("the lab ended early: %w", err))
}

// makeOut makes the output folder and proves that it can be written to. It
// tells whether the folder is new.
func makeOut(dir string) (made bool, err error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		made = true
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, fmt.Errorf("--out %s: cannot make it: %w", dir, err)
	}
	probe, err := os.CreateTemp(dir, ".writable-")
	if err != nil {
		return made, fmt.Errorf("--out %s: cannot write there: %w", dir, err)
	}
	probe.Close()
	return made, os.Remove(probe.Name())
}

// servePanel shows a store of runs until ctx ends.
func servePanel(ctx context.Context, std *streams, dir string, l net.Listener) error {
	runs, err := store.Open(ctx, dir, nil)
	if err != nil {
		return cannot(err)
	}
	defer runs.Close()
	fmt.Fprintf(std.out, "The panel is at http://%s/ until you press Ctrl-C.\n", l.Addr())
	p, err := panel.New(panel.Config{Store: runs, Version: version})
	if err != nil {
		return cannot(err)
	}
	return p.Serve(ctx, l)
}
