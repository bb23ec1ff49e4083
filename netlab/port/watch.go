package port

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// tendEvery is how often what can fail without news is looked at.
const tendEvery = time.Second

// resubscribe is the pause after the kernel's news of interfaces were lost.
const resubscribe = 200 * time.Millisecond

// watcher follows the port's interface: it may be taken out, come back with
// another index, lose and find its cable.
type watcher struct {
	p    *Port
	stop chan struct{}
	done chan struct{}
}

// watch takes the interface if it is there, and follows it from then on.
func (p *Port) watch() (*watcher, error) {
	news, end, err := subscribe()
	if err != nil {
		return nil, err
	}
	if err := p.look(); err != nil { // the first time it is an error of Start
		drain(news, end)
		return nil, err
	}
	w := &watcher{p: p, stop: make(chan struct{}), done: make(chan struct{})}
	go w.run(news, end)
	return w, nil
}

func (w *watcher) close() error {
	close(w.stop)
	<-w.done
	return nil
}

func subscribe() (news chan netlink.LinkUpdate, end chan struct{}, err error) {
	news, end = make(chan netlink.LinkUpdate, 64), make(chan struct{})
	// An error ends the news, and the channel tells.
	err = netlink.LinkSubscribeWithOptions(news, end, netlink.LinkSubscribeOptions{ReceiveBufferSize: 1 << 20})
	if err != nil {
		return nil, nil, fmt.Errorf("follow the network interfaces: %w", err)
	}
	return news, end, nil
}

// drain ends a subscription, whose goroutine may want to say more.
func drain(news <-chan netlink.LinkUpdate, end chan struct{}) {
	close(end)
	for range news {
	}
}

func (w *watcher) run(news chan netlink.LinkUpdate, end chan struct{}) {
	defer close(w.done)
	ticker := time.NewTicker(tendEvery)
	defer ticker.Stop()
	for {
		select {
		case <-w.stop:
			drain(news, end)
			return
		case u, ok := <-news:
			if ok {
				w.p.heard(u)
				continue
			}
		case <-ticker.C:
			w.p.tend()
			continue
		}
		// Too much happened at once: what was missed is looked up.
		close(end)
		for {
			select {
			case <-w.stop:
				return
			case <-time.After(resubscribe):
			}
			var err error
			if news, end, err = subscribe(); err == nil {
				break
			}
			w.p.c.Log.Error("the port is not followed", "error", err)
		}
		w.p.lookAgain()
	}
}

// heard handles one piece of news.
func (p *Port) heard(u netlink.LinkUpdate) {
	a := u.Link.Attrs()
	ours := p.plug != nil && a.Index == p.plug.index
	if !ours && a.Name != p.names.device {
		return
	}
	switch {
	case ours && u.Header.Type == unix.RTM_DELLINK, ours && a.Name != p.names.device:
		p.lose("the interface is gone")
		p.lookAgain() // another one may have its name already
	case u.Header.Type == unix.RTM_DELLINK:
	case !ours:
		p.lookAgain()
	default:
		p.carrier(a)
	}
}

// tend mends what no news will come of: a link whose process has ended, and an
// interface that was there and could not be taken.
func (p *Port) tend() {
	if p.plug != nil && p.network.LinkBroken() {
		p.lose("the link's process has ended")
		p.lookAgain()
	} else if p.plug == nil && p.problem() != "" {
		p.lookAgain()
	}
}

func (p *Port) problem() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status.Problem
}

func (p *Port) lookAgain() {
	err := p.look()
	problem, before := "", p.problem()
	if err != nil {
		problem = err.Error()
	}
	p.mu.Lock()
	p.status.Problem = problem
	p.mu.Unlock()
	if problem != "" && problem != before { // once, however often it is tried
		p.c.Log.Error("the port is not usable; trying again", "error", err)
		p.tell(Event{Kind: Failed, Detail: problem})
	}
}

// look compares what there is with what we hold.
func (p *Port) look() error {
	l, err := netlink.LinkByName(p.names.device)
	missing := errors.As(err, &netlink.LinkNotFoundError{})
	if err != nil && !missing {
		return fmt.Errorf("find %s: %w", p.names.device, err)
	}
	if p.plug != nil && (missing || l.Attrs().Index != p.plug.index) {
		p.lose("the interface is gone")
	}
	if missing {
		return nil
	}
	if p.plug == nil {
		if err := p.gain(l); err != nil {
			return err
		}
		if l, err = netlink.LinkByIndex(l.Attrs().Index); err != nil {
			return nil // gone again: there will be news
		}
	}
	p.carrier(l.Attrs())
	return nil
}

// gain begins to forward.
func (p *Port) gain(l netlink.Link) error {
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
	p.tell(Event{Kind: PortAppeared})
	return nil
}

// lose ends forwarding.
func (p *Port) lose(why string) {
	if err := errors.Join(p.network.Unplug(), p.plug.restore()); err != nil {
		p.c.Log.Warn("the port was not left as it was", "error", err)
	}
	p.plug = nil
	p.mu.Lock()
	p.status.Present, p.status.Carrier = false, false
	p.counts.gone++
	p.mu.Unlock()
	p.tell(Event{Kind: PortVanished, Detail: why})
}

// carrier notes whether there is a cable, with a device that is switched on.
func (p *Port) carrier(a *netlink.LinkAttrs) {
	if a.Flags&net.FlagUp == 0 { // somebody took it down: it is ours
		if l, err := netlink.LinkByIndex(a.Index); err == nil {
			if err := netlink.LinkSetUp(l); err != nil {
				p.c.Log.Warn("the port was taken down and does not come up", "error", err)
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
		p.tell(Event{Kind: Plugged})
	case before && !now:
		p.tell(Event{Kind: Unplugged})
	}
}
