package port

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// repairInterval is how often the watcher checks what the kernel announces nothing of.
const repairInterval = time.Second

// resubscribePause is the pause after the subscription to interfaces failed.
const resubscribePause = 200 * time.Millisecond

// watcher follows the port's interface, which can vanish, come back with another
// index, and lose and regain its carrier.
type watcher struct {
	p    *Port
	stop chan struct{}
	done chan struct{}
}

// watch takes the interface if it exists, and follows it from then on.
func (p *Port) watch() (*watcher, error) {
	updates, end, err := subscribe()
	if err != nil {
		return nil, err
	}
	if err := p.reconcile(); err != nil { // this first failure is an error of Start
		drain(updates, end)
		return nil, err
	}
	w := &watcher{p: p, stop: make(chan struct{}), done: make(chan struct{})}
	go w.run(updates, end)
	return w, nil
}

func (w *watcher) close() error {
	close(w.stop)
	<-w.done
	return nil
}

// subscribe returns the updates of all interfaces, until end is closed.
func subscribe() (updates chan netlink.LinkUpdate, end chan struct{}, err error) {
	updates, end = make(chan netlink.LinkUpdate, 64), make(chan struct{})
	// On an error the library closes the channel.
	err = netlink.LinkSubscribeWithOptions(updates, end, netlink.LinkSubscribeOptions{ReceiveBufferSize: 1 << 20})
	if err != nil {
		return nil, nil, fmt.Errorf("follow the network interfaces: %w", err)
	}
	return updates, end, nil
}

// drain ends a subscription and reads until its goroutine has ended.
func drain(updates <-chan netlink.LinkUpdate, end chan struct{}) {
	close(end)
	for range updates {
	}
}

func (w *watcher) run(updates chan netlink.LinkUpdate, end chan struct{}) {
	defer close(w.done)
	ticker := time.NewTicker(repairInterval)
	defer ticker.Stop()
	for {
		select {
		case <-w.stop:
			drain(updates, end)
			return
		case u, ok := <-updates:
			if ok {
				w.p.handleUpdate(u)
				continue
			}
		case <-ticker.C:
			w.p.repair()
			continue
		}
		// There were too many updates at once: subscribe again, and reconcile with
		// what was missed.
		close(end)
		for {
			select {
			case <-w.stop:
				return
			case <-time.After(resubscribePause):
			}
			var err error
			if updates, end, err = subscribe(); err == nil {
				break
			}
			w.p.c.Log.Error("the port's interface cannot be followed", "error", err)
		}
		w.p.reconcileAndReport()
	}
}

// handleUpdate handles one update of an interface.
func (p *Port) handleUpdate(u netlink.LinkUpdate) {
	a := u.Link.Attrs()
	own := p.plug != nil && a.Index == p.plug.index
	if !own && a.Name != p.names.device {
		return
	}
	switch {
	case own && u.Header.Type == unix.RTM_DELLINK, own && a.Name != p.names.device:
		why := "the interface is gone"
		if a.Name != p.names.device {
			why = "the interface is called " + a.Name + " now"
		}
		p.release(why)
		p.reconcileAndReport() // another one can have its name already
	case u.Header.Type == unix.RTM_DELLINK:
	case !own:
		p.reconcileAndReport()
	default:
		p.setCarrier(a)
	}
}

// repair repairs what the kernel announces nothing of: a link whose process has
// ended, and an interface that exists and could not be taken.
func (p *Port) repair() {
	if p.plug != nil && p.network.LinkBroken() {
		p.release("the link's process has ended")
		p.reconcileAndReport()
	} else if p.plug == nil && p.problem() != "" {
		p.reconcileAndReport()
	}
}

func (p *Port) problem() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status.Problem
}

// reconcileAndReport reconciles and reports a failure in the status and by an event.
func (p *Port) reconcileAndReport() {
	err := p.reconcile()
	problem, before := "", p.problem()
	if err != nil {
		problem = err.Error()
	}
	p.mu.Lock()
	p.status.Problem = problem
	p.mu.Unlock()
	if problem != "" && problem != before { // a problem is reported once, however often it repeats
		p.c.Log.Error("the port is not usable; trying again", "error", err)
		p.emit(Event{Kind: Failed, Detail: problem})
	}
}

// reconcile takes the interface that has the port's name, or releases one that has
// gone.
func (p *Port) reconcile() error {
	l, err := netlink.LinkByName(p.names.device)
	missing := errors.As(err, &netlink.LinkNotFoundError{})
	if err != nil && !missing {
		return fmt.Errorf("find %s: %w", p.names.device, err)
	}
	if p.plug != nil && (missing || l.Attrs().Index != p.plug.index) {
		p.release("the interface is gone")
	}
	if missing {
		return nil
	}
	if p.plug == nil {
		if err := p.acquire(l); err != nil {
			return err
		}
		if l, err = netlink.LinkByIndex(l.Attrs().Index); err != nil {
			return nil // it is gone again, and an update follows
		}
	}
	p.setCarrier(l.Attrs())
	return nil
}

// acquire takes the interface and starts to forward.
func (p *Port) acquire(l netlink.Link) error {
	if err := checkKind(l); err != nil {
		return err
	}
	plug, err := take(l, p.filter)
	if err != nil {
		return err
	}
	if err := p.network.Plug(l.Attrs().Name); err != nil {
		return errors.Join(err, plug.restore())
	}
	p.plug = plug
	p.mu.Lock()
	p.status.Present = true
	p.mu.Unlock()
	p.emit(Event{Kind: PortAppeared})
	return nil
}

// release ends forwarding and restores the interface.
func (p *Port) release(why string) {
	if err := errors.Join(p.network.Unplug(), p.plug.restore()); err != nil {
		p.c.Log.Warn("the port was not restored", "error", err)
	}
	p.plug = nil
	p.mu.Lock()
	p.status.Present, p.status.Carrier = false, false
	p.counts.gone++
	p.mu.Unlock()
	p.emit(Event{Kind: PortVanished, Detail: why})
}

// setCarrier notes whether there is a carrier: a cable to a device that is on.
func (p *Port) setCarrier(a *netlink.LinkAttrs) {
	if a.Flags&net.FlagUp == 0 { // another program took it down; the link needs it up
		if l, err := netlink.LinkByIndex(a.Index); err == nil {
			if err := netlink.LinkSetUp(l); err != nil {
				p.c.Log.Warn("another program took the port down, and it does not come up", "error", err)
			}
		}
	}
	now := a.RawFlags&unix.IFF_LOWER_UP != 0 && a.Flags&net.FlagUp != 0
	p.mu.Lock()
	before := p.status.Carrier
	p.status.Carrier = now
	if before && !now {
		p.counts.unplugged++
		p.status.Flaps++
	}
	p.mu.Unlock()
	switch {
	case now && !before:
		if p.ra != nil {
			p.ra.Announce()
		}
		p.emit(Event{Kind: Plugged})
	case before && !now:
		p.emit(Event{Kind: Unplugged})
	}
}
