package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"eidetic/cmd/appliance/client"
	"eidetic/image/box"
	"eidetic/internal/box/doctor"
	"eidetic/internal/keep/redact"
	"eidetic/internal/keep/support"
)

// SupportCmd makes a file for whoever helps with a box.
type SupportCmd struct {
	Out  string `required:"" type:"path" placeholder:"FILE" help:"File to write, a .tar.gz."`
	Here bool   `help:"Of this machine alone, without a service: version, doctor, hardware."`
	boxFlags
}

// Help is shown by appliance support --help.
func (SupportCmd) Help() string {
	return `The file has versions, what the doctor found, health, the configuration, the log of the service since its start, the queue, the newest
runs and the hardware. Passwords, tokens, keys, cookies and the queries of addresses are removed; names of runs, pages and hosts
are not: look through it before you send it. Needs a token of the scope admin.

Example:
  appliance support --out support.tar.gz --box https://box.local:8080
  appliance support --out support.tar.gz --here`
}

// Run implements the command.
func (c *SupportCmd) Run(ctx context.Context, std *streams) error {
	err := writePrivate(c.Out, func(w io.Writer) error {
		if c.Here {
			return here(ctx, support.New(w, redact.New(), time.Now()), examine)
		}
		return c.onBox(std, func(box *client.Client) error { return box.Support(ctx, w) })
	})
	if isMissing(err) {
		return cannot(errors.New("only a box can be asked for a support bundle; where a head runs, use --here"))
	} else if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "%s is written. README.txt in it says what it holds; look through it before you send it.\n", c.Out)
	return nil
}

// here writes what can be known without a service.
func here(ctx context.Context, b *support.Bundle, examine func(context.Context) ([]doctor.Finding, error)) error {
	if err := b.Text("version.txt", versionLine()+"\n"); err != nil {
		return err
	}
	if err := b.Text("hardware.txt", support.Hardware("/")); err != nil {
		return err
	}
	findings, err := examine(ctx)
	if err != nil {
		err = b.Failed("doctor.json", err)
	} else {
		err = b.JSON("doctor.json", findings)
	}
	if err != nil {
		return err
	}
	return b.Close()
}

// examine has the doctor look at this machine.
func examine(ctx context.Context) ([]doctor.Finding, error) {
	return doctor.Check(ctx, []string{"doctor", "--inside"}, box.Is("/"))
}
