package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/automation"
	"eidetic/internal/tell/terminal"
)

// ReferenceCmd manages the runs that later ones are compared with.
type ReferenceCmd struct {
	Ls  ReferenceLsCmd  `cmd:"" default:"withargs" help:"List the references." example:"appliance reference ls main --box https://box.local:8080"`
	Set ReferenceSetCmd `cmd:"" help:"Make a run the newest reference of a branch." example:"appliance reference set main 20261122-091400-checkout --revision 3f1c --box https://box.local:8080"`
	Rm  ReferenceRmCmd  `cmd:"" help:"Remove a reference; its run stays." example:"appliance reference rm 4 --box https://box.local:8080"`
}

// Help is shown by appliance reference --help.
func (ReferenceCmd) Help() string {
	return `A reference is a run of a branch that later runs of the same name are compared with: main@latest is the newest of the branch main that
was measured on the same class of machine, main@3 the third, and main@3f1c2ab that of a revision. The box keeps the newest 20 of each
name and branch, with their recordings. Set needs a token of the scope run, rm one of the scope admin.

Example:
  appliance run --workflow checkout --keep-as main --revision 3f1c2ab --box https://box.local:8080
  appliance run --workflow checkout --reference main@latest
  appliance compare --reference main@latest 20261122-091400-checkout --box https://box.local:8080
  appliance reference ls main`
}

// ReferenceLsCmd lists references.
type ReferenceLsCmd struct {
	Branch string `arg:"" optional:"" help:"Those of a branch."`
	Name   string `placeholder:"NAME" help:"Those of runs of this name."`
	Limit  int    `default:"50" placeholder:"N" help:"At most so many, the newest (${default})."`
	JSON   bool   `name:"json" help:"Print the list as JSON."`
	boxFlags
}

// Run implements the command.
func (c *ReferenceLsCmd) Run(ctx context.Context, std *streams) error {
	return show(&c.boxFlags, std, c.JSON, func(box *client.Client) ([]automation.RunReference, error) {
		return box.RunReferences(ctx, c.Name, c.Branch, c.Limit)
	}, func(all []automation.RunReference) error {
		if len(all) == 0 {
			fmt.Fprintln(std.out, "There are no references: appliance reference set BRANCH RUN makes one.")
		}
		for _, r := range all {
			printReference(std.out, r)
		}
		return nil
	})
}

// printReference prints a reference for a person.
func printReference(out io.Writer, r automation.RunReference) {
	text := fmt.Sprintf("%d  %s@%d  %s  run %s", r.ID, r.Branch, r.Version, r.Name, r.Run)
	if r.Revision != "" {
		text += ", revision " + r.Revision
	}
	fmt.Fprintln(out, terminal.Plain(fmt.Sprintf("%s, of %s, by %s: %s", text, r.Made.Format("2006-01-02 15:04 UTC"), r.By, r.Machine)))
}

// ReferenceSetCmd makes a run a reference.
type ReferenceSetCmd struct {
	Branch   string `arg:"" help:"The branch, such as main."`
	ID       string `arg:"" name:"run" help:"ID of the run."`
	Revision string `placeholder:"REV" help:"What was measured; without it what the box deployed for the run."`
	JSON     bool   `name:"json" help:"Print the answer of the box as JSON."`
	boxFlags
}

// Run implements the command.
func (c *ReferenceSetCmd) Run(ctx context.Context, std *streams) error {
	return show(&c.boxFlags, std, c.JSON, func(box *client.Client) (automation.RunReference, error) {
		return box.MakeRunReference(ctx, c.Branch, c.ID, c.Revision)
	}, func(r automation.RunReference) error {
		printReference(std.out, r)
		return nil
	})
}

// ReferenceRmCmd removes a reference.
type ReferenceRmCmd struct {
	ID int64 `arg:"" help:"Number of the reference."`
	boxFlags
}

// Run implements the command.
func (c *ReferenceRmCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, things{"id": c.ID}, nil, false)
}

// isBranch says whether a reference is of a branch, and not a run.
func isBranch(reference string) bool { return strings.Contains(reference, "@") }
