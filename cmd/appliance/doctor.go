package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"eidetic/internal/box/doctor"
)

// DoctorCmd says what this machine can do, and what to do about the rest.
type DoctorCmd struct {
	Checks []string `arg:"" optional:"" help:"Only these checks, and status 1 unless all of them are good."`
	JSON   bool     `name:"json" help:"Print JSON instead of a table."`
	Inside bool     `hidden:"" help:"The half that tries the kernel out in namespaces; the other half reads its descriptor 3."`
}

// Help is shown by appliance doctor --help.
func (DoctorCmd) Help() string {
	return `Example:

  appliance doctor
  appliance doctor --json chromium xvfb vpxenc

The command tries out what the kernel can do, in namespaces of its own that vanish;
it changes nothing of this machine. Without names the status is 0 whatever is
missing, because no machine needs everything.`
}

// Run checks and prints.
func (c *DoctorCmd) Run(ctx context.Context, std *streams) error {
	if c.Inside {
		return c.inside(ctx)
	}
	all, err := examine(ctx)
	if err != nil {
		return cannot(err)
	}
	chosen, err := doctor.Choose(all, c.Checks)
	if err != nil {
		return usage(err)
	}
	if c.JSON {
		err = printJSON(std.out, map[string]any{"checks": chosen})
	} else {
		err = printFindings(std.out, chosen)
	}
	if err != nil {
		return cannot(err)
	}
	if len(c.Checks) > 0 && !doctor.AllGood(chosen) {
		return failed(nil) // the table says which
	}
	return nil
}

// inside is the half that runs in namespaces.
func (c *DoctorCmd) inside(ctx context.Context) error {
	out := os.NewFile(3, "findings")
	if _, err := out.Stat(); err != nil || os.Getpid() != 1 {
		return usage(errors.New("--inside is started by appliance doctor"))
	}
	return cannot(doctor.CheckInside(ctx, out))
}

// printFindings prints a table for people: all findings, then the remedies.
func printFindings(out io.Writer, list []doctor.Finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tcheck\tfor\tfound")
	for _, f := range list {
		mark := "ok"
		if !f.OK {
			mark = "--"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", mark, f.Name, f.For, f.Found)
	}
	if err := w.Flush(); err != nil || doctor.AllGood(list) {
		return err
	}
	fmt.Fprintln(out, "\nWhat to do where you need it:")
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range list {
		if !f.OK {
			fmt.Fprintf(w, "  %s\t%s\n", f.Name, f.Remedy)
		}
	}
	return w.Flush()
}
