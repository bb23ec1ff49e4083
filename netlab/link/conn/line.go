package conn

import (
	"math/rand/v2"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
	"eidetic/netlab/link/schedule"
)

// line is one direction of a Link: the bottleneck that all connections share.
// The link's lock guards its state.
type line struct {
	l      *Link
	pacer  schedule.Pacer
	random *rand.Rand
	stats  link.Direction
	queued int64
	// active holds the halves that have pieces to send, each once, in the order of
	// their turns.
	active []*half
	woken  chan struct{}
}

func newLine(l *Link) *line {
	return &line{l: l, woken: make(chan struct{}, 1), random: schedule.NewRandom(0, 0)}
}

// wake makes run check the line again.
func (n *line) wake() {
	select {
	case n.woken <- struct{}{}:
	default:
	}
}

// pieceSize returns how many bytes of a connection pass before the next one has
// its turn.
func (n *line) pieceSize() int {
	if n.pacer.Limited() {
		return segment
	}
	return 16 * segment
}

// enqueue takes data from a connection. The line keeps the slice.
func (n *line) enqueue(h *half, data []byte, at lab.Time) {
	size := n.pieceSize()
	if len(h.pending) == 0 {
		n.active = append(n.active, h)
	}
	for len(data) > 0 {
		k := min(size, len(data))
		h.pending = append(h.pending, piece{data: data[:k:k], at: at})
		data = data[k:]
	}
	n.wake()
}

// enqueueEnd takes the end of a connection's stream, which uses no capacity.
func (n *line) enqueueEnd(h *half, err error, at lab.Time) {
	if len(h.pending) == 0 {
		n.active = append(n.active, h)
	}
	h.pending = append(h.pending, piece{end: err, at: at})
	n.wake()
}

// run sends one piece of each connection in turn, whenever the bottleneck is free.
func (n *line) run() {
	l := n.l
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return
		}
		wait := time.Duration(0)
		for len(n.active) > 0 && !n.pacer.Blocked() {
			if wait = n.pacer.Free().Sub(l.clock()); wait > 0 {
				break
			}
			n.send()
		}
		l.mu.Unlock()
		if wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-n.woken: // the profile may have changed
			}
			continue
		}
		<-n.woken
	}
}

// send gives one piece its departure.
func (n *line) send() {
	h := n.active[0]
	n.active = n.active[1:]
	p := h.pending[0]
	h.pending = h.pending[1:]
	if len(h.pending) > 0 {
		n.active = append(n.active, h)
	}
	at := p.at
	p.came = p.at
	if len(p.data) > 0 {
		packets := (len(p.data) + segment - 1) / segment
		at = n.pacer.Depart(p.at, len(p.data)+packets*header)
		n.stats.Packets += int64(packets)
		n.stats.Bytes += int64(len(p.data) + packets*header)
	} else {
		at = max(at, n.pacer.Free())
	}
	pr := &n.l.profile
	delay := max(0, pr.RTT/2+h.extra/2+schedule.Jitter(n.random, pr.Jitter))
	p.at = max(at.Add(delay), h.earliest)
	h.earliest = p.at // a stream keeps its order
	h.flying = append(h.flying, p)
	h.notify()
}

// piece is up to pieceSize bytes of a stream, or the end of a stream.
type piece struct {
	data []byte
	end  error    // why the stream ends; io.EOF for an orderly end
	at   lab.Time // when the piece arrived; after send, when it is due
	came lab.Time // when the piece arrived
}

// half is one direction of a connection. The link's lock guards its state.
type half struct {
	line     *line
	extra    time.Duration
	earliest lab.Time
	pending  []piece // wait for the bottleneck
	flying   []piece // have left the bottleneck
	held     int     // bytes in both and in the reader's buffer
	ready    chan struct{}
	room     chan struct{} // signalled when held shrinks
}

func newHalf(n *line) *half {
	return &half{line: n, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// notify wakes deliver.
func (h *half) notify() {
	select {
	case h.ready <- struct{}{}:
	default:
	}
}

// hold counts bytes that the half holds; release counts them out.
func (h *half) hold(n int) {
	h.held += n
	h.line.queued += int64(n)
	h.line.stats.QueuePeak = max(h.line.stats.QueuePeak, h.line.queued)
}

func (h *half) release(n int) {
	h.held -= n
	h.line.queued -= int64(n)
	select {
	case h.room <- struct{}{}:
	default:
	}
}

// deliver passes each piece to sink when it is due, until sink returns false or
// dead is closed.
func (h *half) deliver(dead <-chan struct{}, sink func(piece) bool) {
	l := h.line.l
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.mu.Lock()
		wait, have := time.Duration(0), len(h.flying) > 0
		var p piece
		if have {
			p = h.flying[0]
			now := l.clock()
			if wait = p.at.Sub(now); wait <= 0 {
				h.flying = h.flying[1:]
				h.line.stats.Errors.Add(-wait)
				l.late.Add(h.line == l.down, p.came, now, -wait)
				if -wait > slipBound {
					l.slips.Add(1)
				}
			}
		}
		l.mu.Unlock()
		switch {
		case !have:
			select {
			case <-h.ready:
			case <-dead:
				return
			}
		case wait > 0:
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-dead:
				return
			}
		default:
			if !sink(p) {
				return
			}
		}
	}
}
