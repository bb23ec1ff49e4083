package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
	"eidetic/internal/tell/terminal"
	"eidetic/internal/tell/timeline"
)

// TimelineCmd shows what happened in a trial.
type TimelineCmd struct {
	Source string   `arg:"" name:"run" help:"The run's folder, or that of --out, whose newest run is meant."`
	Trial  int      `placeholder:"N" help:"The trial; without it the first that is valid."`
	Text   bool     `help:"Print it as a tree with times; without this, the path of timeline.html."`
	Row    []string `placeholder:"NAME" help:"With --text: only rows of this name or kind (frame, step, input, request, mark, annotation, browser, memory, machine, link)."`
	Most   int      `default:"40" help:"With --text: at most this many events of each row."`
}

// Help shows the command at work.
func (TimelineCmd) Help() string {
	return `Shows what a trial's device, its pages, programs and machine did, on one clock (docs/timeline.md).

Examples:
  appliance timeline out/latest
  appliance timeline out/latest --trial 3 --text
  appliance timeline out/latest --text --row step --row annotation --most 1000`
}

// Validate checks what kong cannot.
func (c *TimelineCmd) Validate() error {
	if c.Trial < 0 || c.Most < 1 {
		return errors.New("--trial and --most count from 1")
	}
	return nil
}

// Run prints a trial.
func (c *TimelineCmd) Run(std *streams) error {
	dir, err := newestRun(c.Source)
	if err != nil {
		return usage(err)
	}
	run, files, err := openRun(dir)
	if err != nil {
		return usage(err)
	}
	if files == nil {
		return usage(fmt.Errorf("%s: name the run's folder: its trials' files are there", terminal.Visible(c.Source)))
	}
	defer files.Close()
	n := slices.IndexFunc(run.Trials, func(t *lab.Trial) bool { return t.Number == c.Trial || c.Trial == 0 && t.Valid })
	switch {
	case n < 0 && c.Trial == 0 && len(run.Trials) > 0:
		n = 0 // none is valid
	case n < 0:
		return usage(fmt.Errorf("the run has no trial %d: it has %d", c.Trial, len(run.Trials)))
	}
	trial := run.Trials[n]
	if !c.Text {
		page := filepath.Join(dir, "timeline.html")
		if _, err := files.Stat("timeline.html"); err != nil {
			return cannot(errors.New("the run has no page of timelines yet: it is written at the run's end; --text works before"))
		}
		return writeOut(std.out, []byte(terminal.Visible(fmt.Sprintf("%s#%d\n", page, trial.Number))))
	}
	var text bytes.Buffer
	if err := trace.Text(&text, timeline.NewReader(files).Of(trial), c.Row, c.Most); err != nil {
		return cannot(err)
	}
	return writeOut(std.out, []byte(strings.TrimLeft(terminal.Visible(text.String()), "\n")))
}
