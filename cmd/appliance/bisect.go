package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"eidetic/analysis/bisect"
	"eidetic/internal/base/atomicfile"
	"eidetic/internal/box/bisection"
	"eidetic/internal/plan"
	"eidetic/internal/tell/terminal"
)

// BisectCmd finds the revision that changed a number.
type BisectCmd struct {
	boxFlags
	Plan        string        `required:"" type:"path" placeholder:"FILE" help:"What to measure, as for appliance run, with one arm; {revision} in page, archive, inject, link, browser, match or state stands for the revision."`
	Good        string        `required:"" placeholder:"REV" help:"The revision before the change, or the beginning of its name."`
	Bad         string        `placeholder:"REV" help:"The revision after it; the last of the list without it."`
	Revisions   string        `required:"" type:"path" placeholder:"FILE" help:"The revisions in between, the oldest first, one a line: git log --reverse --format='%H %s' GOOD..BAD."`
	Deploy      string        `required:"" placeholder:"CMD" help:"What makes a revision ready to be loaded; /bin/sh runs it, with the revision as $$1 and in the variable REVISION. Status 125, or any failure: this revision cannot be tried."`
	DeployLimit time.Duration `default:"15m" help:"How long the command may take (${default})."`
	Metric      string        `placeholder:"NAME" help:"The number that changed (speed_index_ms; for a plan with steps journey_ms)."`
	Confidence  float64       `default:"0.95" placeholder:"P" help:"The probability from which on a culprit is named (${default})."`
	Least       float64       `placeholder:"N" help:"The smallest difference that matters, in the metric's unit: the bisect ends early if good and bad differ by less."`
	Pairs       int           `default:"800" placeholder:"N" help:"How many pairs of trials are made at most (${default})."`
	Spread      int           `default:"1" placeholder:"N" help:"With --box and a head: over how many runs at the same time, on as many boxes, the pairs of an experiment are divided (${default}). Let on: in the plan name boxes of one kind."`
	Seed        uint64        `default:"1" placeholder:"N" help:"Seed of everything random (${default})."`
	Out         string        `default:"out/bisect" type:"path" placeholder:"DIR" help:"The bisect's journal, the runs, and what the command printed (${default}). A bisect that was cut off goes on from there."`
	Patience    time.Duration `default:"5m" help:"How long to keep trying when the box stops answering (${default})."`
	JSON        bool          `name:"json" help:"Print the result as JSON, and the news to standard error."`
	hereFlags

	local bool
}

// Help is shown by appliance bisect --help.
func (BisectCmd) Help() string {
	return `Which of these revisions made the page slower? The command deploys a revision; pairs of trials compare it with the good one.
After each experiment every revision has a probability of being the culprit, and the next experiment is made where it tells most. The
culprit is measured again against the revisions before and after it before it is named.

If the plan names no archive, the page of each revision is recorded once, after it was deployed. With archive: "out/{revision}.wacz"
the command makes the recording itself.

Everything is kept in --out. If the command was killed or interrupted, type it again: it goes on from there.

The status is 0 when the culprit was found; 1 when there is none: no difference between good and bad, or a change in several steps; 2
when the command line, the plan or the list is wrong; 3 when it is not sure, or could not go on.

Example:
  git log --reverse --format='%H %s' v41..v42 > revisions.txt
  appliance bisect --plan shop.yaml --good v41 --revisions revisions.txt --deploy 'git checkout -q "$1" && ./deploy-to-staging'`
}

// Validate checks what kong cannot.
func (c *BisectCmd) Validate() error {
	c.local = !c.named()
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case !(c.Confidence >= 0.5 && c.Confidence <= 0.9999):
		return fmt.Errorf("--confidence %v: from 0.5 to 0.9999", c.Confidence)
	case c.Pairs < 10:
		return fmt.Errorf("--pairs %d: at least 10, which good and bad alone take", c.Pairs)
	case !(c.Least >= 0 && c.Least < 1e9):
		return fmt.Errorf("--least %v: a number that is not negative", c.Least)
	case c.Spread < 1 || c.Spread > bisection.MostSpread:
		return fmt.Errorf("--spread %d: from 1 to %d", c.Spread, bisection.MostSpread)
	case c.local && c.Spread > 1:
		return errors.New("--spread is for bisects on the boxes of a head (--box): this machine makes one trial at a time")
	case c.DeployLimit <= 0 || c.Patience < 0:
		return errors.New("--deploy-limit must be positive, and --patience not negative")
	case !c.local:
		return c.refuseThere("bisects")
	}
	return nil
}

// Run implements the command.
func (c *BisectCmd) Run(ctx context.Context, std *streams) error {
	q, digest, err := c.read()
	if err != nil {
		return usage(err)
	}
	revisions, err := c.list()
	if err != nil {
		return usage(err)
	}
	if _, err := makeOut(c.Out); err != nil {
		return cannot(err)
	}
	news := std.out
	if c.JSON {
		news = std.err
	}
	bar := terminal.NewProgress(news)
	defer bar.Close()
	var lab bisection.Lab
	if c.local {
		lab = &localPairs{plan: q, bar: bar, run: RunCmd{Out: c.Out, hereFlags: c.hereFlags}}
	} else {
		box, err := c.client(std, c.Patience)
		if err != nil {
			return err
		}
		defer box.Close()
		lab = &boxPairs{plan: q, waiting: &waiting{box: box, bar: bar}, named: c.Spread > 1}
	}
	start := time.Now()
	found, err := bisection.Run(ctx, bisection.Config{
		Dir: c.Out, Revisions: revisions, Deploy: c.Deploy, Limit: c.DeployLimit, Metric: c.Metric, Records: q.Records(), Plan: digest,
		Seed: c.Seed, Problem: bisect.Problem{Confidence: c.Confidence, Least: c.Least, Budget: c.Pairs}, Lab: lab,
		Spread: c.Spread,
		Say:    bar.Say,
		Since:  func() time.Duration { return time.Since(start) },
	})
	switch {
	case ctx.Err() != nil:
		return cannot(fmt.Errorf("interrupted; the same command goes on from what is in %s", c.Out))
	case err != nil:
		return boxError(err)
	}
	bar.Close()
	part, err := c.partOf(found)
	if err != nil { // the culprit is known without it
		fmt.Fprintln(std.err, terminal.Visible(fmt.Sprintf("The frame where the two part is not known: %v", err)))
	}
	if err := c.tell(std, found, part); err != nil {
		return err
	}
	switch found.Kind {
	case bisect.Culprit:
		return nil
	case bisect.Unsure:
		return &exitError{exitCannot, nil}
	}
	return failed(nil)
}

// read reads the plan, and makes a digest of it by which a journal knows it again.
func (c *BisectCmd) read() (plan.Request, string, error) {
	q, err := plan.ReadFile(c.Plan)
	if err != nil {
		return q, "", fmt.Errorf("--plan: %w", err)
	}
	if !q.Opens() {
		return q, "", fmt.Errorf("--plan: %s names no page", q.File())
	}
	if err := q.CheckRevisions(); err != nil {
		return q, "", fmt.Errorf("--plan: %w", q.Locate(err))
	}
	c.Metric = cmp.Or(c.Metric, q.Metric())
	body, err := json.Marshal(q)
	if err != nil {
		return q, "", err
	}
	sum := sha256.Sum256(body)
	return q, hex.EncodeToString(sum[:]), nil
}

// list reads the revisions.
func (c *BisectCmd) list() ([]bisection.Revision, error) {
	f, err := os.Open(c.Revisions)
	if err != nil {
		return nil, fmt.Errorf("--revisions: %w", err)
	}
	defer f.Close()
	return bisection.ReadRevisions(c.Revisions, f, c.Good, c.Bad)
}

// outcome is what is printed as JSON and kept in result.json.
type outcome struct {
	*bisection.Result
	Parts *bisection.Parting `json:"parts,omitempty"`
}

// mostRows bounds the table of revisions.
const mostRows = 40

// tell prints what was found, and keeps it.
func (c *BisectCmd) tell(std *streams, found *bisection.Result, part *bisection.Parting) error {
	o := outcome{found, part}
	content, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return cannot(err)
	}
	file := filepath.Join(c.Out, "result.json")
	if err := atomicfile.WriteFile(file, append(content, '\n'), 0o644); err != nil {
		return cannot(err)
	}
	if c.JSON {
		return printJSON(std.out, o)
	}
	fmt.Fprintln(std.out, terminal.Visible(found.Text))
	if part != nil {
		fmt.Fprintln(std.out, terminal.Visible(part.Text))
	}
	table := tabwriter.NewWriter(std.out, 0, 0, 3, ' ', 0)
	rows := 0
	for _, r := range found.Revisions {
		if r.Probability < 0.001 || rows == mostRows {
			continue
		}
		if rows++; rows == 1 {
			fmt.Fprint(table, "probability\trevision\t\n")
		}
		fmt.Fprintf(table, "%.1f %%\t%s\t%s\n", 100*r.Probability, terminal.OneLine(r.Name), terminal.OneLine(r.Words))
	}
	if err := table.Flush(); err != nil {
		return cannot(err)
	}
	for _, u := range found.Untestable {
		fmt.Fprintf(std.out, "Left out: %s: %s\n", terminal.OneLine(u.Revision.Name), terminal.OneLine(u.Reason))
	}
	fmt.Fprintf(std.out, "The result is in %s\n", file)
	return nil
}
