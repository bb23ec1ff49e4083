package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/base/bounded"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/compare"
	"eidetic/internal/tell/terminal"
)

// gateFlags make a run the gate of a push: what of the plan is needed, and what the run is compared with.
type gateFlags struct {
	Tag          []string `placeholder:"TAG" help:"Carry out the pages and steps that have this tag, and those without tags; may be repeated. If nothing has it, no run is made, and the status is 0."`
	ChangedPaths string   `placeholder:"FILE" help:"Carry out only what the changed files need, by the plan's paths: a file with one path a line, as git diff --name-only prints them; - reads standard input."`
	Reference    string   `placeholder:"REF" help:"Compare the run with an earlier one, too, and let both decide the status: main@latest of a box (see appliance reference), or a run's ID; on this machine a run's folder, run.json or report.json."`
	KeepAs       string   `placeholder:"BRANCH" help:"Make the run the newest reference of a branch on the box, if its status is 0."`
	Revision     string   `placeholder:"REV" help:"With --keep-as: what was measured, such as a commit."`
}

// checkGate checks what kong cannot.
func (f *gateFlags) checkGate(c *RunCmd) error {
	switch {
	case f.KeepAs != "" && c.local:
		return errors.New("--keep-as is for a box, which keeps references: name it with --box")
	case f.KeepAs != "" && (len(f.Tag) > 0 || f.ChangedPaths != ""):
		return errors.New("--keep-as goes without --tag and --changed-paths: a reference has all of the plan")
	case f.Revision != "" && f.KeepAs == "":
		return errors.New("--revision goes with --keep-as")
	case c.local && isBranch(f.Reference) && !exists(f.Reference):
		return fmt.Errorf("--reference %s: references are of a box: name it with --box, or name a run's folder here", f.Reference)
	case c.NoWait && (f.Reference != "" || f.KeepAs != ""):
		return errors.New("--no-wait goes without --reference and --keep-as: there is no run to compare yet")
	case c.JSON && f.Reference != "":
		return errors.New("--json goes without --reference: appliance compare --json prints the comparison")
	}
	if err := plan.CheckTags(f.Tag); err != nil {
		return fmt.Errorf("--tag %w", err)
	}
	return nil
}

// maxPaths bounds the list of changed files.
const maxPaths = 16 << 20

// paths reads the list of changed files.
func (f *gateFlags) paths(in io.Reader) (all []string, err error) {
	var text []byte
	if f.ChangedPaths == "-" {
		text, err = readBounded(in, "standard input", maxPaths)
	} else {
		text, err = readNamed(f.ChangedPaths, maxPaths)
	}
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(bounded.UTF8(text)) { // as Windows' shells write it
		for name := range strings.SplitSeq(strings.TrimSpace(string(line)), "\x00") { // of git diff -z
			if plain, err := strconv.Unquote(name); err == nil && name[0] == '"' { // of a name with other letters than ASCII's
				name = plain
			}
			if name != "" {
				all = append(all, name)
			}
		}
	}
	return all, nil
}

// selects leaves of a plan what the push needs. whole is the plan with what the box keeps of it; the request changes
// it. why says in words what was chosen, and needed is false if there is nothing to do.
func (f *gateFlags) selects(std *streams, q, whole plan.Request) (selected plan.Request, why string, needed bool, err error) {
	if len(f.Tag) == 0 && f.ChangedPaths == "" {
		return q, "", true, nil
	}
	tags := f.Tag
	if err := whole.Unknown(tags); err != nil {
		return q, "", false, fmt.Errorf("--tag: %w", err)
	}
	if f.ChangedPaths != "" {
		files, err := f.paths(std.in)
		if err != nil {
			return q, "", false, fmt.Errorf("--changed-paths: %w", err)
		}
		if len(whole.Paths) == 0 {
			return q, "", false, errors.New("--changed-paths: the plan has no paths, which say what a changed file needs")
		}
		needs, all, because := plan.TagsOf(whole.Plan, files)
		if all {
			return q, fmt.Sprintf("All of the plan is needed: none of its paths has %s", because), true, nil
		}
		tags = append(tags, needs...)
	}
	return q.Choose(whole, tags)
}

// unneeded ends a run of which nothing is needed: a gate that has nothing to check is open.
func (c *RunCmd) unneeded(std *streams, why string) error {
	to := terminal.New(std.out)
	if c.JSON {
		to = terminal.New(std.err)
	}
	if !c.Quiet {
		to.Line(terminal.Plain(why + ": no run is made."))
	}
	if c.Quiet || !to.Terminal && !c.JSON {
		fmt.Fprintln(std.out, "result: state=unneeded")
	}
	return nil
}

// against compares a run that is done with the reference; nil without one. What it finds is printed.
func (c *RunCmd) against(std *streams, run *lab.Run, find func(margin float64) (*compare.Between, error)) error {
	if c.Reference == "" {
		return nil
	}
	found, err := find(compare.MarginOf(run))
	if err != nil {
		return err
	}
	to := terminal.New(std.out)
	if !c.Quiet {
		to.Line(terminal.Plain(fmt.Sprintf("Against the reference %s (%s):", c.Reference, named(found))))
		terminal.Between(&to, found)
	}
	if c.Quiet || !to.Terminal {
		fmt.Fprintln(std.out, terminal.BetweenLine("against:", found))
	}
	return gateOf(found.Comparison, "the run is slower than the reference", "ask for more trials with --trials")
}

// named is the name of the earlier run.
func named(found *compare.Between) string {
	if found.Named == "" {
		return "run " + found.Reference
	}
	return found.Named + ", run " + found.Reference
}

// worse is the error with the status that decides: a regression before what is not known, and that before what is
// unsure.
func worse(a, b error) error {
	rank := func(err error) int {
		return map[int]int{exitFailed: 4, exitUsage: 3, exitCannot: 2, exitUnsure: 1}[statusOf(err)]
	}
	if rank(b) > rank(a) {
		return b
	}
	return cmp.Or(a, b)
}

// hereAgainst is against for a run on this machine.
func (c *RunCmd) hereAgainst(std *streams, folder string) error {
	if c.Reference == "" {
		return nil
	}
	run, err := openResult(folder)
	if err != nil {
		return cannot(err)
	}
	return c.against(std, run, func(margin float64) (*compare.Between, error) {
		reference, err := openResult(c.Reference)
		if err != nil {
			return nil, usage(fmt.Errorf("--reference: %w", err))
		}
		found, err := compare.Runs(reference, run, margin, 1)
		return found, cannot(err)
	})
}

// onBox is against for a run of a box, and keeps the run if it is good.
func (c *RunCmd) onBox(ctx context.Context, std *streams, box *client.Client, run *lab.Run, own error) error {
	err := own
	if run.State == store.StateDone {
		err = worse(own, c.against(std, run, func(margin float64) (*compare.Between, error) {
			found, err := box.Compare(ctx, run.ID, c.Reference, margin)
			return &found, boxError(err)
		}))
	}
	if err != nil || c.KeepAs == "" {
		return err
	}
	r, err := box.MakeRunReference(ctx, c.KeepAs, run.ID, c.Revision)
	if err != nil {
		return boxError(err)
	}
	if !c.Quiet && !c.JSON {
		to := terminal.New(std.out)
		to.Line(terminal.Plain(fmt.Sprintf("It is the reference %s@%d of %q.", r.Branch, r.Version, r.Name)))
	}
	return nil
}
