package port

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// claim makes the lab interface and the port ours, in this network namespace
// and for as long as this process lives: what another one uses is neither swept
// nor taken. Names of sockets that are in no file system do that, without
// anything that a killed process could leave.
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
		{p.names.lab, fmt.Sprintf("%v is the box's address at another port; give this one another gateway", p.names.gateway)},
		{"port " + p.names.device, "it leads to another device already: end the program that uses it"},
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

// spareUplink refuses an interface by which the machine reaches everybody: it
// leads to no device, and without its addresses the machine is gone.
func (p *Port) spareUplink() (undo func() error, err error) {
	l, err := netlink.LinkByName(p.names.device)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", p.names.device, err)
	}
	routes, err := whole(func() ([]netlink.Route, error) { return netlink.RouteList(l, netlink.FAMILY_V4) })
	if err != nil {
		return nil, fmt.Errorf("list the routes of %s: %w", p.names.device, err)
	}
	for _, r := range routes {
		if r.Dst == nil || r.Dst.IP.IsUnspecified() {
			return nil, fmt.Errorf("the machine's default route goes by %s, so it leads to the network and to no device: name another port, or remove that route", p.names.device)
		}
	}
	return nil, nil
}

// sweep removes what a run that was killed left behind.
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
		if !p.ours(l) {
			return nil, fmt.Errorf("interface %s is there already and not ours: rename it, or give this port another gateway", name)
		}
		if err := netlink.LinkDel(l); err != nil {
			return nil, fmt.Errorf("remove the %s of a run before: %w", name, err)
		}
	}
	return nil, nil
}

// ours knows a lab interface of this port, also where a run was killed before it
// was given its alias.
func (p *Port) ours(l netlink.Link) bool {
	name := l.Attrs().Name
	return l.Attrs().Alias == alias || l.Type() == "veth" && l.Attrs().HardwareAddr.String() == hardwareAddr(p.names.device+" "+name).String()
}

// sweepOthers removes what was left behind at other addresses than ours, and
// has nobody who lives: an interface of a device that was there, say ours, would
// be deaf for ever. What does not go is no reason not to start.
func (p *Port) sweepOthers() (undo func() error, err error) {
	list, err := whole(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	for _, l := range list {
		if l.Attrs().Alias != alias || l.Attrs().Name == p.names.lab {
			continue
		}
		for b := range 256 {
			n, err := namesOf(p.names.device, netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, byte(b), 1}), 24), false)
			if err != nil || n.lab != l.Attrs().Name { // the inner end goes with the outer
				continue
			}
			if err := (&Port{c: p.c, names: n}).sweepDead(); err != nil {
				p.c.Log.Warn("what another run left behind is not removed", "interface", n.lab, "error", err)
			}
		}
	}
	return nil, nil
}

// sweepDead sweeps if nobody lives who claimed the lab interface.
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

// claimOf is the name of the socket that says that something is in use.
func claimOf(what string) string { return "@eidetic " + what }
