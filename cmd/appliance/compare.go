package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"eidetic/internal/history"
	"eidetic/internal/lab"
	"eidetic/internal/store"
	"eidetic/internal/verdict"
)

// CompareCmd compares a run with one that was made earlier.
type CompareCmd struct {
	Reference string  `required:"" type:"path" placeholder:"RUN" help:"The run to compare with: its folder, run.json or report.json."`
	File      string  `arg:"" name:"run" type:"path" help:"The run that is judged: its folder, run.json or report.json."`
	Margin    float64 `default:"5" placeholder:"PERCENT" help:"Differences up to so many percent of the reference are none (${default})."`
	Seed      uint64  `default:"1" placeholder:"N" help:"Of permutations, and of what is drawn within a frame."`
	JSON      bool    `name:"json" help:"Print JSON."`
}

// Help shows the command at work.
func (CompareCmd) Help() string {
	return `Is this run slower than that earlier one? Loads of the runs' controls are compared as independent samples. What is not
alike in their environments is listed, since two runs differ by all that changed between them: the change that you ask about,
but also the machine's load, the browser, the hour. The margin is for these; a run with two arms, which take turns, needs none
(appliance run --treatment-link, --treatment-page or --treatment-archive).

The status is 0 when no difference beyond the margin was found, or the run is faster; 1 when it is slower or mixed; 2 when the
command line or a file is wrong; 3 when there is no verdict: fewer than six valid trials, or a run that did not end well.

Examples:
  appliance compare --reference release/report.json out/report.json
  appliance compare --reference out/runs/20261121-091400-checkout --margin 3 out/runs/20261122-091400-checkout`
}

// Validate checks what kong cannot.
func (c *CompareCmd) Validate() error {
	if !(c.Margin >= 0 && c.Margin <= 1000) { // also when it is no number
		return fmt.Errorf("--margin %v: a percentage from 0 to 1000", c.Margin)
	}
	return nil
}

// comparedRuns is what compare prints as JSON.
type comparedRuns struct {
	Reference  string          `json:"reference"` // ID of the run
	Run        string          `json:"run"`
	Margin     float64         `json:"margin_percent"`
	Different  []history.Fact  `json:"different"` // what else is not alike
	Comparison *lab.Comparison `json:"comparison"`
}

// Run compares and prints.
func (c *CompareCmd) Run(std *streams) error {
	reference, err := openResult(c.Reference)
	if err != nil {
		return usage(fmt.Errorf("--reference: %w", err))
	}
	run, err := openResult(c.File)
	if err != nil {
		return usage(err)
	}
	for _, r := range []*lab.Run{reference, run} {
		if r.State != store.StateDone {
			return cannot(fmt.Errorf("the run %s is %s: only one that is done can be compared", plain(r.ID), r.State))
		}
	}
	found := comparedRuns{reference.ID, run.ID, c.Margin, history.Differences(store.Facts(reference), store.Facts(run)), verdict.Between(reference, run, c.Margin, c.Seed)}
	if c.JSON {
		if err := printJSON(std.out, found); err != nil {
			return cannot(err)
		}
		return gateOf(found.Comparison, "the run is slower", "make the runs with more trials")
	}
	fmt.Fprintf(std.out, "%s: %s\n", plain(found.Comparison.Headline), plain(found.Comparison.Detail))
	printEffects(std.out, found.Comparison, "reference", "run")
	if len(found.Different) > 0 {
		fmt.Fprintln(std.out, "Besides, these are not alike, and may be the reason:")
		for _, f := range found.Different {
			fmt.Fprintf(std.out, "  %s: %s, then %s\n", plain(f.Name), plain(f.Before), plain(f.After))
		}
	}
	return gateOf(found.Comparison, "the run is slower", "make the runs with more trials")
}

// openResult reads a run from its folder or one of its files.
func openResult(path string) (*lab.Run, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "run.json")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	run, err := store.DecodeResult(f)
	if err != nil {
		return nil, fmt.Errorf("%s is not a run.json or report.json: %w", path, err)
	}
	if err := canCompare(run); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

// mostCompared bounds the valid trials of a run that is compared: each is
// compared with each of the other run.
const mostCompared = 2000

// canCompare refuses what would take too long, and times that nothing takes,
// whose differences would overflow.
func canCompare(run *lab.Run) error {
	valid := 0
	for _, t := range run.Trials {
		if t.Valid {
			valid++
		}
		for _, m := range t.Measurements {
			if math.Abs(m.Value) > 1e15 {
				return fmt.Errorf("trial %d: %.60s is %v, which nothing takes", t.Number, m.Name, m.Value)
			}
		}
	}
	if valid > mostCompared {
		return fmt.Errorf("%d valid trials: at most %d can be compared", valid, mostCompared)
	}
	return nil
}
