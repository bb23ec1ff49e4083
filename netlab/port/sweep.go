package port

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

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

// checkNoUplink refuses the interface of the machine's default route: it leads to no
// device, and without its addresses the machine could not be reached.
func (p *Port) checkNoUplink() (undo func() error, err error) {
	l, err := netlink.LinkByName(p.names.device)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", p.names.device, err)
	}
	routes, err := listWithRetry(func() ([]netlink.Route, error) { return netlink.RouteList(l, netlink.FAMILY_V4) })
	if err != nil {
		return nil, fmt.Errorf("list the routes of %s: %w", p.names.device, err)
	}
	for _, r := range routes {
		if r.Dst == nil || r.Dst.IP.IsUnspecified() {
			return nil, fmt.Errorf("the machine's default route uses %s, so this port leads to the network and "+
				"not to a device: choose another port, or remove that route", p.names.device)
		}
	}
	return nil, nil
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
