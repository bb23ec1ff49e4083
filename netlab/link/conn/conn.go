// Package conn is the connection back end of the emulated link, for devices that
// have only an explicit proxy. In go the connections of a listener and a profile
// (package link); out come the same connections, whose bytes arrive when the
// profile says, and a report.
//
// It delays both directions by half the RTT each, paces them for all connections
// together by the profile's rates, one segment of each connection in turn, and
// delays a connection's first bytes by one RTT more, in place of TCP's handshake,
// which the kernel has completed by then.
//
// It sees no packets, so it emulates no loss, no drops of a queue and no MTU.
// TCP's slow start and acknowledgements run over the local path, so that a
// transfer starts faster than over a path with the same RTT. Connecting takes no
// time for the device, which waits for the first answer instead. Use package
// packet for results.
package conn

import (
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
	"eidetic/netlab/link/schedule"
)

const (
	// segment is how many bytes a connection sends in one piece: the payload of a
	// TCP segment on Ethernet with timestamps. header is the size of its IPv4 and
	// TCP headers, which a rate counts too.
	segment = 1448
	header  = 52
	// window bounds what one connection holds in each direction, as a socket
	// buffer would.
	window = 4 << 20
	// slipBound is the lateness above which a departure counts as a slip. Go timers
	// are usually late by less, also on a busy machine.
	slipBound = 2 * time.Millisecond
)

// Link delays and paces connections. Its methods may be called from any goroutine.
type Link struct {
	clock lab.Clock

	mu      sync.Mutex   // guards all below, and the state of lines and connections
	base    link.Profile // as it was set
	profile link.Profile // as it is now, after changes
	extra   map[netip.Addr]time.Duration
	down    *line
	up      *line
	open    map[*shaped]struct{}
	closed  bool
	slips   atomic.Int64
	late    schedule.Lateness
	timers  []*time.Timer
	done    sync.WaitGroup
}

// New returns a Link with a profile; end it with Close.
func New(p link.Profile, clock lab.Clock) *Link {
	l := &Link{clock: clock, open: map[*shaped]struct{}{}}
	l.down, l.up = newLine(l), newLine(l)
	l.Set(p)
	l.done.Go(l.down.run)
	l.done.Go(l.up.run)
	return l
}

// Set changes the profile at once, and restarts its changes, its random streams
// and the counters. Bytes in flight keep their time, and a connection that was
// accepted under a native profile stays untouched.
func (l *Link) Set(p link.Profile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.timers {
		t.Stop()
	}
	l.timers = nil
	l.base = p.Clone()
	l.apply(p)
	l.down.random, l.up.random = schedule.NewRandom(p.Seed, 1), schedule.NewRandom(p.Seed, 2)
	l.down.stats, l.up.stats = link.Direction{}, link.Direction{}
	l.slips.Store(0)
	l.late = schedule.Lateness{}
	if l.closed {
		return
	}
	for _, c := range p.Changes {
		l.timers = append(l.timers, time.AfterFunc(c.At, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.closed {
				changes := l.profile.Changes
				l.apply(c.Profile)
				l.profile.Changes = changes
			}
		}))
	}
}

// Restart does what Set does, with the profile that is set. It is for the start
// of a trial.
func (l *Link) Restart() {
	l.mu.Lock()
	p := l.base
	l.mu.Unlock()
	l.Set(p)
}

// apply makes p the current profile; the caller holds the lock.
func (l *Link) apply(p link.Profile) {
	l.profile = p.Clone()
	now := l.clock()
	l.down.pacer.Set(p.Down, p.DownTrace, now)
	l.up.pacer.Set(p.Up, p.UpTrace, now)
	l.down.wake()
	l.up.wake()
}

// SetExtra sets which addresses have an addition to the RTT: the profile's Extra
// resolved to the addresses that the device connects to.
func (l *Link) SetExtra(extra map[netip.Addr]time.Duration) {
	m := maps.Clone(extra)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extra = m
}

// Listener wraps inner so that its connections pass through the link.
func (l *Link) Listener(inner net.Listener) net.Listener { return &shapedListener{inner, l} }

// Delay returns how long a UDP query of up bytes and its answer of down bytes
// take on an idle link together. A name server waits for that long.
func (l *Link) Delay(up, down int) time.Duration {
	const headers = 28 // IPv4 and UDP
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.profile.Native() {
		return 0
	}
	l.count(l.up, up+headers)
	l.count(l.down, down+headers)
	return l.profile.RTT + l.profile.Up.Transmit(up+headers) + l.profile.Down.Transmit(down+headers)
}

// count adds a packet of n bytes to the statistics.
func (l *Link) count(ln *line, n int) {
	ln.stats.Packets++
	ln.stats.Bytes += int64(n)
}

// Abort closes every connection at once; bytes in flight are lost.
func (l *Link) Abort() {
	l.mu.Lock()
	open := make([]*shaped, 0, len(l.open))
	for c := range l.open {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Abort() // it always succeeds
	}
}

// Close aborts the connections and ends the link's goroutines.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	for _, t := range l.timers {
		t.Stop()
	}
	l.down.wake()
	l.up.wake()
	l.mu.Unlock()
	l.Abort()
	l.done.Wait()
	return nil
}

// Report says what the link did since Set.
func (l *Link) Report() link.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := link.Report{
		Backend: "conn", Profile: l.profile.Clone(), Bound: slipBound, Slips: l.slips.Load(),
		Down: l.down.stats.Clone(), Up: l.up.stats.Clone(), Late: l.late.Report(),
		Limits: limits(l.base),
	}
	if l.profile.Native() {
		r.Backend, r.Limits = "native", nil
		return r
	}
	return r
}

type shapedListener struct {
	net.Listener
	l *Link
}

func (s *shapedListener) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.l.profile.Native() || s.l.closed {
		return c, nil
	}
	return s.l.wrap(c), nil
}
