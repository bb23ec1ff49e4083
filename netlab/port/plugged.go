package port

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"eidetic/netlab/link/packet"
)

// plugged is the port's interface while the link uses it, with its former settings.
type plugged struct {
	name  string
	index int
	table string

	up, arp  bool
	ipv6     string // value of disable_ipv6; empty without IPv6
	offloads []string
	addrs    []netlink.Addr
	routes   []netlink.Route
}

// take makes an interface the device's side of the link. It removes the addresses,
// so that the kernel routes nothing to the interface.
func take(l netlink.Link, f *filter) (p *plugged, err error) {
	a := l.Attrs()
	p = &plugged{name: a.Name, index: a.Index, table: f.names.table + "-port", up: a.Flags&net.FlagUp != 0,
		arp: a.RawFlags&unix.IFF_NOARP == 0}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.restore())
		}
	}()
	if b, err := os.ReadFile(p.ipv6File()); err == nil {
		p.ipv6 = strings.TrimSpace(string(b))
	}
	if p.offloads, err = packet.Offloads(p.name); err != nil {
		return p, err
	}
	if p.addrs, err = listWithRetry(func() ([]netlink.Addr, error) { return netlink.AddrList(l, netlink.FAMILY_ALL) }); err != nil {
		return p, fmt.Errorf("list the addresses of %s: %w", p.name, err)
	}
	if err := p.saveRoutes(l); err != nil {
		return p, err
	}
	if err := deleteTables(p.table); err != nil {
		return p, err
	}
	if err := f.guard(p.name, p.table); err != nil {
		return p, err
	}
	for i := range p.addrs {
		if err := netlink.AddrDel(l, &p.addrs[i]); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return p, fmt.Errorf("remove the address %v from %s: %w", p.addrs[i].IPNet, p.name, err)
		}
	}
	return p, nil
}

func (p *plugged) ipv6File() string { return "/proc/sys/net/ipv6/conf/" + p.name + "/disable_ipv6" }

// saveRoutes keeps the routes that somebody set. The kernel makes its own again.
func (p *plugged) saveRoutes(l netlink.Link) error {
	all, err := listWithRetry(func() ([]netlink.Route, error) { return netlink.RouteList(l, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list the routes of %s: %w", p.name, err)
	}
	for _, r := range all {
		if r.Protocol != unix.RTPROT_KERNEL && r.Protocol != unix.RTPROT_RA {
			p.routes = append(p.routes, r)
		}
	}
	return nil
}

// restore gives the interface its former settings, if it still exists.
func (p *plugged) restore() error {
	errs := []error{deleteTables(p.table)}
	l, err := netlink.LinkByIndex(p.index)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return errors.Join(errs...)
	}
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("find %s to restore it: %w", p.name, err))...)
	}
	p.name = l.Attrs().Name // it may have been renamed
	check := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("restore %s of %s: %w", what, p.name, err))
		}
	}
	if p.arp {
		check("ARP", netlink.LinkSetARPOn(l))
	}
	if p.ipv6 != "" {
		err := os.WriteFile(p.ipv6File(), []byte(p.ipv6), 0)
		if !errors.Is(err, unix.EROFS) && !errors.Is(err, fs.ErrPermission) { // where it was not changed either
			check("IPv6", err)
		}
	}
	check("the offloads", packet.EnableOffloads(p.name, p.offloads))
	for i := range p.addrs {
		a := p.addrs[i]
		if a.IP.IsLinkLocalUnicast() && a.IP.To4() == nil {
			continue // the kernel makes it again
		}
		// Lifetimes continue; the library writes "forever" as 0.
		if err := netlink.AddrReplace(l, &a); err != nil {
			check("an address", err)
		}
	}
	for i := range p.routes {
		if p.up {
			check("a route", netlink.RouteReplace(&p.routes[i]))
		}
	}
	if !p.up {
		check("down", netlink.LinkSetDown(l))
	}
	return errors.Join(errs...)
}
