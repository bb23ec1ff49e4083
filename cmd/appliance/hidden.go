package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"eidetic/internal/run/execute"
	"eidetic/internal/run/inspect"
	"eidetic/internal/run/meter"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/tell/terminal"
	"eidetic/netlab/link/packet"
)

// ownCommands are the hidden commands of this program that package sandbox and the
// service start: they are declared in this file, and here named once.
func ownCommands() sandbox.Commands {
	return sandbox.Commands{
		Inside: []string{"inside"}, Visit: []string{"visit"},
		Forwarder: []string{"/proc/self/exe", "link", "forward"},
		Site:      []string{"/proc/self/exe", "site"},
		Inspect:   []string{"/proc/self/exe", "inspect"},
		Meter:     []string{"/proc/self/exe", "meter"},
	}
}

// InsideCmd carries out a task on a virtual device, in namespaces of its own.
type InsideCmd struct{}

// Run carries the task out and shows its progress, without which the task goes on: the other half tells what was found.
func (c *InsideCmd) Run(ctx context.Context, std *streams) error {
	bar := terminal.NewProgress(os.Stdout)
	defer bar.Close()
	return insideError(ctx, sandbox.Inside(ctx, inner(std, bar)))
}

// VisitCmd is the half of record and replay that runs in namespaces.
type VisitCmd struct{}

// Run opens the pages and shows the progress.
func (c *VisitCmd) Run(ctx context.Context, std *streams) error {
	bar := terminal.NewProgress(std.err)
	defer bar.Close()
	return insideError(ctx, sandbox.VisitInside(ctx, inner(std, bar)))
}

// inner is what the half in namespaces gets from this program.
func inner(std *streams, bar *terminal.Progress) sandbox.Inner {
	news := newsOf(bar)
	return sandbox.Inner{
		Commands: ownCommands(), Software: versionLine(), Say: news.Say, Step: news.Step,
		Log: slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// newsOf shows how a run on this machine goes.
func newsOf(bar *terminal.Progress) execute.News {
	return execute.News{Say: func(text string) { bar.Say("%s", text) }, Step: bar.Step, Film: func(execute.FilmNews) {}}
}

// insideError gives an error of the half in namespaces its exit status.
func insideError(ctx context.Context, err error) error {
	var reported *sandbox.ReportedError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, errors.As(err, &reported): // the outer half tells the person
		return &exitError{status: exitCannot}
	case errors.Is(err, sandbox.ErrNotInside):
		return usage(err)
	}
	return cannot(err)
}

// MeterCmd is the process that measures how fast this machine is.
type MeterCmd struct{}

// Run prints the reading, in JSON.
func (c *MeterCmd) Run(std *streams) error { return meter.Serve(std.out) }

// InspectCmd checks a recording, or makes a changed one of it, within limits that it sets for itself.
type InspectCmd struct {
	File   string `arg:""`
	Memory int64  `arg:""`
	Out    string `arg:"" optional:""`
}

// Run prints the report, in JSON.
func (c *InspectCmd) Run(std *streams) error {
	var err error
	if c.Out == "" {
		err = inspect.Serve(std.out, c.File, c.Memory)
	} else {
		err = inspect.ServeChange(std.out, std.in, c.File, c.Out, c.Memory)
	}
	return cannot(err)
}

// LinkForwardCmd is the process that forwards packets.
type LinkForwardCmd struct{}

// Run forwards until the other end of the socket is closed.
func (c *LinkForwardCmd) Run() error {
	conn := os.NewFile(3, "control")
	if _, err := conn.Stat(); err != nil {
		return usage(errors.New("this command is started by other commands, with a socket at descriptor 3"))
	}
	return cannot(packet.Serve(conn))
}
