package wire

import (
	"maps"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// On a slow link the order in which streams are sent decides what a page shows first. The
// order follows from what the device asked for (RFC 9218) and never from which handler
// happened to run first: equal requests are sent in equal order. While the link is the
// bottleneck, little is committed ahead of time, so that urgent bytes do not queue behind
// others.

const (
	// minBatch bytes are committed at a time on a link that is the bottleneck, maxBuffered on
	// a link that takes everything at once.
	minBatch = 16 << 10
	// turnSize is how many bytes each incremental stream sends in its turn on a slow link.
	turnSize = 4 << 10
	// slowWrite tells the two links apart: a write that took this long had to wait.
	slowWrite = time.Millisecond
)

// priority is that of RFC 9218, 4.
type priority struct {
	urgency     uint8 // 0 is served first, 7 last
	incremental bool  // useful in pieces: takes turns with equally urgent streams
}

// defaultPriority holds without a signal.
var defaultPriority = priority{urgency: 3}

// parsePriority reads a Priority field: a dictionary of RFC 8941. Unknown keys and values
// out of range are skipped (RFC 9218, 4).
func parsePriority(field string) priority {
	p := defaultPriority
	for member := range strings.SplitSeq(field, ",") {
		member, _, _ = strings.Cut(strings.Trim(member, " \t"), ";")
		key, value, given := strings.Cut(member, "=")
		switch key {
		case "u":
			if len(value) == 1 && '0' <= value[0] && value[0] <= '7' {
				p.urgency = value[0] - '0'
			}
		case "i":
			if !given || value == "?1" {
				p.incremental = true
			} else if value == "?0" {
				p.incremental = false
			}
		}
	}
	return p
}

// schedule is the order in which the bodies of a connection are sent. Callers of its methods
// hold the connection's lock.
type schedule struct {
	waiting   []*stream // that have something pending
	turn      uint64
	slow      bool // the link is known to be the bottleneck
	batch     int  // how much is committed at a time
	congested bool // the link was full while more than a batch was pending
	holding   bool // a batch is held back to find out whether the link is full
	// unhindered counts the batches since the link was last full.
	unhindered int
	// early holds priorities that were received before their streams.
	early map[uint32]priority
}

// priority returns that of a new stream.
func (q *schedule) priority(id uint32, header http.Header) priority {
	if p, ok := q.early[id]; ok {
		delete(q.early, id)
		return p
	}
	if field := header["Priority"]; len(field) > 0 {
		return parsePriority(strings.Join(field, ","))
	}
	return defaultPriority
}

func (q *schedule) add(s *stream) {
	if len(s.pending) > 0 {
		q.waiting = append(q.waiting, s)
	}
}

// remove takes out a stream that has failed.
func (q *schedule) remove(s *stream) {
	for i, other := range q.waiting {
		if other == s {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			s.pending, s.last = nil, false
			s.taken.Signal()
			return
		}
	}
}

// next returns the index in waiting of the stream that is served next, or -1.
func (q *schedule) next() int {
	best := -1
	for i, s := range q.waiting {
		if s.room > 0 && (best < 0 || s.before(q.waiting[best])) {
			best = i
		}
	}
	return best
}

// before tells which of two streams is served first: by urgency, then streams that are not
// incremental (one after the other) before those that are (in turns).
func (s *stream) before(o *stream) bool {
	switch {
	case s.priority.urgency != o.priority.urgency:
		return s.priority.urgency < o.priority.urgency
	case s.priority.incremental != o.priority.incremental:
		return o.priority.incremental
	case s.priority.incremental && s.turn != o.turn:
		return s.turn < o.turn
	}
	return s.id < o.id
}

// learn notes whether the link took a complete batch at once.
func (q *schedule) learn(waited bool) {
	if q.slow {
		return
	}
	if q.congested = waited; waited {
		q.batch, q.unhindered = minBatch, 0
		return
	}
	// A device on a slow link lets two batches be sent without an acknowledgement.
	if q.unhindered++; q.unhindered > 2 {
		q.batch = min(2*q.batch, maxBuffered)
	}
}

// priorityUpdate changes the priority of a stream (RFC 9218, 7.1).
func (c *conn2) priorityUpdate(f *http2.PriorityUpdateFrame) error {
	id := f.PrioritizedStreamID
	if id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	p := parsePriority(f.Priority)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s := c.streams[id]; {
	case s != nil:
		s.priority = p
	case id > c.lastID:
		if c.schedule.early == nil {
			c.schedule.early = map[uint32]priority{}
		}
		early := c.schedule.early
		if _, ok := early[id]; !ok && len(early) >= maxStreams {
			maps.DeleteFunc(early, func(id uint32, _ priority) bool { return id <= c.lastID }) // never begun
			if len(early) >= maxStreams {
				return nil // dropping a signal is allowed; using more memory is not
			}
		}
		early[id] = p
	}
	return nil
}

// ready tells whether there is something to be sent.
func (c *conn2) ready() bool {
	return len(c.out) > 0 || c.sendRoom > 0 && c.schedule.next() >= 0
}

// exceeds tells whether more is pending than goes into a batch.
func (q *schedule) exceeds(used int) bool {
	for _, s := range q.waiting {
		if used += len(s.pending); used >= q.batch {
			return true
		}
	}
	return false
}

// fill moves what is served next to the buffer, as much as fits.
func (c *conn2) fill() {
	q := &c.schedule
	for len(c.out) < q.batch && c.sendRoom > 0 {
		i := q.next()
		if i < 0 {
			return
		}
		s := q.waiting[i]
		n := min(int64(len(s.pending)), int64(c.maxFrame), s.room, c.sendRoom)
		if q.congested && s.priority.incremental {
			n = min(n, turnSize)
		}
		s.room -= n
		c.sendRoom -= n
		q.turn++
		s.turn = q.turn
		part := s.pending[:n]
		s.pending = s.pending[n:]
		flags := http2.Flags(0)
		if len(s.pending) == 0 {
			if s.last {
				flags = http2.FlagDataEndStream
			}
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			s.taken.Signal()
		}
		c.ending = frameRef{s.id, len(c.out)}
		c.appendFrame(http2.FrameData, flags, s.id, part)
	}
}

// flush sends what is in the buffer, unless another goroutine is sending already. It releases
// the lock while it sends. What is added meanwhile is sent by a goroutine of its own: the
// caller has an answer to finish.
func (c *conn2) flush() {
	if c.sending || !c.sendOnce() {
		return
	}
	if c.err == nil && c.ready() {
		c.flushSoon()
	}
}

// flushSoon flushes without making the caller wait. The reader must go on: with a device that
// sends before it reads, both sides would wait for each other.
func (c *conn2) flushSoon() {
	if !c.sending && c.ready() {
		c.sending = true // nobody else starts
		c.done.Go(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sending = false
			c.pump()
			c.idle.Broadcast() // though nothing may have been sent
		})
	}
}

// pump sends until nothing is left that can be sent, unless another goroutine does.
func (c *conn2) pump() {
	for !c.sending && c.sendOnce() {
	}
}

// sendOnce sends a batch and tells whether there was any. The contents of a full batch are not
// chosen before the link can take them.
func (c *conn2) sendOnce() bool {
	if c.err != nil || !c.ready() {
		return false
	}
	q := &c.schedule
	c.sending = true
	full, waited := q.exceeds(len(c.out)), false
	var err error
	if full && c.drainer != nil {
		q.holding = true
		c.mu.Unlock()
		waited, err = c.drainer.Drained()
		c.mu.Lock()
		q.holding = false
	}
	c.fill()
	b := c.out
	c.out, c.ending = c.spare[:0], frameRef{}
	c.mu.Unlock()
	start := time.Now()
	if err == nil {
		err = c.send(b)
	}
	waited = waited || time.Since(start) > slowWrite
	c.mu.Lock()
	c.sending = false
	if full {
		q.learn(waited)
	}
	if c.spare = b[:0]; cap(b) > 4*maxBuffered {
		c.spare = nil
	}
	if err != nil {
		c.fail(err)
	}
	c.idle.Broadcast()
	return true
}
