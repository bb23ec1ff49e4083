package main

import (
	"errors"
	"fmt"
)

// sandboxFlags say how a virtual device's browser is kept from this machine.
type sandboxFlags struct {
	NoSandbox bool `help:"Let the browser work without its own sandbox, where this machine refuses that: for pages that you trust. The report says so."`
}

// processorFlags say what a run on this machine does to its processors.
type processorFlags struct {
	KeepProcessors bool `help:"Leave governor and turbo of the processors as they are during the run. Without it a run as root holds the processors at one frequency."`
}

// hereFlags are those of commands that this machine carries out unless a box is named.
type hereFlags struct {
	pageFlags
	sandboxFlags
	processorFlags
}

// refuseThere returns an error if one is given for what a box carries out, which has its own settings. what says of what
// they are, such as runs.
func (f *hereFlags) refuseThere(what string) error {
	const here = "%s is for %s on this machine: a service has %s in its configuration"
	switch {
	case f.NoSandbox:
		return fmt.Errorf(here, "--no-sandbox", what, "virtual.no_sandbox")
	case f.KeepProcessors:
		return fmt.Errorf(here, "--keep-processors", what, "processors.keep")
	case f.given():
		return errors.New("--resolver, --trust, --insecure-origin, --allow-private and --header are for " + what + " on this machine: " +
			"a box reaches origins as its configuration says (network)")
	}
	return nil
}
