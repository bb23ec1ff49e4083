package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/compare"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/terminal"
)

// CompareCmd compares a run with one that was made earlier.
type CompareCmd struct {
	boxFlags
	Reference string   `required:"" placeholder:"RUN" help:"The run to compare with: its folder, run.json or report.json; of a box its ID, or a reference such as main@latest (see appliance reference)."`
	File      string   `arg:"" name:"run" help:"The run that is judged: its folder, run.json or report.json; of a box its ID."`
	Margin    *float64 `placeholder:"PERCENT" help:"Differences of up to this many percent of the reference do not matter; without it the margins of the run's plan, or 5."`
	Seed      uint64   `default:"1" placeholder:"N" help:"Seed of the permutations, and of the dither of times within their frame."`
	outcomeFlags
}

// Help shows the command at work.
func (CompareCmd) Help() string {
	return `Is this run slower than that earlier one? The trials of the runs' controls are compared as independent samples. Two runs also
differ by what the machine, the browser and the hour did in between: the margin is for that, and what differs in their environments
is listed. A run with two arms, which take turns, needs no margin (appliance run --treatment-link, --treatment-page or
--treatment-archive).

Runs of several pages or users are compared page by page and user by user, by their names; all share one level of significance.

Runs of two boxes of a fleet are compared if both boxes have measured the same reference: the run's numbers are adjusted by how the
boxes differ, and the intervals include the uncertainty of that. Otherwise they are refused.

The status is 0 when no difference beyond the margin was found, or the run is faster; 1 when it is slower or mixed; 2 when the
command line or a file is wrong; 3 when there is no verdict: fewer than six valid trials, or a run that did not end well.

Examples:
  appliance compare --reference release/report.json out/report.json
  appliance compare --reference out/runs/20261121-091400-checkout --margin 3 out/runs/20261122-091400-checkout
  appliance compare --reference main@latest 20261122-091400-checkout --box https://box.local:8080`
}

// Validate checks what kong cannot.
func (c *CompareCmd) Validate() error {
	if c.Margin != nil && !(*c.Margin >= 0 && *c.Margin <= 1000) { // also when it is no number
		return fmt.Errorf("--margin %v: a percentage from 0 to 1000", *c.Margin)
	}
	if c.ofBox() {
		return c.check()
	}
	return nil
}

// ofBox says whether the runs are a box's, and not files here, which go first.
func (c *CompareCmd) ofBox() bool {
	if exists(c.Reference) {
		return false
	}
	return isBranch(c.Reference) || c.named() && !exists(c.File)
}

// Run compares and prints.
func (c *CompareCmd) Run(ctx context.Context, std *streams) error {
	found, err := c.find(ctx, std)
	if err != nil {
		return err
	}
	if err := c.print(std, found); err != nil {
		return cannot(err)
	}
	return gateOf(found.Comparison, "the run is slower", "make the runs with more trials")
}

// find compares runs of a box, or files.
func (c *CompareCmd) find(ctx context.Context, std *streams) (*compare.Between, error) {
	if !c.ofBox() {
		reference, err := openResult(c.Reference)
		if err != nil {
			return nil, usage(fmt.Errorf("--reference: %w", err))
		}
		run, err := openResult(c.File)
		if err != nil {
			return nil, usage(err)
		}
		found, err := compare.Runs(reference, run, marginOf(c.Margin, run), c.Seed)
		return found, cannot(err)
	}
	var found compare.Between
	err := c.onBox(std, func(box *client.Client) error {
		run, err := box.Run(ctx, c.File)
		if err == nil {
			found, err = box.Compare(ctx, c.File, c.Reference, marginOf(c.Margin, run))
		}
		return err
	})
	return &found, err
}

// marginOf is the margin that a person says, or else the run's.
func marginOf(said *float64, run *lab.Run) float64 {
	if said != nil {
		return *said
	}
	return compare.MarginOf(run)
}

// print prints what was found, for whoever reads it.
func (c *CompareCmd) print(std *streams, found *compare.Between) error {
	to := terminal.New(std.out)
	switch {
	case c.JSON:
		return printJSON(std.out, found)
	case !c.Quiet:
		terminal.Between(&to, found)
		for _, of := range []struct{ name, file string }{{"The reference's report", c.Reference}, {"The run's report", c.File}} {
			if page := reportBeside(of.file); page != "" {
				to.Line(of.name + " opens from disk: " + page)
			}
		}
	}
	if to.Terminal && !c.Quiet {
		return nil
	}
	_, err := fmt.Fprintln(std.out, terminal.BetweenLine("result:", found))
	return err
}

// reportBeside is the report in a run's folder, or beside a file of it; "" if there is none.
func reportBeside(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		path = filepath.Dir(path)
	}
	if page := filepath.Join(path, report.FileName); exists(page) {
		return page
	}
	return ""
}

// openResult reads a run from its folder or one of its files.
func openResult(path string) (*lab.Run, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "run.json")
	}
	run, err := store.ReadResult(path)
	if errors.As(err, new(*fs.PathError)) || err == nil {
		return run, err
	}
	return nil, fmt.Errorf("%s is not a run.json or report.json: %w", path, err)
}
