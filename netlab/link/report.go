package link

import (
	"fmt"
	"time"

	"eidetic/internal/lab"
)

// Report is what a link did since its profile was set.
type Report struct {
	Backend string  `json:"backend"` // "native", "conn", "packet"
	Profile Profile `json:"profile"`
	// Limits says what this back end cannot do of the profile, in words.
	Limits []string  `json:"limits,omitempty"`
	Down   Direction `json:"down"`
	Up     Direction `json:"up"`
	// Slips counts departures later than Bound.
	Slips int64         `json:"slips"`
	Bound time.Duration `json:"bound_ns"`
	// Late bounds what late departures can have moved, as a sum over time.
	Late []lab.Late `json:"late,omitempty"`
	// Stalled is the stall that the profile asked for.
	Stalled *Stalled `json:"stalled,omitempty"`
	// Merged counts frames that were several segments in one, which makes
	// their spacing wrong: a trial with any is invalid.
	Merged int64 `json:"merged,omitempty"`
	// Thread says what the forwarding thread was granted.
	Thread []string `json:"thread,omitempty"`
	// CPU is the processor time that the forwarding thread has used, since it began.
	CPU time.Duration `json:"cpu_ns,omitempty"`
	// Fault says that the back end itself has failed.
	Fault string `json:"fault,omitempty"`
	// Bins hold what left the link, by tenths of a second.
	Bins []Bin `json:"bins,omitempty"`
}

// Invalid says why a trial on this link must not count, whatever its plan allows,
// or returns "". That packets were late is no such reason: Late says what of it.
func (r Report) Invalid() string {
	switch {
	case r.Fault != "":
		return r.Fault
	case r.Backend == "native":
		return ""
	case r.Merged > 0 && !r.Profile.Native():
		return fmt.Sprintf("%d frames through the link were several segments in one: switch the offloads of the device's interface off", r.Merged)
	case r.Up.Drops[dropIn]+r.Down.Drops[dropIn] > 0:
		return fmt.Sprintf("the kernel dropped %d packets before the link could read them", r.Up.Drops[dropIn]+r.Down.Drops[dropIn])
	}
	return ""
}

// BinWidth is the time that one Bin covers.
const BinWidth = 100 * time.Millisecond

// maxBins keeps two hours.
const maxBins = 72_000

// Bin counts what left the link in a tenth of a second.
type Bin struct {
	Down  int `json:"down_bytes"`
	Up    int `json:"up_bytes"`
	Queue int `json:"queue_peak_bytes"`
}

func (b *Bin) add(down bool, n, queued int) {
	if down {
		b.Down += n
	} else {
		b.Up += n
	}
	b.Queue = max(b.Queue, queued)
}

// bin returns the one for an instant.
func (p *Packet) bin(at lab.Time) *Bin {
	i := min(int(at.Sub(p.binFrom)/BinWidth), maxBins-1)
	for len(p.bins) <= i {
		p.bins = append(p.bins, Bin{})
	}
	return &p.bins[i]
}

// Direction counts what passed one way. Packets of the conn back end are
// pieces of at most one segment.
type Direction struct {
	Packets int64            `json:"packets"`
	Bytes   int64            `json:"bytes"`
	Drops   map[string]int64 `json:"drops,omitempty"` // by reason: "queue", "loss", "outage", "codel", "mtu"
	// Direct counts frames that passed the link by, and are in nothing else.
	Direct int64 `json:"direct,omitempty"`
	// QueuePeak is the most that waited, in bytes.
	QueuePeak int64 `json:"queue_peak_bytes"`
	// Errors holds how much later than scheduled departures were.
	Errors Histogram `json:"delay_error"`
}
