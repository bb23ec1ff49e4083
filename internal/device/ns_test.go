package device

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestAddressesAreSteady: an address that is still tentative would become
// usable in the middle of a trial, which browsers take for a change of network.
func TestAddressesAreSteady(t *testing.T) {
	inside(t)
	ns, err := NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.Cable("steady0", "eth0"); err != nil {
		t.Fatal(err)
	}
	defer Unplug("steady0")
	if err := ns.Do(func() error {
		if err := Address("eth0", netip.MustParsePrefix("fd00:55::2/64")); err != nil {
			return err
		}
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_V6)
		if err != nil {
			return err
		}
		if len(addresses) != 2 {
			t.Errorf("eth0 has addresses %v, want a link-local one and ours", addresses)
		}
		for _, a := range addresses {
			if a.Flags&unix.IFA_F_TENTATIVE != 0 {
				t.Errorf("address %v is tentative", a)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
