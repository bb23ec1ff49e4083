package link

import (
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"eidetic/internal/lab"
)

const (
	// segment is what a connection sends in one piece: a TCP segment's payload
	// on Ethernet with timestamps, and header is what it costs besides (IPv4
	// and TCP headers, counted by Rate).
	segment = 1448
	header  = 52
	// window bounds what one connection holds in each direction, as a socket
	// buffer would.
	window = 4 << 20
	// connBound is beyond which a departure counts as a slip: a Go timer on a
	// busy machine is late by less than this.
	connBound = 2 * time.Millisecond
)

// Conn is the connection-level back end. It delays what passes through the
// net.Conns of its listeners by half the RTT each way, paces both directions
// of all of them together by the profile's rates, one segment of each
// connection in turn, and lets a connection's first bytes come one RTT later,
// in place of TCP's handshake, which the kernel has done by then.
//
// What it cannot do: packets are not seen, so there is no loss, no drop from a
// queue and no MTU; TCP's own slow start and acknowledgements run over the
// local path, so a transfer is faster at its start than through a path with
// the same RTT; connecting seems free to the device, which pays when it waits
// for the first answer. Use the packet back end for results, and this one where
// a device has nothing but an explicit proxy.
type Conn struct {
	clock lab.Clock

	mu      sync.Mutex // guards all below, and every line's state
	base    Profile    // as it was set
	profile Profile    // as it is now, after changes
	extra   map[netip.Addr]time.Duration
	down    *line
	up      *line
	open    map[*shaped]struct{}
	closed  bool
	slips   atomic.Int64
	late    chain
	timers  []*time.Timer
	done    sync.WaitGroup
}

// NewConn makes the back end with a profile; end it with Close.
func NewConn(p Profile, clock lab.Clock) *Conn {
	l := &Conn{clock: clock, open: map[*shaped]struct{}{}}
	l.down, l.up = newLine(l), newLine(l)
	l.Set(p)
	l.done.Go(l.down.run)
	l.done.Go(l.up.run)
	return l
}

// Set changes the profile at once, and its Changes as their times come. What
// is already on the way keeps its time, and a connection that was accepted
// under a native profile stays native. Counters begin anew.
func (l *Conn) Set(p Profile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.timers {
		t.Stop()
	}
	l.timers = nil
	l.base = p.clone()
	l.apply(p)
	l.down.random, l.up.random = newRandom(p.Seed, 1), newRandom(p.Seed, 2)
	l.down.stats, l.up.stats = Direction{}, Direction{}
	l.slips.Store(0)
	l.late = chain{}
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

// Restart begins the times of the profile's changes, the random streams and
// the counters anew, at the start of a trial.
func (l *Conn) Restart() {
	l.mu.Lock()
	p := l.base
	l.mu.Unlock()
	l.Set(p)
}

// apply sets what paces and delays; the caller holds the lock.
func (l *Conn) apply(p Profile) {
	l.profile = p.clone()
	now := l.clock()
	l.down.pacer.setup(p.Down, p.DownTrace, now)
	l.up.pacer.setup(p.Up, p.UpTrace, now)
	l.down.wake()
	l.up.wake()
}

// SetExtra tells which addresses have an RTT of their own to add: the
// profile's Extra resolved to the addresses that the device connects to.
func (l *Conn) SetExtra(extra map[netip.Addr]time.Duration) {
	m := maps.Clone(extra)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extra = m
}

// Listener wraps inner so that its connections pass through the link.
func (l *Conn) Listener(inner net.Listener) net.Listener { return &shapedListener{inner, l} }

// Delay returns the time that a question of up bytes and its answer of down
// bytes need on an idle link, both ways; for a name server's UDP.
func (l *Conn) Delay(up, down int) time.Duration {
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

func (l *Conn) count(ln *line, n int) {
	ln.stats.Packets++
	ln.stats.Bytes += int64(n)
}

// Abort closes every connection at once, without what is on the way.
func (l *Conn) Abort() {
	l.mu.Lock()
	open := make([]*shaped, 0, len(l.open))
	for c := range l.open {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Abort() // gone either way
	}
}

// Close aborts the connections and ends the link's goroutines.
func (l *Conn) Close() error {
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

// Report tells what the link did since Set.
func (l *Conn) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Report{
		Backend: "conn", Profile: l.profile.clone(), Bound: connBound, Slips: l.slips.Load(),
		Down: l.down.stats.clone(), Up: l.up.stats.clone(), Late: l.late.report(),
		Limits: limits("conn", l.base),
	}
	if l.profile.Native() {
		r.Backend, r.Limits = "native", nil
		return r
	}
	return r
}

func (d Direction) clone() Direction {
	d.Drops = maps.Clone(d.Drops)
	d.Errors = d.Errors.clone()
	return d
}

type shapedListener struct {
	net.Listener
	l *Conn
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
