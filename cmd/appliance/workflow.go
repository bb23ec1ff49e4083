package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/plan"
	"eidetic/internal/tell/terminal"
)

// WorkflowCmd manages the plans that a box keeps under names.
type WorkflowCmd struct {
	Put  WorkflowPutCmd  `cmd:"" help:"Keep a plan on the box under a name." example:"appliance workflow put checkout --plan checkout.yaml --box https://box.local:8080"`
	Ls   listCmd         `cmd:"" help:"List the workflows." example:"appliance workflow ls --box https://box.local:8080"`
	Show WorkflowShowCmd `cmd:"" help:"Print a workflow's plan." example:"appliance workflow show checkout@3 --box https://box.local:8080"`
	Rm   thingCmd        `cmd:"" help:"Remove a workflow." set:"thing=Name of the workflow." example:"appliance workflow rm checkout --box https://box.local:8080"`
}

// Help is shown by appliance workflow --help.
func (WorkflowCmd) Help() string {
	return `A workflow is a plan that a box keeps under a name, so that people, scripts and schedules start the same one. Each change makes a new
version; a run keeps the name and the version that it came from. Put and run need a token of the scope run, rm one of the scope admin.

Example:
  appliance workflow put checkout --plan checkout.yaml --tag team-checkout --box https://box.local:8080
  appliance run --workflow checkout --trials 20
  appliance workflow show checkout@3 > checkout.yaml`
}

// parseVersion splits checkout@3; without a version it is 0, the newest.
func parseVersion(text string) (name string, version int, err error) {
	name, number, ok := strings.Cut(text, "@")
	if !ok {
		return name, 0, nil
	}
	version, err = strconv.Atoi(number)
	if err != nil || version < 1 {
		return "", 0, fmt.Errorf("%q: write a name, or a name and a version such as checkout@3", text)
	}
	return name, version, nil
}

// isMissing says whether the box answered that there is no such thing.
func isMissing(err error) bool {
	var refused *client.RefusedError
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// WorkflowPutCmd keeps a plan.
type WorkflowPutCmd struct {
	Name string   `arg:"" help:"What to call it."`
	Plan string   `required:"" type:"path" placeholder:"FILE" help:"The plan, as YAML or JSON; recordings, pictures and scripts that it names are brought to the box."`
	Tag  []string `placeholder:"TAG" help:"A tag for the alerts about its runs; may be repeated. Without this flag a workflow keeps its tags."`
	JSON bool     `name:"json" help:"Print the answer of the box as JSON."`
	boxFlags
}

// Run implements the command.
func (c *WorkflowPutCmd) Run(ctx context.Context, std *streams) error {
	return c.keepPlan(ctx, std, c.Plan, "box", func(box *client.Client, q *plan.Request) error {
		old, err := box.Workflow(ctx, c.Name, 0)
		if err != nil && !isMissing(err) {
			return err
		}
		version, tags := client.NewThing, c.Tag
		if err == nil {
			version = old.Version
			if len(tags) == 0 {
				tags = old.Tags
			}
		}
		w, err := box.PutWorkflow(ctx, c.Name, q, tags, version)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return printJSON(std.out, w)
		case w.Version == version:
			fmt.Fprintf(std.out, "The workflow %s has this plan already: version %d.\n", terminal.Plain(w.Name), w.Version)
			return nil
		}
		fmt.Fprintf(std.out, "The workflow %s has version %d. Start it with: appliance run --workflow %[1]s\n", terminal.Plain(w.Name), w.Version)
		return nil
	})
}

// WorkflowShowCmd prints a plan.
type WorkflowShowCmd struct {
	Name string `arg:"" help:"Name of the workflow, or name and version: checkout@3."`
	JSON bool   `name:"json" help:"Print the answer of the box as JSON, with who changed it when."`
	boxFlags
}

// Run implements the command.
func (c *WorkflowShowCmd) Run(ctx context.Context, std *streams) error {
	name, version, err := parseVersion(c.Name)
	if err != nil {
		return usage(err)
	}
	return show(&c.boxFlags, std, c.JSON, func(box *client.Client) (client.Workflow, error) {
		return box.Workflow(ctx, name, version)
	}, func(w client.Workflow) error {
		var q plan.Request
		if w.Plan != nil {
			q.Plan = *w.Plan
		}
		text, err := q.YAML()
		if err != nil {
			return cannot(err)
		}
		fmt.Fprintf(std.out, "# %s, version %d of %s by %s\n", terminal.Plain(w.Name), w.Version, terminal.Clock(w.Changed), terminal.Plain(w.By))
		for line := range strings.Lines(text) {
			fmt.Fprintln(std.out, terminal.Visible(strings.TrimSuffix(line, "\n")))
		}
		return nil
	})
}
