package link

import (
	"math"
	"time"

	"eidetic/internal/lab"
)

// never is the departure of what waits for an outage to end.
const never = lab.Time(math.MaxInt64)

// pacer is one direction's bottleneck: it says when a packet's last bit has
// left, on an absolute schedule, so that errors of waking up do not add up.
type pacer struct {
	rate  Rate
	trace *Trace
	free  lab.Time // the bottleneck is busy until then

	// of a trace: the start of its first period, the next opportunity, and
	// what is left of the one before.
	began   lab.Time
	round   int64
	next    int
	left    int
	leaving lab.Time
}

// setup changes the capacity from now on. What was given a departure keeps it.
func (p *pacer) setup(rate Rate, trace *Trace, now lab.Time) {
	if trace != p.trace {
		p.began, p.round, p.next, p.left = now, 0, 0, 0
	}
	p.rate, p.trace = rate, trace
	p.free = max(p.free, now)
}

// blocked reports an outage.
func (p *pacer) blocked() bool { return p.rate == Blocked && p.trace == nil }

// depart returns when a packet of n bytes that came at the given time has
// left, or never.
func (p *pacer) depart(at lab.Time, n int) lab.Time {
	switch {
	case p.trace != nil:
		return p.departTrace(at, n)
	case p.rate == Blocked:
		return never
	case p.rate == Unlimited:
		return max(at, p.free)
	}
	p.free = max(at, p.free).Add(p.rate.Transmit(n))
	return p.free
}

// departTrace spends opportunities as mahimahi does: each carries TracePacket
// bytes, what a packet leaves over is for the next one of the queue, and what
// no packet waits for is lost.
func (p *pacer) departTrace(at lab.Time, n int) lab.Time {
	if p.left > 0 && at > p.leaving {
		p.left = 0 // the opportunity went by
	}
	if p.left >= n {
		p.left -= n
		return p.leaving
	}
	n -= p.left
	p.left = 0
	// Skip whole periods at once: a link that was idle for an hour is not
	// walked through.
	if idle := int64(at.Sub(p.began)) / int64(p.trace.Period); idle > p.round {
		p.round, p.next = idle, 0
		if at.Sub(p.began)%p.trace.Period == 0 && idle > 0 {
			p.round-- // the last line of a period is the instant of the next one's start
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
		if n -= TracePacket; n <= 0 {
			p.leaving, p.left = t, -n
			p.free = t
			return t
		}
	}
}
