package netlab

import (
	"net/netip"

	"github.com/vishvananda/netlink"
)

// deviceAt names the device on a cable that has an address: by the MAC address that the kernel knows it by. A device
// with IPv6 has several addresses, and uses the one or the other for its next connection.
func deviceAt(a netip.Addr) string {
	family := netlink.FAMILY_V4
	if a.Is6() {
		family = netlink.FAMILY_V6
	}
	const everyInterface = 0
	list, err := netlink.NeighList(everyInterface, family)
	if err != nil {
		return a.String()
	}
	for _, n := range list {
		if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == a.WithZone("") && len(n.HardwareAddr) > 0 {
			return n.HardwareAddr.String()
		}
	}
	return a.String()
}
