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

// What happens at a port.
const (
	PortAppeared Kind = "port-appeared" // the interface is there, and ours
	PortVanished Kind = "port-vanished" // a USB adapter was taken out
	Plugged      Kind = "plugged"       // a cable, with a device that is on
	Unplugged    Kind = "unplugged"
	Leased       Kind = "leased" // the device has, or keeps, its address
	// Doubted: the device that holds the lease asks as another one would. It
	// was set up anew, or two have one MAC address.
	Doubted Kind = "doubted"
	Failed  Kind = "failed" // the port cannot be used; Detail says why
)

// Event is something that happened at a port.
type Event struct {
	Time   lab.Time   `json:"time_ns"`
	Kind   Kind       `json:"kind"`
	Lease  dhcp.Lease `json:"lease,omitzero"` // of Leased
	Detail string     `json:"detail,omitempty"`
}

// Status is a port as it is now.
type Status struct {
	Interface string       `json:"interface"`
	Lab       string       `json:"lab"` // the box's end of the link: "lab0"
	Gateway   netip.Prefix `json:"gateway"`
	Gateway6  netip.Prefix `json:"gateway6,omitzero"`
	Present   bool         `json:"present"` // the interface exists and is ours
	Carrier   bool         `json:"carrier"` // a device is plugged in and on
	// Leases are those that hold, by address.
	Leases []dhcp.Lease `json:"leases,omitempty"`
	// Problem says why an interface that exists is not ours; it is tried again.
	Problem string `json:"problem,omitempty"`
	// Flaps counts how often the cable was lost.
	Flaps int `json:"flaps"`
	// Strays counts packets that were for nobody whom the device may reach.
	Strays uint64 `json:"strays"`
	// Limits says what this machine cannot do for the port, in words.
	Limits []string `json:"limits,omitempty"`
}

// Status tells how the port is.
func (p *Port) Status() (Status, error) {
	p.mu.Lock()
	s := p.status
	p.mu.Unlock()
	s.Leases = p.dhcp.Leases()
	strays, err := p.filter.strays()
	s.Strays = strays
	return s, err
}

func (p *Port) tell(e Event) {
	e.Time = p.c.Clock()
	p.c.Log.Info("port", "event", e.Kind, "mac", e.Lease.MAC, "address", e.Lease.Addr, "detail", e.Detail)
	if p.c.OnEvent != nil {
		p.c.OnEvent(e)
	}
}

func (p *Port) leased(l dhcp.Lease) { p.tell(Event{Kind: Leased, Lease: l}) }

func (p *Port) doubted(l dhcp.Lease) {
	p.mu.Lock()
	p.counts.doubts++
	p.mu.Unlock()
	p.tell(Event{Kind: Doubted, Lease: l})
}

// counts grow with each thing that spoils a trial.
type counts struct {
	gone, unplugged, doubts int
}

// Watch is a trial's, from its start.
type Watch struct {
	p     *Port
	from  counts
	since lab.Time
}

// Watch begins to look for what would spoil a trial.
func (p *Port) Watch() *Watch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Watch{p, p.counts, p.c.Clock()}
}

// Reasons tell why a trial since Watch is not valid; none means that the port
// knows of nothing.
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
		why = append(why, fmt.Sprintf("the device spoke in another voice (%d times): two with one MAC address, or one that was set up anew", n))
	}
	if reason := p.network.LinkReport().Invalid(); reason != "" {
		why = append(why, reason)
	}
	macs, err := p.heardFrom(p.c.Clock().Sub(w.since))
	if err != nil {
		why = append(why, err.Error())
	} else if len(macs) > 1 {
		why = append(why, fmt.Sprintf("%d devices spoke at this port (%v): plug in one alone", len(macs), macs))
	}
	return why
}

// ticks of the kernel's time in neighbour tables, USER_HZ.
const tick = time.Second / 100

// heardFrom lists the hardware addresses that proved to be there within a time.
func (p *Port) heardFrom(within time.Duration) (macs []string, err error) {
	l, err := netlink.LinkByName(p.names.lab)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", p.names.lab, err)
	}
	list, err := whole(func() ([]netlink.Neigh, error) { return netlink.NeighList(l.Attrs().Index, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list who is at %s: %w", p.names.lab, err)
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
