package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/tell/terminal"
)

// BoxesCmd manages the boxes of a fleet.
type BoxesCmd struct {
	Ls        BoxesLsCmd        `cmd:"" default:"withargs" help:"List the boxes: what each does, and how well it measures." example:"appliance boxes ls --box https://head.local:8080"`
	Code      BoxesCodeCmd      `cmd:"" help:"Print a link with which one box can join, once." example:"appliance boxes code --box https://head.local:8080"`
	Show      BoxesShowCmd      `cmd:"" help:"Show a box: its devices, and what each measured of the reference." example:"appliance boxes show lab-1 --box https://head.local:8080"`
	Set       BoxesSetCmd       `cmd:"" help:"Begin or end the maintenance of a box, call it bad or good, give it labels." example:"appliance boxes set lab-1 --maintenance --reason 'new cable' --box https://head.local:8080"`
	Remove    thingCmd          `cmd:"" help:"Remove a box from the fleet." set:"thing=Name of the box." example:"appliance boxes remove lab-1 --box https://head.local:8080"`
	Measure   deviceCmd         `cmd:"" help:"Have a device measure the reference now." example:"appliance boxes measure lab-1 pixel-8 --box https://head.local:8080"`
	Accept    deviceCmd         `cmd:"" help:"Accept what a device measures now as its baseline." example:"appliance boxes accept lab-1 pixel-8 --box https://head.local:8080"`
	Reference BoxesReferenceCmd `cmd:"" help:"Show, set or remove what all devices measure regularly." example:"appliance boxes reference --plan reference.yaml --every 6h --box https://head.local:8080"`
	Update    BoxesUpdateCmd    `cmd:"" help:"Update the boxes one after another, with the reference before and after; show or stop that."`
}

// Help is shown by appliance boxes --help.
func (BoxesCmd) Help() string {
	return `The boxes of a fleet, as its head knows them; --box is the address of the head. Code, remove, accept, reference, update and set with --bad, --good
or --label need a token of the scope admin, measure and set --maintenance one of the scope run.

Example:
  appliance boxes code --box https://head.local:8080
  appliance boxes
  appliance boxes set lab-1 --maintenance --reason "new disk"
  appliance boxes reference --plan reference.yaml --every 6h`
}

// BoxesLsCmd lists the boxes.
type BoxesLsCmd struct {
	JSON bool `name:"json" help:"Print the list as JSON."`
	boxFlags
}

// Run implements the command.
func (c *BoxesLsCmd) Run(ctx context.Context, std *streams) error {
	return c.onBox(std, func(head *client.Client) error {
		all, rollout, err := head.Fleet(ctx)
		switch {
		case isMissing(err):
			return errNoHead
		case err != nil:
			return err
		case c.JSON:
			return printJSON(std.out, all)
		case len(all) == 0:
			fmt.Fprintln(std.out, "No box has joined yet. Make a link with: appliance boxes code")
		default:
			err = printBoxes(std.out, all)
		}
		if err == nil && rollout != nil && rollout.State != "done" {
			fmt.Fprintln(std.out, rolloutLine(*rollout))
		}
		return err
	})
}

func printBoxes(out io.Writer, all []client.Box) error {
	rows := [][]string{{"BOX", "STATE", "HEALTH", "DEVICES", "HEARD OF", "RUNS", "WHY"}}
	for _, b := range all {
		var devices, runs []string
		for _, d := range b.Devices {
			devices = append(devices, d.Name)
			if d.Run != "" {
				runs = append(runs, d.Run)
			}
		}
		seen := terminal.Clock(b.Seen)
		rows = append(rows, []string{b.Name, b.State, b.Health, strings.Join(devices, ", "), seen, strings.Join(runs, ", "), b.Reason})
	}
	return terminal.Rows(out, rows)
}

// errNoHead is about a panel that knows no boxes.
var errNoHead = errors.New("--box: this is the panel of a box, and not of a fleet's head; appliance head starts one") // constant

// BoxesCodeCmd makes a link.
type BoxesCodeCmd struct {
	JSON bool `name:"json" help:"Print the answer of the head as JSON."`
	boxFlags
}

// Run implements the command.
func (c *BoxesCodeCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, nil, nil, c.JSON)
}

// BoxesShowCmd shows a box.
type BoxesShowCmd struct {
	Name string `arg:"" help:"Name of the box."`
	JSON bool   `name:"json" help:"Print the box as JSON."`
	boxFlags
}

// Run implements the command.
func (c *BoxesShowCmd) Run(ctx context.Context, std *streams) error {
	return c.onBox(std, func(head *client.Client) error {
		b, err := head.GetBox(ctx, c.Name)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return printJSON(std.out, b)
		}
		rows := [][]string{
			{"box", b.Name}, {"state", b.State}, {"health", because(b.Health, b.Reason)},
			{"heard of", terminal.Clock(b.Seen)}, {"joined", terminal.Clock(b.Joined)},
			{"software", b.Software}, {"image", cmp.Or(b.Image, "none: it gets no updates from here")}, {"machine", fmt.Sprintf("%d cores, %d GB", b.Cores, (b.Memory+1<<29)>>30)}, {"labels", labelWords(b.Labels)}, {"fingerprint", b.Pin},
		}
		if err := terminal.Rows(std.out, rows); err != nil {
			return err
		}
		for _, d := range b.Devices {
			r, err := head.Readings(ctx, b.Name, d.Name)
			if err != nil {
				return err
			}
			fmt.Fprintln(std.out)
			if err := terminal.Rows(std.out, deviceRows(d, r)); err != nil {
				return err
			}
		}
		return nil
	})
}

// because is a health with its reason.
func because(health, reason string) string {
	if reason == "" {
		return health
	}
	return health + ": " + reason
}
