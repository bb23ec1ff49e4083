// Package panel is the appliance's face on the network: a REST interface
// under /api/v1 described by OpenAPI 3.1 at /openapi.json, errors as RFC 9457
// problem details, and a web page that lists the runs of a store and opens
// their reports.
package panel

import (
	"log/slog"

	"eidetic/internal/store"
)

// Config is what a panel needs.
type Config struct {
	// Store holds the runs.
	Store *store.Store
	// Token must come with every call that reads a recording or changes
	// anything, as "Authorization: Bearer TOKEN" or in the cookie that the
	// page sets. It may be empty on a loopback listener only.
	Token string
	// Version is shown to people and machines.
	Version string
	// Hosts are the names and addresses, without ports, by which the panel may
	// be called besides its listener's own address and localhost. It guards
	// against DNS rebinding.
	Hosts []string
	// Log receives what went wrong on our side; nil discards it.
	Log *slog.Logger
}
