package link

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// KernelConfig of a Kernel link. All fields are required.
type KernelConfig struct {
	// Interface is where the device is plugged in, in this network namespace;
	// it has the gateway's address. IFB is a name for the interface that what
	// the device sends is led through; it must be free.
	Interface, IFB string
	Profile        Profile
	Clock          lab.Clock
}

// Kernel is the back end of the kernel's own queue disciplines: netem delays
// and loses, tbf behind it paces, towards the device on its interface and from
// it on an ifb. Its rates are beyond a process's reach, and its seeds, traces
// and reports are less than Packet's; see Cannot.
type Kernel struct {
	c     KernelConfig
	lib   *netlink.Handle
	ways  [2]kernelWay // up, down
	undo  []func() error
	done  sync.WaitGroup
	close chan struct{}

	mu      sync.Mutex
	base    Profile // as it was set
	profile Profile // as it is now, after changes
	since   lab.Time
	restart chan struct{}
	fault   error
	ended   bool
}

// kernelWay is one direction.
type kernelWay struct {
	down  bool
	index int              // of the interface
	netem bool             // there is one at the root
	tbf   bool             // there is one that paces
	begun map[string]int64 // the counters when they were last set to nothing
}

// Handles of our disciplines.
var (
	netemHandle = netlink.MakeHandle(1, 0)
	tbfHandle   = netlink.MakeHandle(10, 0)
)

// NewKernel sets the disciplines up; Close puts all back as it was. An
// interface that has disciplines which somebody configured is refused.
func NewKernel(c KernelConfig) (*Kernel, error) {
	k := &Kernel{c: c, close: make(chan struct{}), restart: make(chan struct{}, 1)}
	if err := k.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("link: kernel back end on %s: %w", c.Interface, err), k.Close())
	}
	k.done.Go(k.run)
	return k, nil
}

func (k *Kernel) start() (err error) {
	if k.lib, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return err
	}
	k.later(func() error { k.lib.Close(); return nil })
	port, err := k.lib.LinkByName(k.c.Interface)
	if err != nil {
		return err
	}
	before, err := k.disciplines(port)
	if err != nil {
		return err
	}
	k.later(func() error {
		after, err := k.disciplines(port)
		if err == nil && !slices.Equal(before, after) {
			err = fmt.Errorf("the queue disciplines are %v afterwards, and were %v", after, before)
		}
		return err
	})
	restore, err := keepOffloads(k.c.Interface)
	if err != nil {
		return err
	}
	k.later(restore)
	if err := DisableOffloads(k.c.Interface); err != nil {
		return err
	}
	ifb := &netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: k.c.IFB, MTU: port.Attrs().MTU}}
	if err := k.lib.LinkAdd(ifb); err != nil {
		return fmt.Errorf("make the interface %s (needs the module ifb): %w", k.c.IFB, err)
	}
	k.later(func() error { return k.lib.LinkDel(ifb) })
	if err := k.lib.LinkSetUp(ifb); err != nil {
		return fmt.Errorf("bring %s up: %w", k.c.IFB, err)
	}
	if err := k.redirect(port.Attrs().Index, ifb.Attrs().Index); err != nil {
		return err
	}
	k.ways = [2]kernelWay{{index: ifb.Attrs().Index}, {down: true, index: port.Attrs().Index}}
	k.later(func() error { return k.clear(port.Attrs().Index) })
	return k.Set(k.c.Profile)
}

func (k *Kernel) later(f func() error) { k.undo = append(k.undo, f) }

// disciplines describes what an interface has, which must be only what the
// kernel itself gave it.
func (k *Kernel) disciplines(l netlink.Link) (list []string, err error) {
	all, err := k.lib.QdiscList(l)
	if err != nil {
		return nil, fmt.Errorf("list the queue disciplines: %w", err)
	}
	for _, q := range all {
		a := q.Attrs()
		if a.Handle != 0 {
			return nil, fmt.Errorf("it has a queue discipline that somebody configured, %s %s; remove it with: tc qdisc del dev %s %s",
				q.Type(), netlink.HandleStr(a.Handle), l.Attrs().Name, map[bool]string{true: "ingress", false: "root"}[a.Parent == netlink.HANDLE_INGRESS])
		}
		list = append(list, fmt.Sprintf("%s under %x", q.Type(), a.Parent))
	}
	slices.Sort(list)
	return list, nil
}

// redirect leads what comes in on one interface out on another.
func (k *Kernel) redirect(from, to int) error {
	ingress := &netlink.Ingress{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: from, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_INGRESS}}
	if err := k.lib.QdiscAdd(ingress); err != nil {
		return fmt.Errorf("add the ingress discipline: %w", err)
	}
	k.later(func() error { return k.lib.QdiscDel(ingress) })
	filter := &netlink.U32{ // matches everything
		FilterAttrs: netlink.FilterAttrs{LinkIndex: from, Parent: ingress.Handle, Priority: 1, Protocol: unix.ETH_P_ALL},
		Actions:     []netlink.Action{netlink.NewMirredAction(to)},
	}
	if err := k.lib.FilterAdd(filter); err != nil {
		return fmt.Errorf("redirect what comes in (needs cls_u32 and act_mirred): %w", err)
	}
	return nil
}

// clear removes our root discipline, upon which the kernel gives its own back.
func (k *Kernel) clear(index int) error {
	l, err := k.lib.LinkByIndex(index)
	if err != nil {
		return err
	}
	all, err := k.lib.QdiscList(l)
	if err != nil {
		return fmt.Errorf("list the queue disciplines: %w", err)
	}
	for _, q := range all {
		if a := q.Attrs(); a.Parent == netlink.HANDLE_ROOT && a.Handle != 0 {
			if err := k.lib.QdiscDel(q); err != nil {
				return fmt.Errorf("remove %s: %w", q.Type(), err)
			}
		}
	}
	return nil
}

// Set changes the profile and begins its changes and the counters anew.
func (k *Kernel) Set(p Profile) error {
	if cannot := Cannot("kernel", p); len(cannot) > 0 {
		return fmt.Errorf("the kernel back end cannot do this profile: %s", cannot[0])
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.base, k.since = p.clone(), k.c.Clock()
	if err := k.apply(p); err != nil {
		k.fault = err
		return err
	}
	k.fault = nil
	for i := range k.ways {
		k.ways[i].begun, k.fault = k.count(&k.ways[i])
		if k.fault != nil {
			return k.fault
		}
	}
	select {
	case k.restart <- struct{}{}:
	default:
	}
	return nil
}

// run applies the profile's changes as their times come.
func (k *Kernel) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		k.mu.Lock()
		next := time.Hour
		for _, c := range k.base.Changes {
			if wait := k.since.Add(c.At).Sub(k.c.Clock()); wait > 0 {
				next = wait
				break
			}
			if k.fault == nil && !equalRates(k.profile, c.Profile) {
				k.fault = k.apply(c.Profile)
			}
		}
		k.mu.Unlock()
		timer.Reset(next)
		select {
		case <-timer.C:
		case <-k.restart:
		case <-k.close:
			return
		}
	}
}

// equalRates reports whether two profiles ask the same of the disciplines.
func equalRates(a, b Profile) bool {
	return a.RTT == b.RTT && a.Down == b.Down && a.Up == b.Up && a.Loss == b.Loss && a.Jitter == b.Jitter && a.Queue == b.Queue
}

// apply puts the disciplines of a profile in place; what waits in those that
// stay is kept. The caller holds the lock.
func (k *Kernel) apply(p Profile) error {
	for i := range k.ways {
		if err := k.applyWay(&k.ways[i], p); err != nil {
			return err
		}
	}
	k.profile = p.clone()
	k.profile.Changes = k.base.Changes
	return nil
}

// inFlight is how many packets netem may hold: those on the way, of which a
// long delay at a high rate has many.
const inFlight = 1_000_000

func (k *Kernel) applyWay(w *kernelWay, p Profile) error {
	rate, parent := p.Up, uint32(netlink.HANDLE_ROOT)
	if w.down {
		rate = p.Down
	}
	if p.RTT > 0 || p.Loss > 0 || p.Jitter > 0 || w.netem {
		if !w.netem {
			if err := k.clear(w.index); err != nil {
				return err
			}
			w.tbf = false
		}
		netem := netlink.NewNetem(
			netlink.QdiscAttrs{LinkIndex: w.index, Handle: netemHandle, Parent: netlink.HANDLE_ROOT},
			netlink.NetemQdiscAttrs{
				Latency: uint32(p.RTT / 2 / time.Microsecond), Jitter: uint32(p.Jitter / time.Microsecond),
				Loss: float32(100 * p.Loss), Limit: inFlight,
			})
		if err := k.lib.QdiscReplace(netem); err != nil {
			return fmt.Errorf("set netem (needs the module sch_netem): %w", err)
		}
		w.netem, parent = true, netlink.MakeHandle(1, 1)
	}
	if rate == Unlimited {
		if !w.tbf {
			return nil
		}
		w.tbf = false
		return k.lib.QdiscDel(&netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: w.index, Handle: tbfHandle, Parent: parent}})
	}
	// A bucket of one full packet, so that nothing leaves in bursts. tbf counts
	// Ethernet's header: the rate is larger by that of full packets.
	const bucket = 1600
	bytes := uint64(1) // an outage: the next packet leaves after many minutes
	if rate > 0 {
		bytes = max(1, uint64(math.Round(float64(rate)/8*(DefaultMTU+ethernet)/DefaultMTU)))
	}
	tbf := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: w.index, Handle: tbfHandle, Parent: parent},
		Rate:       bytes, Limit: tbfLimit(p.Queue, rate), Buffer: uint32(min(math.MaxUint32, float64(netlink.TickInUsec())*bucket*1e6/float64(bytes))),
	}
	if err := k.lib.QdiscReplace(tbf); err != nil {
		return fmt.Errorf("set tbf (needs the module sch_tbf): %w", err)
	}
	w.tbf = true
	return nil
}

// tbfLimit is a queue's bound in bytes of frames; packets are full ones.
func tbfLimit(q Queue, rate Rate) uint32 {
	const full = DefaultMTU + ethernet
	limit := uint64(math.MaxUint32)
	if q.Packets == 0 && q.Bytes == 0 && q.Time == 0 {
		q.Packets = DefaultQueuePackets
	}
	if q.Packets > 0 {
		limit = min(limit, uint64(q.Packets)*full)
	}
	if q.Bytes > 0 {
		limit = min(limit, uint64(q.Bytes)*full/DefaultMTU)
	}
	if q.Time > 0 && rate > 0 {
		limit = min(limit, uint64(float64(rate)/8*q.Time.Seconds()*full/DefaultMTU))
	}
	return uint32(max(limit, full))
}

// count reads a direction's counters.
func (k *Kernel) count(w *kernelWay) (map[string]int64, error) {
	l, err := k.lib.LinkByIndex(w.index)
	if err != nil {
		return nil, err
	}
	all, err := k.lib.QdiscList(l)
	if err != nil {
		return nil, fmt.Errorf("read the counters: %w", err)
	}
	n := map[string]int64{}
	for _, q := range all {
		a := q.Attrs()
		if a.Parent == netlink.HANDLE_ROOT && a.Statistics != nil && a.Statistics.Basic != nil {
			n["packets"], n["bytes"] = int64(a.Statistics.Basic.Packets), int64(a.Statistics.Basic.Bytes)
		}
		if a.Statistics != nil && a.Statistics.Queue != nil {
			switch a.Handle {
			case netemHandle: // counts also what its child dropped
				n["netem"] = int64(a.Statistics.Queue.Drops)
			case tbfHandle:
				n["tbf"] = int64(a.Statistics.Queue.Drops)
			}
		}
	}
	return n, nil
}

// Report tells what the link did since Set, as far as the kernel counts it.
func (k *Kernel) Report() Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := Report{Backend: "kernel", Profile: k.profile.clone(), Limits: limits("kernel", k.base)}
	if k.fault != nil {
		r.Fault = k.fault.Error()
	}
	if k.ended {
		return r
	}
	for i, d := range []*Direction{&r.Up, &r.Down} {
		now, err := k.count(&k.ways[i])
		if err != nil {
			r.Fault = err.Error()
			return r
		}
		n := maps.Clone(now)
		for name := range n {
			n[name] -= k.ways[i].begun[name]
		}
		d.Packets, d.Bytes = n["packets"], n["bytes"]-n["packets"]*ethernet
		d.Drops = map[string]int64{}
		if n["tbf"] > 0 {
			d.Drops[dropQueue] = n["tbf"]
		}
		if lost := n["netem"] - n["tbf"]; lost > 0 {
			d.Drops[dropLoss] = lost
		}
	}
	return r
}

// Close puts everything back as it was, and says if it is not.
func (k *Kernel) Close() error {
	k.mu.Lock()
	first := !k.ended
	k.ended = true
	k.mu.Unlock()
	if !first {
		return nil
	}
	close(k.close)
	k.done.Wait()
	var errs []error
	for i := len(k.undo) - 1; i >= 0; i-- {
		errs = append(errs, k.undo[i]())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("link: put %s back as it was: %w", k.c.Interface, err)
	}
	return nil
}
