package main

// sandboxFlags say how a virtual device's browser is kept from this machine.
type sandboxFlags struct {
	NoSandbox bool `help:"Let the browser work without its own sandbox, where this machine refuses that: for pages that you trust. The report says so."`
}
