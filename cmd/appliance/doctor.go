package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"eidetic/internal/isolate"
)

// DoctorCmd says what this machine can do, and what to do about the rest.
type DoctorCmd struct {
	Checks []string `arg:"" optional:"" help:"Only these, and status 1 unless all are good."`
	JSON   bool     `name:"json" help:"Print JSON instead of a table."`
	Inside bool     `hidden:"" help:"The half that tries the kernel out in namespaces, for another that reads descriptor 3."`
}

// Help is shown by appliance doctor --help.
func (DoctorCmd) Help() string {
	return `Example:

  appliance doctor
  appliance doctor --json chromium xvfb vpxenc

What the kernel can do is tried out, in namespaces of its own that vanish; nothing
of this machine is changed. Without names the status is 0 whatever lacks, because
no machine needs everything.`
}

// finding is what the doctor says of one thing.
type finding struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// For says what needs it.
	For string `json:"for"`
	// Found is what was found, or why it does not work.
	Found string `json:"found"`
	// Mend says what to do, when it lacks.
	Mend string `json:"mend,omitempty"`
}

// lacking makes a finding of something that is not there.
func (f finding) lacking(found, mend string) finding {
	f.OK, f.Found, f.Mend = false, found, mend
	return f
}

// good makes a finding of something that works.
func (f finding) good(found string) finding {
	f.OK, f.Found, f.Mend = true, found, ""
	return f
}

// Run looks and prints.
func (c *DoctorCmd) Run(ctx context.Context, std *streams) error {
	if c.Inside {
		return doctorInside(ctx)
	}
	all := append(programs(), devices(os.DirFS("/"))...)
	all = append(all, processor(), namespaces(ctx))
	kernel, err := tryKernel(ctx)
	if err != nil {
		return cannot(err)
	}
	all = append(all, kernel...)
	chosen, err := choose(all, c.Checks)
	if err != nil {
		return usage(err)
	}
	if c.JSON {
		encoder := json.NewEncoder(std.out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(map[string]any{"checks": chosen})
	} else {
		err = printFindings(std.out, chosen)
	}
	if err != nil {
		return cannot(err)
	}
	if len(c.Checks) > 0 && slices.ContainsFunc(chosen, func(f finding) bool { return !f.OK }) {
		return &exitError{status: exitFailed} // the table says which
	}
	return nil
}

// choose keeps the named findings, in the order of all.
func choose(all []finding, names []string) ([]finding, error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, f := range all {
		known = append(known, f.Name)
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("no check is called %q; there are %s", n, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(f finding) bool { return !slices.Contains(names, f.Name) }), nil
}

func printFindings(out io.Writer, list []finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tcheck\tfor\tfound")
	var mend []finding
	for _, f := range list {
		mark := "ok"
		if !f.OK {
			mark = "--"
			mend = append(mend, f)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", mark, f.Name, f.For, f.Found)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(mend) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nWhat lacks, where you need it:")
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range mend {
		fmt.Fprintf(w, "  %s\t%s\n", f.Name, f.Mend)
	}
	return w.Flush()
}

// namespaces says whether labs can be made at all.
func namespaces(ctx context.Context) finding {
	f := finding{Name: "namespaces", For: "appliance demo, virtual devices, link test"}
	if err := isolate.Available(ctx); err != nil {
		return f.lacking("not allowed", err.Error())
	}
	if os.Geteuid() == 0 {
		return f.good("as root")
	}
	return f.good("as an ordinary user")
}
