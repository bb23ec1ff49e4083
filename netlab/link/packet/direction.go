package packet

import (
	"container/heap"
	"math/rand/v2"
	"net/netip"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
	"eidetic/netlab/link/schedule"
)

// direction is one direction of a Link: loss, then a queue, then the
// bottleneck, then the delay. All times are on the schedule, independent of when
// a thread woke up.
type direction struct {
	down    bool
	bypass  []uint16 // TCP ports of the device whose connections bypass the link
	p       *link.Profile
	rate    link.Rate
	pacer   schedule.Pacer
	queue   queue
	flying  frames // have left the bottleneck and wait for the end of their delay
	extra   map[netip.Addr]time.Duration
	last    map[time.Duration]lab.Time // last due time, by extra delay
	loss    *rand.Rand
	jitter  *rand.Rand
	bad     bool // the bad state of Gilbert's model
	seq     uint64
	stats   link.Direction
	recycle func(*frame)
}

// set changes the profile; reseed restarts the random streams and the counters.
func (d *direction) set(p *link.Profile, now lab.Time, reseed bool) {
	rate, trace := p.Up, p.UpTrace
	stream := uint64(1)
	if d.down {
		rate, trace, stream = p.Down, p.DownTrace, 2
	}
	d.pacer.Set(rate, trace, now)
	if trace != nil {
		rate = trace.Rate() // a queue that is bounded in time uses it
	}
	d.p, d.rate = p, rate
	d.queue.limit = p.QueueAt(rate)
	if reseed {
		d.loss, d.jitter = schedule.NewRandom(p.Seed, 2*stream), schedule.NewRandom(p.Seed, 2*stream+1)
		d.bad = false
		d.stats = link.Direction{}
		d.last = map[time.Duration]lab.Time{}
	}
}

func (d *direction) drop(f *frame, reason string) {
	d.countDrops(reason, 1)
	d.recycle(f)
}

func (d *direction) countDrops(reason string, n int64) {
	if d.stats.Drops == nil {
		d.stats.Drops = map[string]int64{}
	}
	d.stats.Drops[reason] += n
}

// isLost draws for one packet. In the long run the share Loss is lost. With a
// Burst, losses come in runs of that mean length (Gilbert, 1960: in the bad state
// every packet is lost).
func (d *direction) isLost() bool {
	if d.p.Loss == 0 {
		return false
	}
	u := d.loss.Float64()
	if d.p.Burst <= 1 || d.p.Loss >= 1 {
		return u < d.p.Loss
	}
	leave := 1 / d.p.Burst
	enter := min(1, leave*d.p.Loss/(1-d.p.Loss))
	if d.bad {
		d.bad = u >= leave
	} else {
		d.bad = u < enter
	}
	return d.bad
}

// arrive takes a frame from the interface.
func (d *direction) arrive(f *frame) {
	d.seq++
	f.seq = d.seq
	if f.bypass {
		d.stats.Direct++
		f.due = f.arrived
		heap.Push(&d.flying, f)
		return
	}
	d.stats.Packets++
	d.stats.Bytes += int64(f.cost())
	if d.p.MTU > 0 {
		f.clampSegments(d.p.MTU)
	}
	switch {
	case !f.isNeighbourDiscovery() && d.isLost():
		d.drop(f, link.DropLoss)
	case d.p.MTU > 0 && f.cost() > d.p.MTU && !f.isMerged():
		d.drop(f, link.DropMTU)
	case d.queue.isFull(f.cost(), d.rate):
		d.drop(f, link.DropQueue)
	default:
		d.queue.push(f)
		d.stats.QueuePeak = max(d.stats.QueuePeak, int64(d.queue.bytes))
	}
}

// advance moves the frames whose transmission has begun by now from the queue
// to flying.
func (d *direction) advance(now lab.Time) {
	for d.queue.len() > 0 && !d.pacer.Blocked() {
		start := max(d.queue.peek().arrived, d.pacer.Free())
		if start > now {
			return
		}
		f := d.queue.take(start, func(f *frame) { d.drop(f, link.DropCoDel) })
		if f == nil {
			return
		}
		var extra time.Duration
		if len(d.extra) > 0 {
			extra = d.extra[f.origin(d.down)]
		}
		delay := (d.p.RTT + extra) / 2
		if d.p.Jitter > 0 {
			delay = max(0, delay+schedule.Jitter(d.jitter, d.p.Jitter))
		}
		f.due = d.pacer.Depart(max(start, f.arrived), f.cost()).Add(delay)
		if !d.p.Reorder {
			// Packets of one origin keep their order; those of a far origin do not
			// hold up those of a near one.
			f.due = max(f.due, d.last[extra])
			d.last[extra] = f.due
		}
		heap.Push(&d.flying, f)
	}
}

// nextDue returns when the next frame is due, or Never.
func (d *direction) nextDue() lab.Time {
	if len(d.flying) == 0 {
		return schedule.Never
	}
	return d.flying[0].due
}

// nextStart returns when the bottleneck starts to send the next frame of the
// queue, or Never.
func (d *direction) nextStart() lab.Time {
	if d.queue.len() == 0 || d.pacer.Blocked() {
		return schedule.Never
	}
	return max(d.queue.peek().arrived, d.pacer.Free())
}

// patience is how long arriving and queued frames can be left alone without
// missing a departure: three quarters of the least delay.
func (d *direction) patience() time.Duration {
	const most = 10 * time.Millisecond // the kernel's buffers hold what comes in that time
	return max(0, min(most, (d.p.RTT/2-d.p.Jitter)*3/4))
}

// takeDue appends the frames that are due by now to out, up to its capacity.
func (d *direction) takeDue(now lab.Time, out []*frame) []*frame {
	for len(d.flying) > 0 && d.flying[0].due <= now && len(out) < cap(out) {
		out = append(out, heap.Pop(&d.flying).(*frame))
	}
	return out
}
