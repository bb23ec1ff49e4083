package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/keep/retention"
	"eidetic/internal/tell/terminal"
	"eidetic/internal/web/panel"
)

// RetentionCmd says what evidence a box would delete, and deletes it.
type RetentionCmd struct {
	DryRun     bool    `help:"Only say what would be deleted; needs the scope read."`
	KeepDays   int     `placeholder:"DAYS" help:"Delete the evidence of runs that are older, in place of the box's own policy."`
	KeepGB     float64 `name:"keep-gb" placeholder:"GB" help:"Delete the oldest evidence while all runs take more, in place of the box's own policy."`
	KeepFreeGB float64 `name:"keep-free-gb" placeholder:"GB" help:"Delete the oldest evidence while less is free, in place of the box's own policy."`
	JSON       bool    `name:"json" help:"Print the answer of the box as JSON."`
	boxFlags
}

// Help is shown by appliance retention --help.
func (RetentionCmd) Help() string {
	return `Evidence is films, pictures, recordings and logs of runs. The numbers and the report of every run stay, so that no history and no
comparison loses one. The evidence of pinned runs, of runs in the queue, of the newest run of each series, of runs that an open alert
is about, and of those whose recordings workflows replay stays, too. The box applies its own policy (retention in its
configuration) by itself.

Example:
  appliance retention --dry-run --keep-days 90 --box https://box.local:8080
  appliance retention --keep-days 90 --box https://box.local:8080`
}

// Validate checks what kong cannot.
func (c *RetentionCmd) Validate() error {
	if field, err := c.policy().Check(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return c.check()
}

func (c *RetentionCmd) policy() retention.Policy {
	return retention.Policy{KeepDays: c.KeepDays, KeepGB: c.KeepGB, KeepFreeGB: c.KeepFreeGB}
}

// Run implements the command.
func (c *RetentionCmd) Run(ctx context.Context, std *streams) error {
	return show(&c.boxFlags, std, c.JSON, func(box *client.Client) (panel.Retention, error) {
		return box.Retention(ctx, c.policy(), !c.DryRun)
	}, func(got panel.Retention) error { return printRetention(std.out, got, c.DryRun) })
}

func printRetention(out io.Writer, r panel.Retention, dry bool) error {
	if !r.Policy.Set() {
		fmt.Fprintf(out, "The box keeps everything. The runs take %d MB; %d MB of %d MB are free.\n", r.Bytes/1_000_000, r.Free/1_000_000, r.Disk/1_000_000)
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, d := range r.Delete {
		fmt.Fprintf(table, "delete\t%s\t%d MB\t%s\n", terminal.Plain(d.Run), d.Bytes/1_000_000, terminal.Plain(d.Why))
	}
	for _, k := range r.Kept {
		fmt.Fprintf(table, "keep\t%s\t%d MB\t%s\n", terminal.Plain(k.Run), k.Bytes/1_000_000, terminal.Plain(k.Needed))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	verb := "deleted"
	if dry {
		verb = "to delete"
	}
	fmt.Fprintf(out, "%s: the evidence of %d runs, %d MB. The runs take %d MB; %d MB of %d MB are free.\n", verb, len(r.Delete)+r.More, r.Frees/1_000_000,
		r.Bytes/1_000_000, r.Free/1_000_000, r.Disk/1_000_000)
	if r.Short > 0 {
		fmt.Fprintf(out, "The policy needs %d MB more, but all other evidence is needed: unpin or delete runs, or use a larger disk.\n", r.Short/1_000_000)
	}
	return nil
}

// PinCmd keeps a run from being deleted.
type PinCmd struct {
	ID     string `arg:"" help:"ID of the run."`
	Why    string `placeholder:"TEXT" help:"What it is kept for."`
	Remove bool   `help:"Remove the pin."`
	boxFlags
}

// Help is shown by appliance pin --help.
func (PinCmd) Help() string {
	return `Nothing of a pinned run is deleted, by retention or by a request. Needs the scope run.

Example:
  appliance pin 20261121-091400-checkout --why "the reference of release 7"
  appliance pin 20261121-091400-checkout --remove`
}

// Run implements the command.
func (c *PinCmd) Run(ctx context.Context, std *streams) error {
	return c.onBox(std, func(box *client.Client) error {
		word, change := "pinned", func() error { return box.Pin(ctx, c.ID, c.Why) }
		if c.Remove {
			word, change = "not pinned any more", func() error { return box.Unpin(ctx, c.ID) }
		}
		err := change()
		if err == nil {
			fmt.Fprintf(std.out, "Run %s is %s.\n", c.ID, word)
		}
		return err
	})
}
