package link

import (
	"fmt"
	"maps"
	"time"

	"eidetic/internal/lab"
)

// Report says what a link did since its profile was set.
type Report struct {
	Backend string  `json:"backend"` // "native", "conn", "packet"
	Profile Profile `json:"profile"`
	// Limits lists, in words, what this back end cannot do of the profile.
	Limits []string  `json:"limits,omitempty"`
	Down   Direction `json:"down"`
	Up     Direction `json:"up"`
	// Slips counts departures later than Bound.
	Slips int64         `json:"slips"`
	Bound time.Duration `json:"bound_ns"`
	// Late bounds how much late departures can have delayed other events, as a
	// sum over time.
	Late []lab.Late `json:"late,omitempty"`
	// Stalled is the stall that the profile asked for.
	Stalled *Stalled `json:"stalled,omitempty"`
	// Merged counts frames that carried several segments in one, so that their
	// spacing is wrong. A trial with such frames is invalid.
	Merged int64 `json:"merged,omitempty"`
	// Thread lists what the forwarding thread was granted.
	Thread []string `json:"thread,omitempty"`
	// CPU is the processor time that the forwarding thread has used since it began.
	CPU time.Duration `json:"cpu_ns,omitempty"`
	// Fault is why the back end itself has failed.
	Fault string `json:"fault,omitempty"`
	// Bins count what left the link in each tenth of a second.
	Bins []Bin `json:"bins,omitempty"`
}

// Invalid returns why a trial on this link must not count, whatever its plan
// allows, or "". Late packets are no such reason: Late bounds their effect, and
// the plan decides.
func (r Report) Invalid() string {
	switch {
	case r.Fault != "":
		return r.Fault
	case r.Backend == "native":
		return ""
	case r.Merged > 0 && !r.Profile.Native():
		return fmt.Sprintf("%d frames carried several segments in one: switch the offloads of the device's interface off", r.Merged)
	case r.Up.Drops[DropUnread]+r.Down.Drops[DropUnread] > 0:
		return fmt.Sprintf("the kernel dropped %d packets before the link could read them", r.Up.Drops[DropUnread]+r.Down.Drops[DropUnread])
	}
	return ""
}

// BinWidth is the length of the time that one Bin covers.
const BinWidth = 100 * time.Millisecond

// Bin counts what left the link in a tenth of a second.
type Bin struct {
	Down  int `json:"down_bytes"`
	Up    int `json:"up_bytes"`
	Queue int `json:"queue_peak_bytes"`
}

// Reasons of drops, the keys of Direction.Drops.
const (
	DropLoss   = "loss"   // the profile's loss
	DropQueue  = "queue"  // the queue was full
	DropCoDel  = "codel"  // the packet had waited too long
	DropMTU    = "mtu"    // the packet was larger than the profile's MTU
	DropSend   = "send"   // the kernel did not accept the frame for sending
	DropUnread = "kernel" // the kernel dropped the frame before the link read it
)

// Direction counts what passed in one direction. Packets of the conn back end
// are pieces of at most one segment.
type Direction struct {
	Packets int64            `json:"packets"`
	Bytes   int64            `json:"bytes"`
	Drops   map[string]int64 `json:"drops,omitempty"` // by reason: DropLoss and the others
	// Direct counts frames that bypassed the link; no other counter includes them.
	Direct int64 `json:"direct,omitempty"`
	// QueuePeak is the largest number of bytes that waited.
	QueuePeak int64 `json:"queue_peak_bytes"`
	// Errors counts by how much departures were later than scheduled.
	Errors Histogram `json:"delay_error"`
}

// Clone returns a copy that shares nothing mutable with d.
func (d Direction) Clone() Direction {
	d.Drops = maps.Clone(d.Drops)
	d.Errors = d.Errors.clone()
	return d
}
