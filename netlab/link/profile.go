// Package link describes the emulated access network between the device and
// everything else: a [Profile] (round-trip time, rates, queue, loss, jitter, a
// seed, or a trace) is parsed from text, and a [Report] says what a link did.
//
// Two back ends emulate a profile. Package packet forwards Ethernet frames
// between two interfaces and can do all of a profile. Package conn delays and
// paces net.Conns, for devices that have only an explicit proxy; its Cannot
// lists what it leaves out. Every Report names its back end. Package schedule
// has the arithmetic that both share, and package linktest the test suite that
// both pass.
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

// Transmit returns how long the link needs to send n bytes; it is 0 for an
// unlimited and for a blocked link.
func (r Rate) Transmit(n int) time.Duration {
	if r <= 0 {
		return 0
	}
	bits := int64(n) * 8
	// Whole seconds are computed apart, so that no product overflows for any n.
	return time.Duration(bits/int64(r))*time.Second + time.Duration(bits%int64(r)*int64(time.Second)/int64(r))
}

// Discipline says which packets a queue drops.
type Discipline string

const (
	// DropTail drops the packet that does not fit. The default.
	DropTail Discipline = "droptail"
	// CoDel drops at the head when packets have waited too long (RFC 8289,
	// target 5 ms, interval 100 ms).
	CoDel Discipline = "codel"
)

// Queue bounds what waits in front of each direction's bottleneck. Of several
// bounds the tightest applies.
type Queue struct {
	Packets    int           `json:"packets,omitempty"`
	Bytes      int           `json:"bytes,omitempty"`
	Time       time.Duration `json:"time_ns,omitempty"` // of transmission at the direction's rate
	Discipline Discipline    `json:"discipline,omitempty"`
}

// Profile describes a link. The zero Profile delays and loses nothing.
type Profile struct {
	// Name is the named profile that this one is or began as: "lte", "native",
	// or "custom".
	Name string `json:"name"`
	// RTT is the round-trip time that the link adds; each direction gets half.
	RTT time.Duration `json:"rtt_ns"`
	// Down is the rate towards the device, Up the rate from it.
	Down Rate `json:"down_bits_per_second"`
	Up   Rate `json:"up_bits_per_second"`
	// Queue applies to each direction; zero is that of QueueAt with DropTail.
	Queue Queue `json:"queue"`
	// Loss is the long-run share of packets lost in each direction, 0 … 1.
	Loss float64 `json:"loss"`
	// Burst is the mean length of a run of losses, in packets (Gilbert's
	// model). With a Burst of at most 1, losses are independent.
	Burst float64 `json:"burst,omitempty"`
	// Jitter is the half-width of a uniform random addition to the one-way
	// delay. Packets keep their order unless Reorder is set.
	Jitter  time.Duration `json:"jitter_ns"`
	Reorder bool          `json:"reorder,omitempty"`
	// Seed determines losses and jitter: the same order of packets gets the same.
	Seed uint64 `json:"seed"`
	// Extra adds to the RTT of single origins, by host name or address.
	Extra map[string]time.Duration `json:"extra_rtt_ns,omitempty"`
	// MTU is the largest IP packet in bytes, 0 for 1500.
	MTU int `json:"mtu,omitempty"`
	// DownTrace and UpTrace replace the rates by the capacity of a trace.
	DownTrace *Trace `json:"down_trace,omitempty"`
	UpTrace   *Trace `json:"up_trace,omitempty"`
	// Stall holds all packets back once, as a busy machine does. It is for
	// measuring what such a stall does to a result.
	Stall *Stall `json:"stall,omitempty"`
	// Changes replace the profile while a trial runs, in order of time.
	Changes []Change `json:"changes,omitempty"`
}

// Change is a profile that applies from an instant after the start.
type Change struct {
	At      time.Duration `json:"at_ns"`
	Profile Profile       `json:"profile"` // has no Changes of its own
}

// DefaultQueuePackets bounds a queue whose profile has no bound: WebPageTest's
// agents leave netem's limit at its default of 1000 packets. On a link that holds
// more than that on its way, the queue holds twice as much as the way: a sender that doubles
// its window each round trip would lose packets otherwise, though the profile has no loss.
const DefaultQueuePackets = 1000

// mostQueuePackets bounds that: 60 MB.
const mostQueuePackets = 40_000

// Underway is how many full packets are on their way at once at a rate, both ways together.
func (p Profile) Underway(rate Rate) int {
	return int(min(float64(max(rate, 0))/8*p.RTT.Seconds()/DefaultMTU, mostQueuePackets))
}

// QueueAt is the queue of a direction with a rate.
func (p Profile) QueueAt(rate Rate) Queue {
	q := p.Queue
	if q.Packets == 0 && q.Bytes == 0 && q.Time == 0 {
		if q.Packets = DefaultQueuePackets; p.Underway(rate) > DefaultQueuePackets {
			q.Packets = min(2*p.Underway(rate), mostQueuePackets)
		}
	}
	return q
}

// DefaultMTU is Ethernet's.
const DefaultMTU = 1500

// Native reports whether the link changes nothing.
func (p Profile) Native() bool {
	return p.RTT == 0 && p.Down == Unlimited && p.Up == Unlimited && p.Loss == 0 && p.Jitter == 0 &&
		p.MTU == 0 && len(p.Extra) == 0 && p.DownTrace == nil && p.UpTrace == nil && p.Stall == nil && len(p.Changes) == 0
}

// Begin returns the profile as it is before its changes.
func (p Profile) Begin() Profile {
	p = p.Clone()
	p.Changes = nil
	return p
}

// Clone returns a copy that shares nothing mutable with p.
func (p Profile) Clone() Profile {
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
// DevTools has the same numbers for "Fast 3G" (150 ms, 1.6 Mbit/s, 750 kbit/s)
// and "Slow 3G" (400 ms, 400 kbit/s) in core/sdk/NetworkManager.ts, but
// multiplies the delays by 3.75 and 5 because it throttles requests and not
// packets; a link needs no such factors.
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
