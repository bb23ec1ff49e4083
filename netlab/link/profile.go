// Package link emulates the access network between the device and everything
// else. In go a [Profile] (round-trip time, rates, queue, loss, jitter, a
// seed, or a trace) and packets or connections; out come the same packets or
// bytes when the profile says that they leave, and a [Report] of what the link
// really did.
//
// Back ends: [Conn] delays and paces net.Conns, for devices that only have an
// explicit proxy and for machines without privileges; it says what it cannot
// do. Every result names its back end.
package link

import (
	"maps"
	"time"
)

// Rate is a capacity in bits per second, counted in bytes of IP packets, as
// access networks are sold and as WebPageTest's tbf counts without overhead.
type Rate int64

const (
	// Unlimited is the zero Rate: bytes leave as fast as the machine can.
	Unlimited Rate = 0
	// Blocked is an outage: nothing leaves until the profile changes.
	Blocked Rate = -1
)

// Transmit returns how long the link needs for n bytes, 0 when it is unlimited
// or blocked.
func (r Rate) Transmit(n int) time.Duration {
	if r <= 0 {
		return 0
	}
	bits := int64(n) * 8
	// Whole seconds apart, so that no product overflows for any n.
	return time.Duration(bits/int64(r))*time.Second + time.Duration(bits%int64(r)*int64(time.Second)/int64(r))
}

// Discipline says how a full queue sheds load.
type Discipline string

const (
	// DropTail drops the packet that does not fit. The default.
	DropTail Discipline = "droptail"
	// CoDel drops at the head when packets have stood too long (RFC 8289,
	// target 5 ms, interval 100 ms).
	CoDel Discipline = "codel"
)

// Queue bounds what waits in front of each direction's bottleneck. The
// tightest of the bounds that are set holds.
type Queue struct {
	Packets    int           `json:"packets,omitempty"`
	Bytes      int           `json:"bytes,omitempty"`
	Time       time.Duration `json:"time_ns,omitempty"` // of transmission at the direction's rate
	Discipline Discipline    `json:"discipline,omitempty"`
}

// Profile describes a link. The zero Profile is a perfect one.
type Profile struct {
	// Name is the named profile that this one is or began as: "lte", "native",
	// or "custom".
	Name string `json:"name"`
	// RTT is the round-trip time that the link adds; each direction gets half.
	RTT time.Duration `json:"rtt_ns"`
	// Down is the rate towards the device, Up the rate from it.
	Down Rate `json:"down_bits_per_second"`
	Up   Rate `json:"up_bits_per_second"`
	// Queue holds for each direction; zero is DefaultQueuePackets with DropTail.
	Queue Queue `json:"queue"`
	// Loss is the long-run share of packets lost in each direction, 0 … 1.
	Loss float64 `json:"loss"`
	// Burst is the mean length of a run of losses, in packets (Gilbert's
	// model); up to 1 means that losses are independent.
	Burst float64 `json:"burst,omitempty"`
	// Jitter is the half-width of a uniform random addition to the one-way
	// delay. Packets keep their order unless Reorder is set.
	Jitter  time.Duration `json:"jitter_ns"`
	Reorder bool          `json:"reorder,omitempty"`
	// Seed makes losses and jitter the same for the same order of packets.
	Seed uint64 `json:"seed"`
	// Extra adds to the RTT of single origins, by host name or address.
	Extra map[string]time.Duration `json:"extra_rtt_ns,omitempty"`
	// MTU is the largest IP packet in bytes, 0 for 1500.
	MTU int `json:"mtu,omitempty"`
	// DownTrace and UpTrace replace the rates by the capacity of a trace.
	DownTrace *Trace `json:"down_trace,omitempty"`
	UpTrace   *Trace `json:"up_trace,omitempty"`
	// Stall holds everything back once, as a machine that is busy does: to find out
	// what that does to a measurement.
	Stall *Stall `json:"stall,omitempty"`
	// Changes replace the profile while a trial runs, in order of time.
	Changes []Change `json:"changes,omitempty"`
}

// Change is a profile that begins to hold at an instant after the start.
type Change struct {
	At      time.Duration `json:"at_ns"`
	Profile Profile       `json:"profile"` // has no Changes of its own
}

// DefaultQueuePackets bounds a queue whose profile does not say: WebPageTest's
// agents leave netem's limit at its default of 1000 packets.
const DefaultQueuePackets = 1000

// DefaultMTU is Ethernet's.
const DefaultMTU = 1500

// Native reports whether the link changes nothing.
func (p Profile) Native() bool {
	return p.RTT == 0 && p.Down == Unlimited && p.Up == Unlimited && p.Loss == 0 && p.Jitter == 0 &&
		p.MTU == 0 && len(p.Extra) == 0 && p.DownTrace == nil && p.UpTrace == nil && p.Stall == nil && len(p.Changes) == 0
}

// Begin returns the profile as it is before its changes.
func (p Profile) Begin() Profile {
	p = p.clone()
	p.Changes = nil
	return p
}

// clone returns a copy that shares nothing mutable with p.
func (p Profile) clone() Profile {
	p.Extra = maps.Clone(p.Extra)
	p.Changes = append([]Change(nil), p.Changes...)
	return p
}

// named is a row of the table of profiles.
type named struct {
	name     string
	rtt      time.Duration
	down, up Rate
	from     string
}

// The numbers are WebPageTest's (www/settings/connectivity.ini.sample of
// WPO-Foundation/webpagetest; agents halve the RTT per direction). Chrome
// DevTools means the same 3gfast by "Fast 3G" (150 ms, 1.6 Mbit/s, 750 kbit/s)
// and 3gslow by "Slow 3G" (400 ms, 400 kbit/s) in core/sdk/NetworkManager.ts,
// but stretches them by factors of 3.75 and 5 because it throttles requests and
// not packets; a link needs no such factors.
func profiles() []named {
	const kbit, mbit = 1000, 1000 * 1000
	return []named{
		{"native", 0, Unlimited, Unlimited, "no emulation"},
		{"cable", 28 * time.Millisecond, 5 * mbit, 1 * mbit, "WebPageTest Cable"},
		{"dsl", 50 * time.Millisecond, 1500 * kbit, 384 * kbit, "WebPageTest DSL"},
		{"fios", 4 * time.Millisecond, 20 * mbit, 5 * mbit, "WebPageTest FIOS"},
		{"lte", 70 * time.Millisecond, 12 * mbit, 12 * mbit, "WebPageTest LTE"},
		{"4g", 170 * time.Millisecond, 9 * mbit, 9 * mbit, "WebPageTest 4G"},
		{"3gfast", 150 * time.Millisecond, 1600 * kbit, 768 * kbit, "WebPageTest 3GFast, DevTools Fast 3G"},
		{"3g", 300 * time.Millisecond, 1600 * kbit, 768 * kbit, "WebPageTest 3G"},
		{"3gslow", 400 * time.Millisecond, 400 * kbit, 400 * kbit, "WebPageTest 3GSlow, DevTools Slow 3G"},
		{"2g", 800 * time.Millisecond, 280 * kbit, 256 * kbit, "WebPageTest 2G"},
		{"edge", 840 * time.Millisecond, 240 * kbit, 200 * kbit, "WebPageTest Edge"},
		{"dial", 120 * time.Millisecond, 49 * kbit, 30 * kbit, "WebPageTest Dial"},
	}
}

// Names lists the named profiles, fastest first.
func Names() []string {
	var out []string
	for _, n := range profiles() {
		out = append(out, n.name)
	}
	return out
}
