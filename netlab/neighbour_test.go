package netlab

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"eidetic/netlab/nstest"
)

// TestDeviceAt: all addresses of a device are of one name, and an address that nobody on a cable has is its own.
func TestDeviceAt(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	device, box := nstest.New(t), nstest.Here(t)
	nstest.Veth(t, device, "eth0", box, "lab0")
	box.Address(t, "lab0", "192.168.77.1/24")
	lab0, err := netlink.LinkByName("lab0")
	if err != nil {
		t.Fatal(err)
	}
	one, other := net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
	for address, mac := range map[string]net.HardwareAddr{"192.168.77.2": one, "fd00:77::2": one, "fe80::2": one, "192.168.77.3": other} {
		family := netlink.FAMILY_V4
		if netip.MustParseAddr(address).Is6() {
			family = netlink.FAMILY_V6
		}
		if err := netlink.NeighSet(&netlink.Neigh{
			LinkIndex: lab0.Attrs().Index, Family: family, State: netlink.NUD_REACHABLE, IP: net.ParseIP(address), HardwareAddr: mac,
		}); err != nil {
			t.Fatal(err)
		}
	}
	for address, want := range map[string]string{
		"192.168.77.2": one.String(), "fd00:77::2": one.String(), "fe80::2%lab0": one.String(), "192.168.77.3": other.String(),
		"192.168.77.4": "192.168.77.4", "2001:db8::1": "2001:db8::1",
	} {
		if got := deviceAt(netip.MustParseAddr(address)); got != want {
			t.Errorf("deviceAt(%s) = %s, want %s", address, got, want)
		}
	}
}
