package main

// sandboxFlags say how a virtual device's browser is kept from this machine.
type sandboxFlags struct {
	NoSandbox bool `help:"Let the browser work without its own sandbox, where this machine refuses that: for pages that you trust. The report says so."`
}

// processorFlags say what a run on this machine does to its processors.
type processorFlags struct {
	KeepProcessors bool `help:"Leave governor and turbo of the processors as they are during the run. Without it a run as root holds the processors at one frequency."`
}
