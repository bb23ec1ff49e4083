package link

import (
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// packetBound is beyond which a departure counts as a slip.
const packetBound = time.Millisecond

// PacketConfig of a Packet link. All fields are required.
type PacketConfig struct {
	// Device is the interface on the device's side (a port, or the inner end
	// of its veth pair), Lab the inner end of the pair whose other end has the
	// gateway's address. Both are in this network namespace, up, and without
	// addresses.
	Device, Lab string
	Profile     Profile
	Clock       lab.Clock
	// Direct are TCP ports of the device to which connections pass the link by,
	// unshaped: those by which it is filmed and driven, which are no business of
	// the access network that is emulated.
	Direct []uint16
}

// Packet is the packet-level back end: it forwards every Ethernet frame
// between two interfaces, in both directions, when the profile says. Each
// frame's departure is computed from when the kernel took it in, on an absolute
// schedule, and a thread of its own sends it.
//
// What it cannot do: more than one core can forward (some Gbit/s of full
// frames); and tell segments apart that a sender's offload has merged, which
// it counts (see DisableOffloads).
type Packet struct {
	c      PacketConfig
	sides  [2]side  // device, lab
	event  int      // wakes the thread
	thread []string // what the thread was granted, for the report
	tid    int      // the thread

	mu      sync.Mutex
	profile Profile
	since   lab.Time // of the profile's changes
	changed int      // changes that hold
	ways    [2]*way  // up (from the device), down
	slips   int64
	late    chain
	stall   stall  // of the profile, in this trial
	turns   uint64 // how often it was set, which draws when the stall begins
	merged  int64
	bins    []Bin
	binFrom lab.Time
	free    []*frame
	out     [batch]*frame // what send passes on at once
	ended   bool
	done    sync.WaitGroup
}

// NewPacket starts to forward; end it with Close. Every frame on Device and Lab
// goes through the link from then on.
func NewPacket(c PacketConfig) (*Packet, error) { return newPacket(c, nil) }

// newPacket also says in reports what this process was granted.
func newPacket(c PacketConfig, granted []string) (*Packet, error) {
	var sockets [2]*socket
	closeFiles := func() {
		for _, s := range sockets {
			if s != nil {
				s.close()
			}
		}
	}
	for i, name := range []string{c.Device, c.Lab} {
		err := quiet(name)
		if err == nil {
			sockets[i], err = openSocket(name)
		}
		if err != nil {
			closeFiles()
			return nil, err
		}
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		closeFiles()
		return nil, fmt.Errorf("link: make an event: %w", err)
	}
	p := newForwarder(c, sockets[0], sockets[1])
	p.event, p.thread = event, granted
	ready := make(chan struct{})
	p.done.Go(func() {
		p.run(ready, sockets)
		closeFiles()
		_ = unix.Close(event) // an event holds nothing
	})
	<-ready
	return p, nil
}

// side is where frames come in and go out.
type side interface {
	// receive calls got with each frame of a batch (valid during the call) and
	// when the kernel took it in, and returns how many there were.
	receive(clock lab.Clock, got func(data []byte, at lab.Time)) int
	// send returns how many of the frames were taken.
	send([]*frame) int
	// overruns returns how many frames were dropped unread since the last call.
	overruns() int64
}

// newForwarder is a Packet without a thread: each turn does what is due.
func newForwarder(c PacketConfig, device, inner side) *Packet {
	p := &Packet{c: c, event: -1, sides: [2]side{device, inner}}
	for i := range p.ways {
		p.ways[i] = &way{down: i == 1, direct: c.Direct, recycle: p.recycle}
	}
	p.Set(c.Profile)
	return p
}

// Set changes the profile at once, begins its changes, its random streams and
// the counters anew. What has left the bottleneck keeps its time.
func (p *Packet) Set(profile Profile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.profile = profile.clone()
	p.since, p.changed = p.c.Clock(), 0
	p.slips, p.merged, p.late = 0, 0, chain{}
	p.turns++
	p.stall = p.profile.stall(p.since, p.turns)
	p.bins, p.binFrom = nil, p.since
	for _, w := range p.ways {
		w.set(&p.profile, p.since, true)
	}
	for _, s := range p.sides {
		s.overruns()
	}
	p.wake()
}

// Restart begins the times of the profile's changes anew, at the start of a trial.
func (p *Packet) Restart() {
	p.mu.Lock()
	profile := p.profile
	p.mu.Unlock()
	p.Set(profile)
}

// SetExtra tells which addresses have an RTT of their own to add.
func (p *Packet) SetExtra(extra map[netip.Addr]time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.ways {
		w.extra = maps.Clone(extra)
	}
}

// wake makes the thread look again; the caller holds the lock.
func (p *Packet) wake() {
	if !p.ended && p.event >= 0 {
		one := [8]byte{1}
		_, _ = unix.Write(p.event, one[:]) // full means that it wakes anyway
	}
}

// Close stops forwarding and waits for the thread.
func (p *Packet) Close() error {
	p.mu.Lock()
	p.wake()
	p.ended = true
	p.mu.Unlock()
	p.done.Wait()
	return nil
}

// Report tells what the link did since Set.
func (p *Packet) Report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.sides {
		if !p.ended {
			if n := s.overruns(); n > 0 {
				p.ways[i].count(dropIn, n)
			}
		}
	}
	r := Report{
		Backend: "packet", Profile: p.profile.clone(), Bound: packetBound, Slips: p.slips, Merged: p.merged,
		Up: p.ways[0].stats.clone(), Down: p.ways[1].stats.clone(), Thread: p.thread, Late: p.late.report(),
		Bins: append([]Bin(nil), p.bins...), CPU: processorTime(p.tid),
	}
	if p.stall.to > 0 {
		r.Stalled = &Stalled{At: p.stall.from.Sub(p.since), For: p.stall.to.Sub(p.stall.from)}
	}
	if p.merged > 0 {
		r.Limits = append(r.Limits, fmt.Sprintf("%d frames were several segments in one: a sender's offload is on (ethtool -K INTERFACE tso off gso off gro off)", p.merged))
	}
	return r
}

// run is the thread.
func (p *Packet) run(ready chan<- struct{}, sockets [2]*socket) {
	runtime.LockOSThread() // never unlocked: its priority ends with it
	p.mu.Lock()
	p.thread, p.tid = append(p.thread, prepareThread()...), unix.Gettid()
	p.mu.Unlock()
	close(ready)
	margin := maxMargin / 4
	fds := []unix.PollFd{
		{Fd: int32(sockets[0].fd), Events: unix.POLLIN}, {Fd: int32(sockets[1].fd), Events: unix.POLLIN},
		{Fd: int32(p.event), Events: unix.POLLIN},
	}
	for {
		t := p.turn()
		if t.ended {
			return
		}
		if t.more || t.next <= p.c.Clock() {
			continue
		}
		fds[0].Events, fds[1].Events = unix.POLLIN, unix.POLLIN
		if t.rest {
			fds[0].Events, fds[1].Events = 0, 0
		}
		margin = wait(p.c.Clock, t.next, t.exact, margin, fds)
		if fds[2].Revents != 0 {
			var b [8]byte
			_, _ = unix.Read(p.event, b[:]) // clears it
		}
	}
}

// turned is how things stand after a turn.
type turned struct {
	ended bool
	more  bool     // there may be more to take in at once
	next  lab.Time // when there is something to do next, or never
	exact bool     // what is due then is a departure
	rest  bool     // until then, what comes may lie unread
}

// turn takes in what has come and sends what is due.
func (p *Packet) turn() (t turned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return turned{ended: true}
	}
	t.more = p.receive()
	now := p.c.Clock()
	p.change(now)
	busy := false
	departure, other := never, never
	if p.changed < len(p.profile.Changes) {
		other = p.since.Add(p.profile.Changes[p.changed].At)
	}
	patience := p.ways[0].patience()
	for i, w := range p.ways {
		w.advance(now)
		p.send(w, p.sides[1-i], now)
		departure = min(departure, w.departure())
		if begin := w.begin(); begin != never {
			busy, other = true, min(other, begin.Add(patience))
		}
		busy = busy || len(w.line) > 0
	}
	// While packets are on their way the thread gets up for departures alone,
	// which are many enough: what comes meanwhile has its time from the kernel,
	// and none of it is due as soon.
	if busy && patience > 0 {
		t.rest, other = true, min(other, now.Add(patience))
	}
	departure = p.stall.after(max(departure, now))
	t.next, t.exact = min(departure, other), departure <= other
	return t
}

// receive takes in one batch of each side and reports whether there may be more.
func (p *Packet) receive() (more bool) {
	for i, s := range p.sides {
		w := p.ways[i]
		n := s.receive(p.c.Clock, func(data []byte, at lab.Time) {
			f := p.frame(len(data))
			copy(f.data, data)
			f.arrived = at
			f.direct = len(w.direct) > 0 && f.toPorts(w.direct, w.down)
			if f.merged() && !f.direct {
				p.merged++
			}
			// What the bottleneck did until then, so that the queue is as full as
			// it was when the packet came, however late the thread reads it.
			p.change(at)
			w.advance(at)
			w.arrive(f)
		})
		more = more || n == batch
	}
	return more
}

// send passes on what is due.
func (p *Packet) send(w *way, s side, now lab.Time) {
	if p.stall.holds(now) {
		return
	}
	for {
		out := w.due(now, p.out[:0])
		if len(out) == 0 {
			return
		}
		sent := s.send(out)
		after := p.c.Clock()
		bin := p.bin(after)
		for i, f := range out {
			if f.direct { // in no statistics
				p.recycle(f)
				continue
			}
			late := after.Sub(f.due)
			w.stats.Errors.Add(late)
			p.late.add(w.down, f.arrived, after, late)
			if late > packetBound {
				p.slips++
			}
			if i < sent {
				bin.add(w.down, f.cost(), w.queue.bytes)
			} else {
				w.count(dropSend, 1)
			}
			p.recycle(f)
		}
	}
}

// change applies the profile's changes whose time has come.
func (p *Packet) change(now lab.Time) {
	for p.changed < len(p.profile.Changes) {
		c := &p.profile.Changes[p.changed]
		at := p.since.Add(c.At)
		if at > now {
			return
		}
		for _, w := range p.ways {
			w.advance(at - 1) // what had begun before the change
			w.set(&c.Profile, at, false)
		}
		p.changed++
	}
}

// frame returns one with room for n bytes, from the free list when it can.
func (p *Packet) frame(n int) *frame {
	if k := len(p.free); k > 0 && n <= frameSize {
		f := p.free[k-1]
		p.free = p.free[:k-1]
		f.data = f.data[:n]
		return f
	}
	return &frame{data: make([]byte, n, max(n, frameSize))}
}

func (p *Packet) recycle(f *frame) {
	if cap(f.data) == frameSize && len(p.free) < 65536 {
		p.free = append(p.free, f)
	}
}
