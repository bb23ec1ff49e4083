package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"

	"eidetic/internal/lab"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/link"
	"eidetic/netlab/link/measure"
)

// LinkCmd groups what is done with link profiles.
type LinkCmd struct {
	Test   LinkTestCmd   `cmd:"" help:"Measure a profile between two namespaces: configured against achieved."`
	Names  LinkNamesCmd  `cmd:"" help:"List the named profiles." example:"appliance link names"`
	Trace  LinkTraceCmd  `cmd:"" help:"Traces of real links, to be followed with --link trace=FILE."`
	Inside LinkInsideCmd `cmd:"" hidden:"" help:"The test's half that runs in namespaces."`

	Forward LinkForwardCmd `cmd:"" hidden:"" help:"The process that forwards packets, for another that holds the socket at descriptor 3."`
}

// LinkNamesCmd prints the named profiles.
type LinkNamesCmd struct {
	JSON bool `name:"json" help:"Print JSON instead of a table."`
}

// Run prints.
func (c *LinkNamesCmd) Run(std *streams) error {
	var all []link.Profile
	for _, name := range link.Names() {
		p, err := link.Parse(name)
		if err != nil {
			return cannot(err)
		}
		all = append(all, p)
	}
	if c.JSON {
		return json.NewEncoder(std.out).Encode(all)
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tRTT\tDOWN\tUP")
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%v\t%s\t%s\n", p.Name, p.RTT, rateText(p.Down), rateText(p.Up))
	}
	return w.Flush()
}

// localProfiles reads profiles that the user of this machine names, which may name
// trace files.
func localProfiles() link.Reader { return link.Reader{Open: link.OpenFile} }

func rateText(r link.Rate) string {
	switch {
	case r == link.Unlimited:
		return "unlimited"
	case r == link.Blocked:
		return "0"
	case r >= 1e6:
		return fmt.Sprintf("%g Mbit/s", float64(r)/1e6)
	}
	return fmt.Sprintf("%g kbit/s", float64(r)/1e3)
}

// LinkTestCmd measures a profile.
type LinkTestCmd struct {
	Link    string `default:"lte" placeholder:"PROFILE" help:"A name or settings: lte, or \"rtt=150ms,down=1.6mbit,up=768kbit\" (${default})."`
	Backend string `default:"packet" enum:"packet,conn" help:"What emulates it: packet or conn (${default})."`
	JSON    bool   `name:"json" help:"Print JSON instead of a table."`
}

// Help is the example below the flags.
func (LinkTestCmd) Help() string {
	return `It needs no root where user namespaces are allowed, and touches nothing of this machine's network:

  appliance link test --link 3g
  appliance link test --link "rtt=20ms,down=10mbit,up=2mbit,queue=100p" --json
  appliance link test --backend conn --link "rtt=20ms,down=10mbit,up=2mbit"

A figure that this machine's own stalls can have spoilt is measured again, up to five times.
The exit status is 1 when the link did not keep to its profile, and 3 when the machine stalled each time.`
}

// Run checks the profile, and measures it in namespaces.
func (c *LinkTestCmd) Run(ctx context.Context) error {
	if _, err := localProfiles().Parse(c.Link); err != nil {
		return usage(err)
	}
	if err := isolate.Available(ctx); err != nil {
		return cannot(err)
	}
	defer lab.Awake()() // as in a trial
	args := []string{"link", "inside", "--link", c.Link, "--backend", c.Backend}
	if c.JSON {
		args = append(args, "--json")
	}
	err := isolate.Run(ctx, args)
	var exit *exec.ExitError
	if errors.As(err, &exit) { // the half in namespaces has printed why
		return &exitError{status: max(exit.ExitCode(), exitFailed)}
	}
	return cannot(err)
}

// LinkInsideCmd runs in the namespaces.
type LinkInsideCmd struct {
	Link    string `required:""`
	Backend string `required:""`
	JSON    bool   `name:"json"`
}

// Run measures and prints.
func (c *LinkInsideCmd) Run(ctx context.Context, std *streams) error {
	if os.Getpid() != 1 {
		return usage(errors.New("this half runs in namespaces of its own; call: appliance link test"))
	}
	p, err := localProfiles().Parse(c.Link) // before Mount replaces /tmp, where trace files may be
	if err != nil {
		return usage(err)
	}
	const tempSize = 16 << 20 // nothing is kept there; Mount is needed for its /proc
	if err := isolate.Mount(isolate.Mounts{TempSize: tempSize}); err != nil {
		return cannot(err)
	}
	r, err := measure.Measure(ctx, p, measure.Options{Backend: c.Backend, Forwarder: ownCommands().Forwarder})
	if err != nil {
		return cannot(err)
	}
	if c.JSON {
		err = printJSON(std.out, r)
	} else {
		w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "\tconfigured\tachieved\t\t")
		for _, row := range r.Rows {
			configured := "unlimited"
			if row.Configured > 0 || row.Unit == "ms" {
				configured = fmt.Sprintf("%.3f", row.Configured)
			}
			fmt.Fprintf(w, "%s\t%s\t%.3f\t%s\t\n", row.Name, configured, row.Achieved, row.Unit)
		}
		err = w.Flush()
		for _, d := range []struct {
			name string
			link.Direction
		}{{"down", r.Report.Down}, {"up", r.Report.Up}} {
			fmt.Fprintf(std.out, "%s: %d packets, %d bytes, dropped %v, late by %v at p99 (worst %v)\n", d.name, d.Packets, d.Bytes, d.Drops,
				d.Errors.Quantile(.99), d.Errors.Max)
		}
		for _, again := range r.Again {
			fmt.Fprintf(std.out, "measured again: %s\n", again)
		}
	}
	if err != nil {
		return cannot(err)
	}
	switch {
	case len(r.Why) > 0:
		return failed(fmt.Errorf("the link did not keep to its profile: %s", strings.Join(r.Why, "; ")))
	case len(r.Unsure) > 0:
		return cannot(fmt.Errorf("the machine is too busy to measure this link; try again when it is idle: %s",
			strings.Join(r.Unsure, "; ")))
	}
	return nil
}
