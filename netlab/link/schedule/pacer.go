// Package schedule computes when packets leave an emulated link. It is shared by
// the link's back ends, so that both pace, jitter and count lateness alike: in go
// a rate or a trace and the packets' arrivals and sizes, out come departures on
// an absolute schedule and a bound of what late departures can have delayed. It
// reads no clock.
package schedule

import (
	"math"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
)

// Never is the departure of a packet that waits for an outage to end.
const Never = lab.Time(math.MaxInt64)

// Pacer is one direction's bottleneck: it computes when a packet's last bit has
// left. Its schedule is absolute, so that errors of waking up do not add up. The
// zero value is an unlimited one.
type Pacer struct {
	rate  link.Rate
	trace *link.Trace
	free  lab.Time // the bottleneck is busy until then

	// Of a trace: the start of its first period, the number of the period, the
	// next opportunity, and what is left of the opportunity before, which leaves
	// at leaving.
	began   lab.Time
	round   int64
	next    int
	left    int
	leaving lab.Time
}

// Set changes the capacity from now on. Departures that were returned before
// stay as they are, and a trace that does not change goes on.
func (p *Pacer) Set(rate link.Rate, trace *link.Trace, now lab.Time) {
	if trace != p.trace {
		p.began, p.round, p.next, p.left = now, 0, 0, 0
	}
	p.rate, p.trace = rate, trace
	p.free = max(p.free, now)
}

// Blocked reports an outage.
func (p *Pacer) Blocked() bool { return p.rate == link.Blocked && p.trace == nil }

// Limited reports whether the capacity has a rate or follows a trace.
func (p *Pacer) Limited() bool { return p.rate > 0 || p.trace != nil }

// Free returns until when the bottleneck is busy with what has departed.
func (p *Pacer) Free() lab.Time { return p.free }

// Depart returns when a packet of n bytes that arrived at the given time has
// left, or Never.
func (p *Pacer) Depart(at lab.Time, n int) lab.Time {
	switch {
	case p.trace != nil:
		return p.departTrace(at, n)
	case p.rate == link.Blocked:
		return Never
	case p.rate == link.Unlimited:
		return max(at, p.free)
	}
	p.free = max(at, p.free).Add(p.rate.Transmit(n))
	return p.free
}

// departTrace uses opportunities as mahimahi does: each carries TracePacket
// bytes, the next packet of the queue takes what a packet leaves over, and an
// opportunity for which no packet waits is lost.
func (p *Pacer) departTrace(at lab.Time, n int) lab.Time {
	if p.left > 0 && at > p.leaving {
		p.left = 0 // the opportunity has passed
	}
	if p.left >= n {
		p.left -= n
		return p.leaving
	}
	n -= p.left
	p.left = 0
	// Whole periods are skipped at once, so that a link that was idle for an hour
	// costs no loop over it.
	if idle := int64(at.Sub(p.began)) / int64(p.trace.Period); idle > p.round {
		p.round, p.next = idle, 0
		if at.Sub(p.began)%p.trace.Period == 0 && idle > 0 {
			p.round-- // the last line of a period is the instant at which the next one starts
		}
	}
	for {
		if p.next == len(p.trace.At) {
			p.round, p.next = p.round+1, 0
		}
		t := p.began.Add(time.Duration(p.round)*p.trace.Period + p.trace.At[p.next])
		p.next++
		if t < at {
			continue
		}
		if n -= link.TracePacket; n <= 0 {
			p.leaving, p.left = t, -n
			p.free = t
			return t
		}
	}
}
