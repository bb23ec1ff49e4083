package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/service"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/member"
)

// placeFlags say which box joins or leaves: one that runs, or one whose service is down.
type placeFlags struct {
	Data string `type:"path" placeholder:"DIR" help:"Data folder of a box whose service is not running, in place of the address of one that is."`
	boxFlags
}

// Validate checks what kong cannot.
func (f *placeFlags) Validate() error {
	if f.Data != "" && f.named() {
		return errors.New("--data is for a box whose service is not running: leave --box, --token-file and --fingerprint out, and EIDETIC_BOX and EIDETIC_TOKEN unset")
	}
	return f.check()
}

// hold keeps a service from the data folder meanwhile, and returns the folder of the box's place in a fleet.
func (f *placeFlags) hold() (dir string, release func(), err error) {
	if err := os.MkdirAll(f.Data, 0o700); err != nil {
		return "", nil, err
	}
	held, err := service.HoldFolder(f.Data)
	if err != nil {
		return "", nil, fmt.Errorf("%w; or name the address of that one: --box URL", err)
	}
	return filepath.Join(f.Data, service.FleetDir), func() { _ = held.Close() }, nil // only the lock ends
}

// JoinCmd makes a box a member of a fleet.
type JoinCmd struct {
	Link string `arg:"" help:"The link that the head shows: eidetic-head://HOST:PORT/CODE?pin=SHA256. It works once."`
	Name string `help:"Name of the box in the fleet: a-z, 0-9 and dashes. Without it the box's host name."`
	placeFlags
}

// Help is shown by appliance join --help.
func (JoinCmd) Help() string {
	return `A box that belongs to the head of a fleet takes parts of the head's runs whenever one of its devices is free, and uploads the results. It
still takes runs of its own. The head's panel makes the link; the box must reach the head, not the other way round. While the box's
service is running, this needs a token of the scope admin, from --token-file or the environment variable EIDETIC_TOKEN.

Example:
  appliance join 'eidetic-head://head.example.org:8443/CODE?pin=SHA256' --name lab-1
  appliance join 'eidetic-head://head.example.org:8443/CODE?pin=SHA256' --data out/box
  appliance leave`
}

// check returns an error for a link or a name that is none, before the box is asked.
func (c *JoinCmd) check() error {
	if _, err := fleet.ParseLink(c.Link); err != nil {
		return err
	}
	if c.Name != "" {
		if err := fleet.CheckBoxName(c.Name); err != nil {
			return fmt.Errorf("--name: %w", err)
		}
	}
	return nil
}

// Run implements the command.
func (c *JoinCmd) Run(ctx context.Context, std *streams) error {
	if err := c.check(); err != nil {
		return usage(err)
	}
	if c.Data != "" {
		return c.direct(ctx, std)
	}
	return c.onBox(std, func(box *client.Client) error {
		st, err := box.JoinFleet(ctx, c.Link, c.Name)
		if err == nil {
			fmt.Fprintf(std.out, "The box belongs to the head %s, as %s.\n", st.Head, st.Name)
		}
		return err
	})
}

func (c *JoinCmd) direct(ctx context.Context, std *streams) error {
	dir, release, err := c.hold()
	if err != nil {
		return cannot(err)
	}
	defer release()
	name := c.Name
	if name == "" {
		name = member.DefaultName()
	}
	id, err := member.Join(ctx, c.Link, name, service.BareOffer(versionLine(), service.DefaultConfig()), dir)
	if err != nil {
		return cannot(err)
	}
	fmt.Fprintf(std.out, "The box belongs to the head %s, as %s. It works for it from its next start: appliance serve --data %s\n", id.Head, id.Name, c.Data)
	return nil
}

// LeaveCmd makes a box leave its fleet.
type LeaveCmd struct {
	Force bool `help:"Leave even while the box holds parts of runs: they are stopped and stay on the box, and the head gives them to others."`
	placeFlags
}

// Help is shown by appliance leave --help.
func (LeaveCmd) Help() string {
	return `The head is not told: remove the box on its panel as well. All runs stay on the box.

Example:
  appliance leave
  appliance leave --force --data out/box`
}

// Run implements the command.
func (c *LeaveCmd) Run(ctx context.Context, std *streams) error {
	if c.Data != "" {
		dir, release, err := c.hold()
		if err != nil {
			return cannot(err)
		}
		defer release()
		if err := member.Leave(dir, c.Force); err != nil {
			return cannot(err)
		}
	} else if err := c.onBox(std, func(box *client.Client) error { return box.LeaveFleet(ctx, c.Force) }); err != nil {
		return err
	}
	fmt.Fprintln(std.out, "The box belongs to no head any more. Remove it on the head's panel as well.")
	return nil
}
