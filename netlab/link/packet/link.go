// Package packet is the packet back end of the emulated link: it forwards every
// Ethernet frame between two interfaces, in both directions, when a profile
// (package link) says. In go frames of the device's interface and of the lab's;
// out come the same frames on the other side, delayed, paced, dropped, and a
// report. Each frame's departure is computed from when the kernel received it, on
// an absolute schedule, and a thread of its own sends it. [Process] runs a [Link]
// in a process of its own, with real-time priority where the machine allows it.
//
// What it cannot do: forward with more than one core (some Gbit/s of full
// frames), and separate segments that a sender's offload has merged, which it
// counts (see DisableOffloads). ReadPcap reads packet logs that traces are made of.
package packet

import (
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
	"eidetic/netlab/link/schedule"
)

// slipBound is the lateness above which a departure counts as a slip.
const slipBound = time.Millisecond

// Config of a Link. Device, Lab and Clock are required.
type Config struct {
	// Device is the interface on the device's side (a port, or the inner end
	// of its veth pair), Lab the inner end of the pair whose other end has the
	// gateway's address. Both are in this network namespace and have no addresses.
	Device, Lab string
	Profile     link.Profile
	Clock       lab.Clock
	// Direct are TCP ports of the device whose connections bypass the link,
	// unshaped: the device is filmed and driven over them, which is no traffic of
	// the access network that is emulated.
	Direct []uint16
}

// Link forwards between two interfaces. Its methods may be called from any
// goroutine.
type Link struct {
	c      Config
	sides  [2]side  // the device's, the lab's
	event  int      // an eventfd that wakes the thread, or -1
	thread []string // what the thread was granted, for the report
	tid    int      // of the thread

	mu         sync.Mutex // guards all below
	profile    link.Profile
	since      lab.Time // start of the profile's time
	changed    int      // how many of the profile's changes apply
	directions [2]*direction
	slips      int64
	late       schedule.Lateness
	stall      stall  // of this trial
	turns      uint64 // how often the profile was set, which the stall's time depends on
	merged     int64
	bins       []link.Bin
	free       []*frame
	out        [batch]*frame // the frames that send passes on at once
	ended      bool
	done       sync.WaitGroup
}

// Indexes of Link.directions, and of Link.sides from which they receive.
const (
	up   = 0 // from the device
	down = 1 // towards the device
)

// New starts to forward; end it with Close. From then on every frame that
// Device and Lab receive goes through the link.
func New(c Config) (*Link, error) { return newLink(c, nil) }

// newLink is New with what this process was granted, for the reports.
func newLink(c Config, granted []string) (*Link, error) {
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
	l := newForwarder(c, sockets[0], sockets[1])
	l.event, l.thread = event, granted
	ready := make(chan struct{})
	l.done.Go(func() {
		l.run(ready, sockets)
		closeFiles()
		_ = unix.Close(event) // an eventfd holds no data
	})
	<-ready
	return l, nil
}

// side is an interface on which frames arrive and leave.
type side interface {
	// receive calls got with each frame of a batch (valid during the call) and
	// with the time at which the kernel received it. It returns how many frames
	// there were.
	receive(clock lab.Clock, got func(data []byte, at lab.Time)) int
	// send returns how many of the frames were sent.
	send([]*frame) int
	// overruns returns how many frames were dropped unread since the last call.
	overruns() int64
}

// newForwarder returns a Link without a thread: each turn does what is due.
func newForwarder(c Config, device, inner side) *Link {
	l := &Link{c: c, event: -1, sides: [2]side{device, inner}}
	for i := range l.directions {
		l.directions[i] = &direction{down: i == down, bypass: c.Direct, recycle: l.recycle}
	}
	l.Set(c.Profile)
	return l
}

// Set changes the profile at once, and restarts its changes, its random streams
// and the counters. Frames that have left the bottleneck keep their time.
func (l *Link) Set(profile link.Profile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.profile = profile.Clone()
	l.since, l.changed = l.c.Clock(), 0
	l.slips, l.merged, l.late = 0, 0, schedule.Lateness{}
	l.turns++
	l.stall = drawStall(l.profile, l.since, l.turns)
	l.bins = nil
	for _, d := range l.directions {
		d.set(&l.profile, l.since, true)
	}
	for _, s := range l.sides {
		s.overruns()
	}
	l.wake()
}

// Restart does what Set does, with the profile that is set. It is for the start
// of a trial.
func (l *Link) Restart() {
	l.mu.Lock()
	profile := l.profile
	l.mu.Unlock()
	l.Set(profile)
}

// SetExtra sets which addresses have an addition to the RTT.
func (l *Link) SetExtra(extra map[netip.Addr]time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.directions {
		d.extra = maps.Clone(extra)
	}
}

// wake makes the thread start a turn; the caller holds the lock.
func (l *Link) wake() {
	if !l.ended && l.event >= 0 {
		one := [8]byte{1}
		_, _ = unix.Write(l.event, one[:]) // it fails only when the counter is full, which wakes the thread anyway
	}
}

// Close stops forwarding and waits for the thread.
func (l *Link) Close() error {
	l.mu.Lock()
	l.wake()
	l.ended = true
	l.mu.Unlock()
	l.done.Wait()
	return nil
}

// Report says what the link did since Set.
func (l *Link) Report() link.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.sides {
		if !l.ended {
			if n := s.overruns(); n > 0 {
				l.directions[i].countDrops(link.DropUnread, n)
			}
		}
	}
	r := link.Report{
		Backend: "packet", Profile: l.profile.Clone(), Bound: slipBound, Slips: l.slips, Merged: l.merged,
		Up: l.directions[up].stats.Clone(), Down: l.directions[down].stats.Clone(), Thread: l.thread, Late: l.late.Report(),
		Bins: append([]link.Bin(nil), l.bins...), CPU: processorTime(l.tid),
	}
	if l.stall.to > 0 {
		r.Stalled = &link.Stalled{At: l.stall.from.Sub(l.since), For: l.stall.to.Sub(l.stall.from)}
	}
	if l.merged > 0 {
		r.Limits = append(r.Limits, fmt.Sprintf(
			"%d frames carried several segments: a sender's offload is on (ethtool -K INTERFACE tso off gso off gro off)", l.merged))
	}
	return r
}

// run is the thread.
func (l *Link) run(ready chan<- struct{}, sockets [2]*socket) {
	runtime.LockOSThread() // never unlocked: the thread and its priority end with the goroutine
	l.mu.Lock()
	l.thread, l.tid = append(l.thread, prepareThread()...), unix.Gettid()
	l.mu.Unlock()
	close(ready)
	margin := maxMargin / 4
	fds := []unix.PollFd{
		{Fd: int32(sockets[0].fd), Events: unix.POLLIN}, {Fd: int32(sockets[1].fd), Events: unix.POLLIN},
		{Fd: int32(l.event), Events: unix.POLLIN},
	}
	for {
		t := l.turn()
		if t.ended {
			return
		}
		if t.more || t.next <= l.c.Clock() {
			continue
		}
		fds[0].Events, fds[1].Events = unix.POLLIN, unix.POLLIN
		if t.ignoreInput {
			fds[0].Events, fds[1].Events = 0, 0
		}
		margin = wait(l.c.Clock, t.next, t.exact, margin, fds)
		if fds[2].Revents != 0 {
			var b [8]byte
			_, _ = unix.Read(l.event, b[:]) // resets the counter
		}
	}
}

// turnResult says what the thread has to do after a turn.
type turnResult struct {
	ended       bool
	more        bool     // there may be more frames to receive at once
	next        lab.Time // when the next turn is due, or Never
	exact       bool     // at next a frame departs
	ignoreInput bool     // until next, arriving frames can stay unread
}

// turn receives what has arrived and sends what is due.
func (l *Link) turn() (t turnResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return turnResult{ended: true}
	}
	t.more = l.receive()
	now := l.c.Clock()
	l.applyChanges(now)
	busy := false
	departure, other := schedule.Never, schedule.Never
	if l.changed < len(l.profile.Changes) {
		other = l.since.Add(l.profile.Changes[l.changed].At)
	}
	patience := l.directions[up].patience()
	for i, d := range l.directions {
		d.advance(now)
		l.send(d, l.sides[1-i], now)
		departure = min(departure, d.nextDue())
		if start := d.nextStart(); start != schedule.Never {
			busy, other = true, min(other, start.Add(patience))
		}
		busy = busy || len(d.flying) > 0
	}
	// While packets are in flight the thread wakes up for departures only, of
	// which there are enough. The kernel notes the time of each frame that arrives
	// meanwhile, and none of those is due before the patience is over.
	if busy && patience > 0 {
		t.ignoreInput, other = true, min(other, now.Add(patience))
	}
	departure = l.stall.after(max(departure, now))
	t.next, t.exact = min(departure, other), departure <= other
	return t
}

// receive takes one batch from each side and reports whether there may be more.
func (l *Link) receive() (more bool) {
	for i, s := range l.sides {
		d := l.directions[i]
		n := s.receive(l.c.Clock, func(data []byte, at lab.Time) {
			f := l.newFrame(len(data))
			copy(f.data, data)
			f.arrived = at
			f.bypass = len(d.bypass) > 0 && f.hasDevicePort(d.bypass, d.down)
			if f.isMerged() && !f.bypass {
				l.merged++
			}
			// The bottleneck first catches up to the frame's arrival, so that the queue
			// is as full as it was then, however late the thread reads the frame.
			l.applyChanges(at)
			d.advance(at)
			d.arrive(f)
		})
		more = more || n == batch
	}
	return more
}

// send passes on the frames that are due.
func (l *Link) send(d *direction, s side, now lab.Time) {
	if l.stall.holds(now) {
		return
	}
	for {
		out := d.takeDue(now, l.out[:0])
		if len(out) == 0 {
			return
		}
		sent := s.send(out)
		after := l.c.Clock()
		bin := l.bin(after)
		for i, f := range out {
			if f.bypass { // counted on arrival
				l.recycle(f)
				continue
			}
			late := after.Sub(f.due)
			d.stats.Errors.Add(late)
			l.late.Add(d.down, f.arrived, after, late)
			if late > slipBound {
				l.slips++
			}
			if i < sent {
				count(bin, d.down, f.cost(), d.queue.bytes)
			} else {
				d.countDrops(link.DropSend, 1)
			}
			l.recycle(f)
		}
	}
}

// maxBins is two hours of bins; what leaves later counts in the last one.
const maxBins = 72_000

// bin returns the bin of an instant.
func (l *Link) bin(at lab.Time) *link.Bin {
	i := min(int(at.Sub(l.since)/link.BinWidth), maxBins-1)
	for len(l.bins) <= i {
		l.bins = append(l.bins, link.Bin{})
	}
	return &l.bins[i]
}

func count(b *link.Bin, down bool, n, queued int) {
	if down {
		b.Down += n
	} else {
		b.Up += n
	}
	b.Queue = max(b.Queue, queued)
}

// applyChanges applies the profile's changes whose time has come.
func (l *Link) applyChanges(now lab.Time) {
	for l.changed < len(l.profile.Changes) {
		c := &l.profile.Changes[l.changed]
		at := l.since.Add(c.At)
		if at > now {
			return
		}
		for _, d := range l.directions {
			d.advance(at - 1) // transmissions that began before the change
			d.set(&c.Profile, at, false)
		}
		l.changed++
	}
}

// newFrame returns a frame with room for n bytes, a recycled one if there is one.
func (l *Link) newFrame(n int) *frame {
	if k := len(l.free); k > 0 && n <= frameSize {
		f := l.free[k-1]
		l.free = l.free[:k-1]
		f.data = f.data[:n]
		return f
	}
	return &frame{data: make([]byte, n, max(n, frameSize))}
}

// recycle keeps a frame for newFrame.
func (l *Link) recycle(f *frame) {
	if cap(f.data) == frameSize && len(l.free) < 65536 {
		l.free = append(l.free, f)
	}
}
