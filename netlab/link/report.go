package link

import "time"

// Report is what a link did since its profile was set.
type Report struct {
	Backend string  `json:"backend"` // "native", "conn", "packet"
	Profile Profile `json:"profile"`
	// Limits says what this back end cannot do of the profile, in words.
	Limits []string  `json:"limits,omitempty"`
	Down   Direction `json:"down"`
	Up     Direction `json:"up"`
	// Slips counts departures later than Bound; a trial with slips is invalid.
	Slips int64         `json:"slips"`
	Bound time.Duration `json:"bound_ns"`
}

// Direction counts what passed one way. Packets of the conn back end are
// pieces of at most one segment.
type Direction struct {
	Packets int64            `json:"packets"`
	Bytes   int64            `json:"bytes"`
	Drops   map[string]int64 `json:"drops,omitempty"` // by reason: "queue", "loss", "outage", "codel", "mtu"
	// QueuePeak is the most that waited, in bytes.
	QueuePeak int64 `json:"queue_peak_bytes"`
	// Errors holds how much later than scheduled departures were.
	Errors Histogram `json:"delay_error"`
}
