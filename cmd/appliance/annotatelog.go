package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/tell/annotate"
	"eidetic/internal/tell/loglines"
	"eidetic/internal/tell/terminal"
)

// logFlags put the log of a program onto a run's timeline.
type logFlags struct {
	Log         string `type:"existingfile" placeholder:"FILE" help:"Put the lines of a log onto the timelines of the run's trials, also after the run."`
	As          string `placeholder:"FORMAT" help:"The log's stamps: rfc3339, epoch, syslog, journald (journalctl -o json), json, logfmt, logcat, nginx, nginx-error, console (Chromium's), ctime, glog, dated (the day first), prefixed (behind a few words), clock (a time without a date), monotonic. Without it found out line by line."`
	Rules       string `type:"existingfile" placeholder:"FILE" help:"A YAML file that says which lines are marks, intervals or nothing (docs/timeline.md)."`
	Zone        string `default:"UTC" placeholder:"NAME" help:"Time zone of stamps that name none, such as Europe/Berlin or Local."`
	ThisMachine bool   `help:"The log is of this machine, and so is its clock; else markers join the two clocks."`
	Marker      string `placeholder:"COMMAND" help:"Write a marker into the log, during the run: the command with the marker's text as its last argument, such as 'logger' or 'adb shell log -t eidetic'. --log finds the markers."`
}

// writeMarker has a command write a marker into a log, and notes when that was.
func (c *AnnotateCmd) writeMarker(ctx context.Context, write func(context.Context, []lab.Annotation) error) error {
	words, text := strings.Fields(c.Marker), annotate.Marker()
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], text)...)
	before := lab.Monotonic()
	if out, err := cmd.CombinedOutput(); err != nil {
		return cannot(fmt.Errorf("--marker: %s: %w: %s", terminal.Visible(c.Marker), err, terminal.Visible(string(out))))
	}
	return write(ctx, []lab.Annotation{annotate.Marked(text, before, lab.Monotonic())})
}

// importLog puts a log onto the timelines of a run.
func (c *AnnotateCmd) importLog(std *streams) error {
	dir, run, err := c.folder()
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return usage(fmt.Errorf("--zone: %w", err))
	}
	group := cmp.Or(c.Group, filepath.Base(c.Log))
	var text []byte
	if c.Rules != "" {
		if text, err = readNamed(c.Rules, loglines.MaxRules); err != nil {
			return usage(fmt.Errorf("--rules: %w", err))
		}
	}
	rules, err := loglines.NewRules(text, group)
	if err != nil {
		return usage(fmt.Errorf("%s: %w", terminal.Visible(c.Rules), err))
	}
	own, err := annotate.Own(dir)
	if err != nil {
		return cannot(err)
	}
	found, err := annotate.Log(run, own, annotate.LogOptions{
		File: c.Log, Format: c.As, Group: group, Rules: rules, Zone: zone, ThisMachine: c.ThisMachine,
	})
	if err != nil {
		return usage(err)
	}
	return putImport(std, dir, found)
}

// importSpans puts the spans of a back end onto the requests of a run's trials.
func (c *AnnotateCmd) importSpans(std *streams) error {
	dir, run, err := c.folder()
	if err != nil {
		return err
	}
	own, err := annotate.Own(dir)
	if err != nil {
		return cannot(err)
	}
	traced, err := annotate.TracedIn(dir)
	if err != nil {
		return cannot(err)
	}
	files, err := os.OpenRoot(dir)
	if err != nil {
		return cannot(err)
	}
	defer files.Close()
	found, err := annotate.Spans(c.OTLP, run, files, own, traced)
	if err != nil {
		return usage(err)
	}
	return putImport(std, dir, found)
}

func putImport(std *streams, dir string, found annotate.Import) error {
	said, err := found.Put(dir)
	if err != nil {
		return cannot(err)
	}
	std.note("%s", said)
	return nil
}
