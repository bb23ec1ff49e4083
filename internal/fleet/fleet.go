// Package fleet has the words that the head of a fleet shares with its boxes: what a box offers, what a part of a
// run needs, the lease that a box holds while it carries one out, and the files that it hands in.
//
// The head has one queue and one history. A run is divided into parts ([Split]); a part is what one box carries out,
// with both arms, so that a pair of trials never comes from two boxes. A box pulls: it says what it offers and claims a
// part that fits. Each later call of it carries the lease's token, and a call with an old token is refused (a fencing
// token, as in Kleppmann, "How to do distributed locking", 2016), so that no part is ended twice.
//
// The sub-packages: ledger keeps jobs, leases, boxes and runs in a database; blob keeps files by their digest;
// metrology judges boxes by what they measure of a reference; head and member are the two sides of the protocol.
package fleet

import (
	"time"

	"eidetic/internal/lab"
)

// Offer is what a box says of itself.
type Offer struct {
	Software string            `json:"software" maxLength:"200"` // version of the appliance
	Cores    int               `json:"cores"`
	Memory   int64             `json:"memory_bytes"`
	Labels   map[string]string `json:"labels,omitempty"` // of the box
	Devices  []OfferedDevice   `json:"devices"`
	// Image is the version of the image that the box runs from; "" on a machine without one, which has no updater.
	Image string `json:"image,omitempty" maxLength:"100"`
	// Update is what came of the update that the head told the box of, if it was refused.
	Update *UpdateState `json:"update,omitempty"`
}

// Update is a signed bundle that the head tells a box to install. The box checks its signature, whatever the head says.
type Update struct {
	ID      string `json:"id"` // of the head's request: the same bundle may be tried again
	Version string `json:"version"`
	SHA256  string `json:"sha256"` // of the bundle
	Bytes   int64  `json:"bytes"`
}

// UpdateState says why a box does not install an update.
type UpdateState struct {
	ID    string `json:"id"` // as the head told it
	Error string `json:"error"`
}

// OfferedDevice is a device of a box.
type OfferedDevice struct {
	Name     string            `json:"name"`
	Kind     string            `json:"kind"` // virtual or port, as in the panel's list
	Ready    bool              `json:"ready"`
	Problem  string            `json:"problem,omitempty"`
	Busy     bool              `json:"busy,omitempty"` // a run of the box's own uses it
	Screen   string            `json:"screen,omitempty"`
	Controls string            `json:"controls,omitempty"`
	Browsers []string          `json:"browsers,omitempty"` // programs of a virtual device: chromium, firefox-esr
	Labels   map[string]string `json:"labels,omitempty"`
}

// Bounds of what a box may say, so that a hostile one cannot fill the head's memory or disk.
const (
	MaxDevices    = 64
	MaxLabels     = 32
	MaxBrowsers   = 64 // of a device
	MaxLabelBytes = 100
	MaxNameBytes  = 63
	MaxFiles      = 20_000 // of a part
	MaxImageBytes = 100    // of versions and identifiers of updates
	MaxErrorBytes = 1000   // of an update that is refused
)

// Assignment is a part that a box has claimed.
type Assignment struct {
	Part     string        `json:"part"`    // identifier of the part, and of the run on the box
	Run      string        `json:"run"`     // the head's run
	Attempt  int           `json:"attempt"` // from 1: grows each time the part is claimed
	Token    string        `json:"token"`   // of the lease
	LeaseFor time.Duration `json:"lease_ns"`
	Device   string        `json:"device"` // name of the box's own device
	// Plan is the part's; its recordings are named by the digests of Archives, as DIGEST.wacz.
	Plan     lab.Plan      `json:"plan"`
	Archives []ArchiveFile `json:"archives,omitempty"`
	// Stay are patterns of path.Match for the last elements of files whose content stays on the box until somebody
	// wants it, such as "reel".
	Stay []string `json:"stay,omitempty"`
	// News says that there is no part, but that the box learns something if it describes itself.
	News bool `json:"news,omitempty"`
}

// ArchiveFile is a recording that a part replays.
type ArchiveFile struct {
	Name   string `json:"name"` // as the plan has it
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Progress is how far a box is with a part.
type Progress struct {
	Trial int    `json:"trial,omitempty"`
	Of    int    `json:"of,omitempty"`
	Doing string `json:"doing,omitempty"`
}

// Renewal is the answer to a renewed lease.
type Renewal struct {
	LeaseFor time.Duration `json:"lease_ns"`
	Cancel   bool          `json:"cancel,omitempty"` // somebody wants the run to stop; the box hands in what it has
	// Wanted are files that stayed on the box and that somebody wants to see.
	Wanted []Wanted `json:"wanted,omitempty"`
}

// Wanted is a file that stayed on a box.
type Wanted struct {
	Part   string `json:"part"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// File is a file of a part's run folder.
type File struct {
	Path   string `json:"path"` // relative, with slashes, as io/fs has it
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // in hexadecimal
	// Stays says that the content stays on the box until somebody wants it.
	Stays bool `json:"stays,omitempty"`
}

// Outcome is how a part ended.
type Outcome struct {
	State string `json:"state"` // done, failed or interrupted, as in run.json
	Error string `json:"error,omitempty"`
	Files []File `json:"files"`
	// Trials are whole, Thrown of them invalid.
	Trials int `json:"trials"`
	Thrown int `json:"thrown"`
}

// The healths of a box.
const (
	HealthUnknown     = "unknown"  // it has measured the reference too seldom
	HealthGood        = "good"     // its numbers are what they were
	HealthDrifting    = "drifting" // its level or spread has changed; it works on, and comparisons say so
	HealthBad         = "bad"      // it gets no runs until a person acts
	HealthMaintenance = "maintenance"
)
