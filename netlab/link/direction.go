package link

import (
	"container/heap"
	"math/rand/v2"
	"net/netip"
	"time"

	"eidetic/internal/lab"
)

// Reasons of drops, as they stand in Direction.Drops.
const (
	dropLoss  = "loss"   // the profile's loss
	dropQueue = "queue"  // no room
	dropCoDel = "codel"  // stood too long
	dropMTU   = "mtu"    // larger than the profile's MTU
	dropSend  = "send"   // the kernel took no more
	dropIn    = "kernel" // the kernel dropped it before we could read it
)

// way is one direction of a Packet link: loss, then a queue, then the
// bottleneck, then the delay. All times are on the schedule, not on when a
// thread woke up.
type way struct {
	down    bool
	direct  []uint16 // the device's ports that pass the link by
	p       *Profile
	rate    Rate
	pacer   pacer
	queue   queue
	line    frames
	extra   map[netip.Addr]time.Duration
	last    map[time.Duration]lab.Time // last due time, by extra delay
	loss    *rand.Rand
	jitter  *rand.Rand
	bad     bool // Gilbert's bad state
	seq     uint64
	stats   Direction
	recycle func(*frame)
}

// set changes the profile; reseed begins the random streams anew.
func (w *way) set(p *Profile, now lab.Time, reseed bool) {
	rate, trace := p.Up, p.UpTrace
	stream := uint64(1)
	if w.down {
		rate, trace, stream = p.Down, p.DownTrace, 2
	}
	w.pacer.setup(rate, trace, now)
	if trace != nil {
		rate = trace.Rate() // what a queue bounded in time counts with
	}
	w.p, w.rate = p, rate
	w.queue.limit = p.Queue
	if reseed {
		w.loss, w.jitter = newRandom(p.Seed, 2*stream), newRandom(p.Seed, 2*stream+1)
		w.bad = false
		w.stats = Direction{}
		w.last = map[time.Duration]lab.Time{}
	}
}

func (w *way) drop(f *frame, reason string) {
	w.count(reason, 1)
	w.recycle(f)
}

func (w *way) count(reason string, n int64) {
	if w.stats.Drops == nil {
		w.stats.Drops = map[string]int64{}
	}
	w.stats.Drops[reason] += n
}

// lose draws for one packet. The chance is Loss in the long run; with Burst it
// comes in runs of that mean length (Gilbert, 1960: in the bad state all is
// lost).
func (w *way) lose() bool {
	if w.p.Loss == 0 {
		return false
	}
	u := w.loss.Float64()
	if w.p.Burst <= 1 || w.p.Loss >= 1 {
		return u < w.p.Loss
	}
	leave := 1 / w.p.Burst
	enter := min(1, leave*w.p.Loss/(1-w.p.Loss))
	if w.bad {
		w.bad = u >= leave
	} else {
		w.bad = u < enter
	}
	return w.bad
}

// arrive takes a frame.
func (w *way) arrive(f *frame) {
	w.seq++
	f.seq = w.seq
	if f.direct {
		w.stats.Direct++
		f.due = f.arrived
		heap.Push(&w.line, f)
		return
	}
	w.stats.Packets++
	w.stats.Bytes += int64(f.cost())
	switch {
	case !f.local() && w.lose():
		w.drop(f, dropLoss)
	case w.p.MTU > 0 && f.cost() > w.p.MTU && !f.merged():
		w.drop(f, dropMTU)
	case w.queue.full(f.cost(), w.rate):
		w.drop(f, dropQueue)
	default:
		w.queue.push(f)
		w.stats.QueuePeak = max(w.stats.QueuePeak, int64(w.queue.bytes))
	}
}

// advance moves what the bottleneck has begun to send by now to the delay line.
func (w *way) advance(now lab.Time) {
	for w.queue.len() > 0 && !w.pacer.blocked() {
		start := max(w.queue.peek().arrived, w.pacer.free)
		if start > now {
			return
		}
		f := w.queue.take(start, func(f *frame) { w.drop(f, dropCoDel) })
		if f == nil {
			return
		}
		var extra time.Duration
		if len(w.extra) > 0 {
			extra = w.extra[f.origin(w.down)]
		}
		delay := (w.p.RTT + extra) / 2
		if w.p.Jitter > 0 {
			delay = max(0, delay+spread(w.jitter, w.p.Jitter))
		}
		f.due = w.pacer.depart(max(start, f.arrived), f.cost()).Add(delay)
		if !w.p.Reorder {
			// Packets to one origin keep their order; a far origin does not
			// hold up a near one.
			f.due = max(f.due, w.last[extra])
			w.last[extra] = f.due
		}
		heap.Push(&w.line, f)
	}
}

// departure returns when the next frame is due, or never.
func (w *way) departure() lab.Time {
	if len(w.line) == 0 {
		return never
	}
	return w.line[0].due
}

// begin returns when the bottleneck begins with the next of the queue, or never.
func (w *way) begin() lab.Time {
	if w.queue.len() == 0 || w.pacer.blocked() {
		return never
	}
	return max(w.queue.peek().arrived, w.pacer.free)
}

// patience is how long what comes, and what waits, may be left alone without
// missing its departure: most of the least delay.
func (w *way) patience() time.Duration {
	const most = 10 * time.Millisecond // the kernel's buffers hold more
	return max(0, min(most, (w.p.RTT/2-w.p.Jitter)*3/4))
}

// due appends the frames whose time has come to out, up to its capacity.
func (w *way) due(now lab.Time, out []*frame) []*frame {
	for len(w.line) > 0 && w.line[0].due <= now && len(out) < cap(out) {
		out = append(out, heap.Pop(&w.line).(*frame))
	}
	return out
}
