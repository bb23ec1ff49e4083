package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"eidetic/internal/tell/terminal"
	"eidetic/internal/web/panel"
	"eidetic/netlab/link"
)

// localRun is a run on this machine's virtual device that a person waits for, and whose
// report the panel shows afterwards.
type localRun struct {
	panelFlags
	outcomeFlags
	Out     string
	Compare bool // the exit status tells whether the treatment is slower
}

// panelFlags say how the result is shown afterwards.
type panelFlags struct {
	Listen  string `placeholder:"HOST:PORT" help:"Where the panel shows the result afterwards; a loopback address (127.0.0.1:8080, or another port where that one is taken)."`
	NoServe bool   `help:"Write the report and end."`
}

// usualPanel is where the panel is unless a person says another address, or another program is there.
const usualPanel = "127.0.0.1:8080"

// listen opens the panel's address, or nothing where no person looks at it.
func (l localRun) listen(ctx context.Context, std *streams) (net.Listener, error) {
	if l.NoServe || l.JSON || l.Quiet {
		return nil, nil
	}
	at, err := panel.Listen(ctx, cmp.Or(l.Listen, usualPanel), "--listen")
	if errors.Is(err, syscall.EADDRINUSE) && l.Listen == "" {
		if at, err = panel.Listen(ctx, "127.0.0.1:0", "--listen"); err == nil {
			fmt.Fprintf(std.err, "Port 8080 is taken by another program: the panel will be at http://%s/\n", at.Addr())
		}
	}
	if err != nil {
		return nil, cannot(err)
	}
	if !panel.Loopback(at.Addr()) { // refused now, and not after all trials
		at.Close()
		return nil, usage(fmt.Errorf("--listen %s: others can reach this address, and this panel asks for no token; "+
			"listen on 127.0.0.1, or make the run with --no-serve and show it with appliance serve, which makes a token", l.Listen))
	}
	return at, nil
}

// run carries the task out.
func (l localRun) run(ctx context.Context, std *streams, t *sandbox.Task) error {
	listener, err := l.listen(ctx, std)
	if err != nil {
		return err
	}
	if listener != nil {
		defer listener.Close()
	}
	if err := doctor.CheckVirtualDevice(ctx); err != nil {
		return cannot(err)
	}
	made, err := makeOut(l.Out)
	if err != nil {
		return cannot(err)
	}
	if err := l.carryOut(ctx, std, t); err != nil {
		if made {
			_ = os.Remove(l.Out) // fails if something is in it, which is then kept
		}
		_ = l.tell(std, t) // the report explains why no trial was valid
		return runError(ctx, err)
	}
	if err := l.tell(std, t); err != nil {
		return err
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

// carryOut has the half in namespaces do the work and show its progress; where standard output is for a program, this
// half shows it on standard error, if anybody is to see it.
func (l localRun) carryOut(ctx context.Context, std *streams, t *sandbox.Task) error {
	if !l.JSON && !l.Quiet {
		return t.Run(ctx, ownCommands())
	}
	bar := terminal.NewProgress(std.err)
	if l.Quiet {
		bar = terminal.NewProgress(io.Discard)
	}
	defer bar.Close()
	return t.RunWithEvents(ctx, ownCommands(), newsOf(bar))
}

// folder is where the run is.
func (l localRun) folder(id string) string { return filepath.Join(l.Out, "runs", id) }

// tell ends with the answer, as far as the run got, and where to look next.
func (l localRun) tell(std *streams, t *sandbox.Task) error {
	run, err := store.ReadRun(l.folder(t.ID))
	if err != nil {
		return nil // it did not get as far as a folder, and the error that ended it says why
	}
	page := l.has(t.ID, report.FileName)
	return l.conclude(std, run, page, true, func(c *terminal.Console) {
		if page != "" {
			c.Line("The report opens from disk: " + page)
		}
		if recording := l.has(t.ID, execute.ArchiveFile); recording != "" && t.Origins != sandbox.OriginsNone && len(run.Trials) > 0 {
			c.Line("The recording can be replayed again: appliance demo --archive " + recording)
		}
	})
}

// has is the path of a file of the run; "" if there is none.
func (l localRun) has(id, name string) string {
	if file := filepath.Join(l.folder(id), name); exists(file) {
		return file
	}
	return ""
}

// outcomeFlags say how a command that measures or compares ends.
type outcomeFlags struct {
	JSON  bool `name:"json" help:"Print the result as JSON, as in run.json, and the progress to standard error."`
	Quiet bool `help:"Print one line with the result, for scripts, and nothing else but errors."`
}

// conclude prints what was found, for whoever reads it; where is the report, told as for printFound, and next says
// where to look.
func (f outcomeFlags) conclude(std *streams, run *lab.Run, where string, told bool, next func(*terminal.Console)) error {
	c := terminal.New(std.out)
	if f.JSON {
		c = terminal.New(std.err)
	}
	if !f.Quiet {
		terminal.Found(&c, run, told)
		next(&c)
	}
	if f.JSON {
		return cannot(printJSON(std.out, run))
	}
	if f.Quiet || !c.Terminal {
		fmt.Fprintln(std.out, terminal.ScriptLine(run, where))
	}
	return nil
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
		return cannot(errors.New("interrupted; what was finished is kept"))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &exitError{exit.ExitCode(), nil}
	}
	return cannot(fmt.Errorf("the run's process ended early: %w", err))
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
