package port

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// addrGenModeNone is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h.
const addrGenModeNone = 1

// mtu of the cable is Ethernet's.
const mtu = 1500

// linkLocal is the box's address on every lab interface, the source of its router
// advertisements.
var linkLocal = netip.MustParsePrefix("fe80::1/64") // constant

// makeLab makes the veth pair whose outer end has the gateway's addresses.
func (p *Port) makeLab() (undo func() error, err error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = p.names.lab, mtu, hardwareAddr(p.names.device+" "+p.names.lab)
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: p.names.inner, PeerHardwareAddr: hardwareAddr(p.names.device + " " + p.names.inner)}
	if err := netlink.LinkAdd(veth); err != nil {
		return nil, fmt.Errorf("make %s (needs CAP_NET_ADMIN): %w", p.names.lab, err)
	}
	undo = func() error {
		if err := netlink.LinkDel(veth); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("remove %s: %w", p.names.lab, err)
		}
		return nil
	}
	for _, name := range []string{p.names.inner, p.names.lab} { // inner first, so that lab has a carrier
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetAlias(l, alias)
		}
		if err == nil {
			// The kernel must not make a link-local address: linkLocal is one.
			if err = netlink.LinkSetIP6AddrGenMode(l, addrGenModeNone); errors.Is(err, unix.EAFNOSUPPORT) ||
				errors.Is(err, unix.EOPNOTSUPP) {
				err = nil // a kernel without IPv6
			}
		}
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			return undo, fmt.Errorf("set up %s: %w", name, err)
		}
	}
	// Every address is the box's (see route), and the kernel would answer ARP for each: a device that announces its own
	// would take the answer for a conflict, and give the address up (RFC 5227).
	if err := p.set("ipv4", "arp_ignore", "1"); err != nil {
		return undo, fmt.Errorf("leave the addresses on %s to its devices: %w", p.names.lab, err)
	}
	addrs := []netip.Prefix{p.names.gateway}
	if p.names.gateway6.IsValid() {
		// The box must take no router and no address from a device. Where /proc is
		// read-only, only the filter drops the device's advertisements.
		for _, name := range []string{"accept_ra", "accept_redirects", "autoconf"} {
			if err := p.set("ipv6", name, "0"); err != nil {
				return undo, fmt.Errorf("prepare %s for IPv6: %w", p.names.lab, err)
			}
		}
		addrs = append(addrs, p.names.gateway6, linkLocal)
	}
	for _, a := range addrs {
		if err := address(veth, a); err != nil {
			return undo, err
		}
	}
	return undo, nil
}

// set sets a kernel parameter of the lab interface, unless /proc is read-only.
func (p *Port) set(family, name, value string) error {
	err := os.WriteFile("/proc/sys/net/"+family+"/conf/"+p.names.lab+"/"+name, []byte(value), 0)
	if errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

func address(l netlink.Link, p netip.Prefix) error {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD // nobody else on the cable has the address
	}
	if err := netlink.AddrAdd(l, a); err != nil {
		return fmt.Errorf("give %s the address %v: %w", l.Attrs().Name, p, err)
	}
	return nil
}

// hardwareAddr derives a MAC address from a name. It is the same at every start,
// because devices cache it.
func hardwareAddr(name string) net.HardwareAddr {
	sum := sha256.Sum256([]byte(name))
	sum[0] = sum[0]&^1 | 2 // locally administered, one interface
	return sum[:6]
}

// families returns the address families that the port routes.
func (p *Port) families() []int {
	if p.names.gateway6.IsValid() {
		return []int{unix.AF_INET, unix.AF_INET6}
	}
	return []int{unix.AF_INET}
}

// route delivers every packet from the lab interface to this host, whatever its
// destination (AnyIP), and does not affect other traffic.
func (p *Port) route() (undo func() error, err error) {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return nil, fmt.Errorf("bring lo up: %w", err)
	}
	for _, family := range p.families() {
		everything := &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
		if family == unix.AF_INET6 {
			everything = &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
		}
		if err := netlink.RouteReplace(&netlink.Route{
			LinkIndex: lo.Attrs().Index, Type: unix.RTN_LOCAL, Table: p.names.routes, Scope: netlink.SCOPE_HOST, Dst: everything, Family: family,
		}); err != nil {
			return p.unroute, fmt.Errorf("route to this host: %w", err)
		}
		if err := netlink.RuleAdd(p.rule(family)); err != nil {
			return p.unroute, fmt.Errorf("route the packets that %s receives: %w", p.names.lab, err)
		}
	}
	return p.unroute, nil
}

// routeBack keeps packets to the device's networks on the lab interface, whatever routes the machine has: a lease or a
// router of the uplink can bring one to a part of them, and whoever answers there would be taken for the device.
func (p *Port) routeBack() (undo func() error, err error) {
	l, err := netlink.LinkByName(p.names.lab)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", p.names.lab, err)
	}
	for _, family := range p.families() {
		route := &netlink.Route{LinkIndex: l.Attrs().Index, Table: p.names.back, Dst: p.deviceNetwork(family), Family: family}
		if family == unix.AF_INET {
			route.Scope, route.Src = netlink.SCOPE_LINK, p.names.gateway.Addr().AsSlice()
		}
		if err := netlink.RouteReplace(route); err != nil {
			return p.unroute, fmt.Errorf("route to the device: %w", err)
		}
		if err := netlink.RuleAdd(p.ruleBack(family)); err != nil {
			return p.unroute, fmt.Errorf("route the packets to %v: %w", route.Dst, err)
		}
	}
	return p.unroute, nil
}

// deviceNetwork is the network of a family that the device is in.
func (p *Port) deviceNetwork(family int) *net.IPNet {
	prefix := p.names.gateway.Masked()
	if family == unix.AF_INET6 {
		prefix = p.names.gateway6.Masked()
	}
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

func (p *Port) rule(family int) *netlink.Rule {
	r := netlink.NewRule()
	r.Family, r.IifName, r.Table, r.Priority = family, p.names.lab, p.names.routes, p.names.routes
	return r
}

func (p *Port) ruleBack(family int) *netlink.Rule {
	r := netlink.NewRule()
	r.Family, r.Dst, r.Table, r.Priority = family, p.deviceNetwork(family), p.names.back, p.names.back
	return r
}

// unroute removes the rules and their tables.
func (p *Port) unroute() error {
	var errs []error
	for _, family := range p.families() {
		for _, rule := range []*netlink.Rule{p.rule(family), p.ruleBack(family)} {
			errs = append(errs, p.unrouteBy(rule))
		}
	}
	return errors.Join(errs...)
}

// unrouteBy removes a rule and the table that it leads to.
func (p *Port) unrouteBy(rule *netlink.Rule) error {
	var errs []error
	for {
		err := netlink.RuleDel(rule)
		if err == nil {
			continue // killed runs can have left several
		}
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EAFNOSUPPORT) {
			errs = append(errs, fmt.Errorf("remove the rule of %s: %w", p.names.lab, err))
		}
		break
	}
	list, err := listWithRetry(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(rule.Family, &netlink.Route{Table: rule.Table}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("list the routes of %s: %w", p.names.lab, err))
	}
	for _, r := range list {
		if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("remove a route of %s: %w", p.names.lab, err))
		}
	}
	return errors.Join(errs...)
}
