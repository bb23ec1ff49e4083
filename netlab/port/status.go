package port

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"eidetic/internal/lab"
	"eidetic/netlab/dhcp"
)

// Kind of an Event.
type Kind string

// Kinds of events.
const (
	PortAppeared Kind = "port-appeared" // the interface exists and the link uses it
	PortVanished Kind = "port-vanished" // a USB adapter was taken out
	Plugged      Kind = "plugged"       // a cable to a device that is on
	Unplugged    Kind = "unplugged"
	Leased       Kind = "leased" // the device got an address, or renewed its lease
	// Doubted: a request for a valid lease has the same MAC address and another
	// signature (see dhcp.Config.OnDoubt).
	Doubted Kind = "doubted"
	Failed  Kind = "failed" // the port cannot be used; Detail says why
)

// Event is one event at a port.
type Event struct {
	Time   lab.Time   `json:"time_ns"`
	Kind   Kind       `json:"kind"`
	Lease  dhcp.Lease `json:"lease,omitzero"` // of Leased
	Detail string     `json:"detail,omitempty"`
}

// Status is the state of a port.
type Status struct {
	Interface string       `json:"interface"`
	Lab       string       `json:"lab"` // the box's end of the link: "lab0"
	Gateway   netip.Prefix `json:"gateway"`
	Gateway6  netip.Prefix `json:"gateway6,omitzero"`
	Present   bool         `json:"present"` // the interface exists and the link uses it
	Carrier   bool         `json:"carrier"` // a device is plugged in and on
	// Leases are the valid ones, sorted by address.
	Leases []dhcp.Lease `json:"leases,omitempty"`
	// Problem is why the link does not use an interface that exists. It is tried
	// again.
	Problem string `json:"problem,omitempty"`
	// Flaps counts how often the cable was lost.
	Flaps int `json:"flaps"`
	// Strays counts packets to destinations that the device must not reach.
	Strays uint64 `json:"strays"`
	// Limits lists, in words, what this machine cannot do for the port.
	Limits []string `json:"limits,omitempty"`
}

// Status returns the port's state.
func (p *Port) Status() (Status, error) {
	p.mu.Lock()
	s := p.status
	p.mu.Unlock()
	s.Leases = p.dhcp.Leases()
	strays, err := p.filter.strays()
	s.Strays = strays
	return s, err
}

// emit logs an event and passes it to OnEvent.
func (p *Port) emit(e Event) {
	e.Time = p.c.Clock()
	p.c.Log.Info("port", "event", e.Kind, "mac", e.Lease.MAC, "address", e.Lease.Addr, "detail", e.Detail)
	if p.c.OnEvent != nil {
		p.c.OnEvent(e)
	}
}

func (p *Port) leased(l dhcp.Lease) { p.emit(Event{Kind: Leased, Lease: l}) }

func (p *Port) doubted(l dhcp.Lease) {
	p.mu.Lock()
	p.counts.doubts++
	p.mu.Unlock()
	p.emit(Event{Kind: Doubted, Lease: l})
}

// counts are the numbers of events that make a trial invalid.
type counts struct {
	gone, unplugged, doubts int
}

// Watch notes what makes a trial invalid, from the trial's start.
type Watch struct {
	p     *Port
	from  counts
	since lab.Time
}

// Watch starts a Watch.
func (p *Port) Watch() *Watch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Watch{p, p.counts, p.c.Clock()}
}

// Reasons returns why a trial since Watch is invalid. The list is empty when the
// port noticed nothing.
func (w *Watch) Reasons() (why []string) {
	p := w.p
	p.mu.Lock()
	now, present, carrier := p.counts, p.status.Present, p.status.Carrier
	p.mu.Unlock()
	if n := now.gone - w.from.gone; n > 0 {
		why = append(why, fmt.Sprintf("the port %s went away (%d times)", p.names.device, n))
	} else if !present {
		why = append(why, fmt.Sprintf("the port %s is not there", p.names.device))
	}
	if n := now.unplugged - w.from.unplugged; n > 0 {
		why = append(why, fmt.Sprintf("the device's cable was lost (%d times)", n))
	} else if present && !carrier {
		why = append(why, "no device is plugged in")
	}
	if n := now.doubts - w.from.doubts; n > 0 {
		why = append(why,
			fmt.Sprintf("the device's DHCP requests changed (%d times): two devices have one MAC address, or it was reinstalled", n))
	}
	if reason := p.network.LinkReport().Invalid(); reason != "" {
		why = append(why, reason)
	}
	macs, err := p.activeDevices(p.c.Clock().Sub(w.since))
	if err != nil {
		why = append(why, err.Error())
	} else if len(macs) > 1 {
		why = append(why, fmt.Sprintf("%d devices were active at this port (%v): plug in only one", len(macs), macs))
	}
	return why
}

// tick is the unit of time in the kernel's neighbour tables (USER_HZ).
const tick = time.Second / 100

// activeDevices lists the MAC addresses whose presence the kernel has confirmed
// within a time.
func (p *Port) activeDevices(within time.Duration) (macs []string, err error) {
	l, err := netlink.LinkByName(p.names.lab)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", p.names.lab, err)
	}
	list, err := listWithRetry(func() ([]netlink.Neigh, error) { return netlink.NeighList(l.Attrs().Index, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list the neighbours of %s: %w", p.names.lab, err)
	}
	for _, n := range list {
		if len(n.HardwareAddr) != 6 || n.State&(netlink.NUD_FAILED|netlink.NUD_INCOMPLETE|netlink.NUD_NOARP|netlink.NUD_PERMANENT) != 0 {
			continue
		}
		if time.Duration(n.Confirmed)*tick <= within && !slices.Contains(macs, n.HardwareAddr.String()) {
			macs = append(macs, n.HardwareAddr.String())
		}
	}
	slices.Sort(macs)
	return macs, nil
}
