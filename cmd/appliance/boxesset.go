package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/plan"
	"eidetic/internal/tell/terminal"
	"eidetic/internal/web/panel"
)

// deviceRows are what is known of a device.
func deviceRows(d panel.BoxDevice, r client.BoxReadings) [][]string {
	ready := "ready"
	switch {
	case !d.Ready:
		ready = "not ready: " + d.Problem
	case d.Run != "":
		ready = strings.TrimSuffix("carries out "+d.Run+", "+d.Doing, ", ")
	}
	rows := [][]string{{"device", d.Name}, {"", ready}}
	for _, fact := range [][]string{{"screen", d.Screen}, {"controls", d.Controls}, {"browsers", strings.Join(d.Browsers, ", ")}, {"labels", labelWords(d.Labels)}} {
		if fact[1] != "" {
			rows = append(rows, fact)
		}
	}
	rows = append(rows, []string{"health", because(r.Health, r.Why)})
	if r.Since != nil {
		rows = append(rows, []string{"since", terminal.Clock(*r.Since)})
	}
	for _, text := range r.Changed {
		rows = append(rows, []string{"changed then", text})
	}
	if n := len(r.Readings); n > 0 {
		rows = append(rows, []string{"readings", fmt.Sprintf("%d, the last at %s", n, terminal.Clock(r.Readings[n-1].At))})
		for _, l := range r.Readings[n-1].Levels {
			text := fmt.Sprintf("%.4g %s", l.Median, l.Unit)
			if i := slices.IndexFunc(r.Baselines, func(b panel.BoxBaseline) bool { return b.Metric == l.Metric }); i >= 0 {
				text += fmt.Sprintf(", band %.4g to %.4g", r.Baselines[i].Low, r.Baselines[i].High)
			}
			rows = append(rows, []string{l.Metric, text})
		}
	}
	return rows
}

// labelWords lists labels in the order of their keys.
func labelWords(labels map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, key+"="+labels[key])
	}
	return strings.Join(words, " ")
}

// BoxesSetCmd changes a box.
type BoxesSetCmd struct {
	Name        string   `arg:"" help:"Name of the box."`
	Maintenance *bool    `negatable:"" help:"Give it no runs but those of the reference, or give it runs again."`
	Bad         bool     `xor:"good" help:"Give it no runs: its numbers cannot be trusted."`
	Good        bool     `xor:"good" help:"Accept it again."`
	Reason      *string  `placeholder:"TEXT" help:"Why, for others."`
	Label       []string `placeholder:"KEY=VALUE" help:"A label that plans can ask for; may be repeated. The labels of an earlier call are replaced."`
	NoLabels    bool     `help:"Take away all labels that were given here."`
	JSON        bool     `name:"json" help:"Print the answer of the head as JSON."`
	boxFlags
}

// change is what the flags ask for.
func (c *BoxesSetCmd) change() (client.BoxChange, error) {
	change := client.BoxChange{Maintenance: c.Maintenance, Reason: c.Reason}
	if c.Bad || c.Good {
		change.Bad = &c.Bad
	}
	if len(c.Label) > 0 || c.NoLabels {
		labels := map[string]string{}
		for _, text := range c.Label {
			key, value, ok := strings.Cut(text, "=")
			if !ok || key == "" {
				return change, fmt.Errorf("--label %q: write KEY=VALUE, such as room=2.14", text)
			}
			labels[key] = value
		}
		change.Labels = &labels
	}
	if change == (client.BoxChange{}) {
		return change, errors.New("nothing is to change: give --maintenance, --no-maintenance, --bad, --good, --reason, --label or --no-labels")
	}
	return change, nil
}

// Validate checks what kong cannot.
func (c *BoxesSetCmd) Validate() error {
	if len(c.Label) > 0 && c.NoLabels {
		return errors.New("--no-labels goes without --label")
	}
	if _, err := c.change(); err != nil {
		return err
	}
	return c.check()
}

// Run implements the command.
func (c *BoxesSetCmd) Run(ctx context.Context, std *streams) error {
	change, err := c.change()
	if err != nil {
		return usage(err)
	}
	return show(&c.boxFlags, std, c.JSON, func(head *client.Client) (client.Box, error) {
		return head.ChangeBox(ctx, c.Name, change)
	}, func(b client.Box) error {
		fmt.Fprintf(std.out, "The box %s is %s. Its labels: %s\n", terminal.Plain(b.Name), terminal.Plain(because(b.Health, b.Reason)), terminal.Plain(cmp.Or(labelWords(b.Labels), "none")))
		return nil
	})
}

// BoxesReferenceCmd shows, sets or removes the reference.
type BoxesReferenceCmd struct {
	Plan   string `type:"path" xor:"what" placeholder:"FILE" help:"The plan, as YAML or JSON: one page with a recording, without a treatment. A recording that is a file here is brought to the head."`
	Every  string `placeholder:"DURATION" help:"How often each device measures it: 1m to 31d, such as 6h."`
	Remove bool   `xor:"what" help:"Have the boxes measure no reference."`
	JSON   bool   `name:"json" help:"Print the reference as JSON."`
	boxFlags
}

// Validate checks what kong cannot.
func (c *BoxesReferenceCmd) Validate() error {
	if (c.Plan == "") != (c.Every == "") {
		return errors.New("--plan and --every go together: what is measured, and how often")
	}
	return c.check()
}

// Run implements the command.
func (c *BoxesReferenceCmd) Run(ctx context.Context, std *streams) error {
	if c.Plan != "" {
		return c.keepPlan(ctx, std, c.Plan, "head", func(head *client.Client, q *plan.Request) error {
			r, err := head.SetReference(ctx, q, c.Every)
			if err != nil {
				return err
			}
			return c.print(std, r)
		})
	}
	return c.onBox(std, func(head *client.Client) error {
		if c.Remove {
			if err := head.RemoveReference(ctx); err != nil {
				return err
			}
			fmt.Fprintln(std.out, "The boxes measure no reference. What they measured stays.")
			return nil
		}
		r, err := head.Reference(ctx)
		if err != nil {
			return err
		}
		return c.print(std, r)
	})
}

func (c *BoxesReferenceCmd) print(std *streams, r client.Reference) error {
	if c.JSON {
		return printJSON(std.out, r)
	}
	fmt.Fprintf(std.out, "Each device measures %s with the recording %s every %s (reference %s).\n",
		terminal.Plain(r.Plan.FirstPage()), terminal.Plain(r.Plan.Archive), terminal.Plain(r.Every), terminal.Plain(r.ID))
	return nil
}
