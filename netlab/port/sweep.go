package port

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// claim reserves the lab interface and the port for this process, in this network
// namespace and for its lifetime, so that it neither sweeps nor takes what another
// process uses. It does so by the names of abstract sockets (unix(7)), of which a
// killed process leaves nothing.
func (p *Port) claim() (undo func() error, err error) {
	var held []net.Listener
	undo = func() error {
		var errs []error
		for _, l := range held {
			errs = append(errs, l.Close())
		}
		return errors.Join(errs...)
	}
	for _, c := range []struct{ name, taken string }{
		{p.names.lab, fmt.Sprintf("%v is the box's address at another port; give this port another gateway", p.names.gateway)},
		{"port " + p.names.device, "another program uses this port for a device: end that program"},
	} {
		l, err := net.Listen("unix", claimOf(c.name))
		if errors.Is(err, unix.EADDRINUSE) {
			return undo, errors.New(c.taken)
		}
		if err != nil {
			return undo, fmt.Errorf("claim %s: %w", c.name, err)
		}
		held = append(held, l)
	}
	return undo, nil
}

// checkInterface refuses an interface that cannot be a device's: the machine's uplink, and one that shares its cable.
func (p *Port) checkInterface() (undo func() error, err error) {
	l, err := netlink.LinkByName(p.names.device)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", p.names.device, err)
	}
	return nil, errors.Join(checkKind(l), checkNoUplink(l))
}

// checkKind refuses a VLAN and the like. What the link sends there passes the queue of the interface below, and what it
// receives has passed that one's offloads.
func checkKind(l netlink.Link) error {
	if !isStacked(l) {
		return nil
	}
	below := "another interface"
	if parent, err := netlink.LinkByIndex(l.Attrs().ParentIndex); err == nil && l.Attrs().NetNsID < 0 {
		below = parent.Attrs().Name
	}
	return fmt.Errorf("%s is a virtual interface (%s) on %s and shares its cable and its queue, so no link is exact there: "+
		"choose a network port, and have the switch deliver a VLAN to it without tags", l.Attrs().Name, l.Type(), below)
}

// isStacked says whether an interface sends by another one, its parent. The other end of a veth pair is no such parent.
func isStacked(l netlink.Link) bool {
	return slices.Contains([]string{"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"}, l.Type()) && l.Attrs().ParentIndex != 0
}

// checkNoUplink refuses the interface of the machine's default route: it leads to no device, and without it the machine
// could not be reached. A bridge, a bond or a VLAN may have that route while its frames pass the port. Of IPv6 only a
// machine's last default route counts: a device that announces itself as a router gives its port one.
func checkNoUplink(port netlink.Link) error {
	name := port.Attrs().Name
	all, err := listWithRetry(netlink.LinkList)
	if err != nil {
		return fmt.Errorf("list the network interfaces: %w", err)
	}
	routes, err := listWithRetry(func() ([]netlink.Route, error) { return netlink.RouteList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list the routes of this machine: %w", err)
	}
	var here error
	elsewhere := false
	for _, r := range routes {
		if r.Type != unix.RTN_UNICAST || r.Dst != nil && !r.Dst.IP.IsUnspecified() {
			continue
		}
		hops := r.MultiPath
		if len(hops) == 0 {
			hops = []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex}}
		}
		for _, hop := range hops {
			if !carriers(all, hop.LinkIndex)[port.Attrs().Index] {
				elsewhere = true
				continue
			}
			by := name
			if up, err := netlink.LinkByIndex(hop.LinkIndex); err == nil && up.Attrs().Name != name {
				by = up.Attrs().Name + ", whose packets pass " + name
			}
			here = fmt.Errorf("the machine's default route uses %s, so this port leads to the network and "+
				"not to a device: choose another port, or remove that route", by)
			if r.Family == netlink.FAMILY_V4 {
				return here
			}
		}
	}
	if elsewhere {
		return nil
	}
	return here
}

// carriers are an interface and those that its packets pass: the ports of a bridge or a bond, and what a VLAN is on.
func carriers(all []netlink.Link, index int) map[int]bool {
	found := map[int]bool{index: true}
	for n := 0; n < len(found); {
		n = len(found)
		for _, l := range all {
			a := l.Attrs()
			if a.MasterIndex != 0 && found[a.MasterIndex] {
				found[a.Index] = true
			}
			if found[a.Index] && isStacked(l) && a.NetNsID < 0 {
				found[a.ParentIndex] = true
			}
		}
	}
	return found
}

// sweep removes what a killed run of this port left behind.
func (p *Port) sweep() (undo func() error, err error) {
	if err := deleteTables(p.names.table); err != nil {
		return nil, err
	}
	if err := p.unroute(); err != nil {
		return nil, err
	}
	for _, name := range []string{p.names.lab, p.names.inner} {
		l, err := netlink.LinkByName(name)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for %s: %w", name, err)
		}
		if !p.isOwn(l) {
			return nil,
				fmt.Errorf(
					"an interface named %s exists, and no run of this port made it: rename it, or give this port another gateway",
					name,
				)
		}
		if err := netlink.LinkDel(l); err != nil {
			return nil, fmt.Errorf("remove the %s of an earlier run: %w", name, err)
		}
	}
	return nil, nil
}

// isOwn reports whether a lab interface is this port's. A run that was killed before
// it set the alias is recognised by the MAC address.
func (p *Port) isOwn(l netlink.Link) bool {
	name := l.Attrs().Name
	return l.Attrs().Alias == alias ||
		l.Type() == "veth" && l.Attrs().HardwareAddr.String() == hardwareAddr(p.names.device+" "+name).String()
}

// sweepOthers removes what killed runs with other gateways left behind: their tables
// would drop everything on an interface, which may be this port's, forever. Failures
// are logged and do not prevent a start.
func (p *Port) sweepOthers() (undo func() error, err error) {
	list, err := listWithRetry(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	for _, l := range list {
		if l.Attrs().Alias != alias || l.Attrs().Name == p.names.lab {
			continue
		}
		for b := range 256 {
			n, err := namesOf(p.names.device, netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, byte(b), 1}), 24), false)
			if err != nil || n.lab != l.Attrs().Name { // the inner end goes with the outer one
				continue
			}
			if err := (&Port{c: p.c, names: n}).sweepDead(); err != nil {
				p.c.Log.Warn("what another run left behind is not removed", "interface", n.lab, "error", err)
			}
		}
	}
	return nil, nil
}

// sweepDead sweeps unless a living process has claimed the lab interface.
func (p *Port) sweepDead() error {
	held, err := net.Listen("unix", claimOf(p.names.lab))
	if errors.Is(err, unix.EADDRINUSE) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = p.sweep()
	return errors.Join(err, deleteTables(p.names.table+"-port"), held.Close())
}

// claimOf returns the name of the abstract socket that reserves something.
func claimOf(what string) string { return "@eidetic " + what }
