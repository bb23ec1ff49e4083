package reach

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// ThisMachine asks the kernel what this machine is connected to: the addresses of its interfaces, and the networks of
// its routes that lead to no router. With DHCPv6 an address does not name its network, and the route does.
func ThisMachine() (Machine, error) {
	var m Machine
	all, err := net.InterfaceAddrs()
	if err != nil {
		return m, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	for _, one := range all {
		if p, err := netip.ParsePrefix(one.String()); err == nil {
			m.Addrs = append(m.Addrs, p.Addr().Unmap().WithZone(""))
		}
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return m, fmt.Errorf("list the routes of this machine: %w", err)
	}
	for _, r := range routes {
		if r.Dst == nil || r.Gw != nil || r.Via != nil || len(r.MultiPath) > 0 {
			continue
		}
		if p, err := netip.ParsePrefix(r.Dst.String()); err == nil && isNetwork(p) {
			m.Networks = append(m.Networks, p)
		}
	}
	return m, nil
}

// HasIPv4 says whether this machine has a way to the Internet of IPv4. Nothing is sent: the address is nobody's (RFC 5737).
func HasIPv4() bool {
	c, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// isNetwork tells a network from a tunnel that takes half of the Internet, or all.
func isNetwork(p netip.Prefix) bool {
	return p.Addr().Is4() && p.Bits() >= 8 || p.Addr().Is6() && p.Bits() >= 32
}
