package main

import (
	"context"
	"errors"
	"fmt"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/tell/terminal"
)

// BoxesUpdateCmd updates the boxes of a fleet, shows how far that is, or stops it.
type BoxesUpdateCmd struct {
	File    string   `arg:"" optional:"" type:"path" help:"The signed update, FILE.update. Without it the newest update is shown."`
	BoxName []string `placeholder:"NAME" help:"A box that gets it; may be repeated, and is the order. Without it: all boxes, by name."`
	Label   []string `placeholder:"KEY=PATTERN" help:"Only boxes with this label, in which * stands for any characters; may be repeated."`
	Stop    bool     `help:"Stop the update that goes on: boxes whose turn has not come stay as they are."`
	JSON    bool     `name:"json" help:"Print the update as JSON."`
	boxFlags
}

// Help is shown by appliance boxes update --help.
func (BoxesUpdateCmd) Help() string {
	return `Boxes get the update one after another. Each finishes its runs, measures the reference, installs the update, and measures the reference
again; the next one follows only if it measures as before. Otherwise the update stops and says why, and the other boxes stay as they are.

Example:
  appliance boxes update appliance.update --box-name lab-1
  appliance boxes update appliance.update --label room=2.*
  appliance boxes update
  appliance boxes update --stop`
}

// Validate checks what kong cannot.
func (c *BoxesUpdateCmd) Validate() error {
	switch {
	case c.Stop && c.File != "":
		return errors.New("--stop goes without a file")
	case c.File == "" && len(c.BoxName)+len(c.Label) > 0:
		return errors.New("--box-name and --label say which boxes get a file: name the file, such as appliance.update")
	}
	return c.check()
}

// Run implements the command.
func (c *BoxesUpdateCmd) Run(ctx context.Context, std *streams) error {
	return c.onBox(std, func(head *client.Client) error {
		r, err := c.ask(ctx, std, head)
		switch {
		case isMissing(err) && c.File == "":
			return errNoHead
		case err != nil:
			return err
		case r == nil:
			fmt.Fprintln(std.out, "The boxes were never updated from here. Begin with: appliance boxes update FILE.update")
			return nil
		case c.JSON:
			return printJSON(std.out, r)
		}
		return printRollout(std, *r)
	})
}

func (c *BoxesUpdateCmd) ask(ctx context.Context, std *streams, head *client.Client) (*client.Rollout, error) {
	switch {
	case c.Stop:
		r, err := head.StopUpdate(ctx)
		return &r, err
	case c.File == "":
		_, r, err := head.Fleet(ctx)
		return r, err
	}
	r, err := head.UpdateBoxes(ctx, c.File, c.BoxName, c.Label, func(size int64) {
		fmt.Fprintf(std.err, "Uploading %s (%.1f MB) to the head\n", terminal.Plain(c.File), float64(size)/1e6)
	})
	return &r, err
}

func printRollout(std *streams, r client.Rollout) error {
	fmt.Fprintln(std.out, rolloutLine(r))
	rows := [][]string{{"BOX", "STATE", "SINCE", "WHY"}}
	for _, b := range r.Boxes {
		since := ""
		if b.Since != nil {
			since = terminal.Clock(*b.Since)
		}
		rows = append(rows, []string{b.Name, b.State, since, b.Why})
	}
	return terminal.Rows(std.out, rows)
}

// rolloutLine says how far an update is.
func rolloutLine(r client.Rollout) string {
	return terminal.Plain(fmt.Sprintf("Update to %s: %s; %s", r.Version, r.State, r.Doing))
}
