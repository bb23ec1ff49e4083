package device

import (
	"net/netip"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"eidetic/internal/rigs/testlab"
)

// TestAddressesAreSteady: a tentative address would become usable during a trial, which
// browsers take for a change of network.
func TestAddressesAreSteady(t *testing.T) {
	inside(t)
	ns, err := NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.cable("steady0", "eth0", netip.Prefix{}); err != nil {
		t.Fatal(err)
	}
	defer Unplug("steady0")
	if err := ns.Address("eth0", "fd00:55::2/64"); err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		var addresses []netlink.Addr
		// The kernel makes an address usable in a work queue, which may be late on a busy
		// machine.
		for deadline := time.Now().Add(testlab.Hang); ; <-time.After(5 * time.Millisecond) {
			if addresses, err = netlink.AddrList(link, netlink.FAMILY_V6); err != nil {
				return err
			}
			if time.Now().After(deadline) || len(addresses) == 2 && !slices.ContainsFunc(addresses, tentative) {
				break
			}
		}
		// Duplicate address detection sends neighbour solicitations for the address.
		counts, err := os.ReadFile("/proc/thread-self/net/dev_snmp6/eth0")
		if err != nil {
			return err
		}
		if asked := regexp.MustCompile(`(?m)^Icmp6OutNeighborSolicits\s+0$`); !asked.Match(counts) {
			t.Errorf("duplicate address detection ran for eth0's addresses:\n%s", counts)
		}
		if len(addresses) != 2 {
			t.Errorf("eth0 has addresses %v, want a link-local one and ours", addresses)
		}
		for _, a := range addresses {
			if tentative(a) {
				t.Errorf("address %v is tentative", a)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func tentative(a netlink.Addr) bool { return a.Flags&unix.IFA_F_TENTATIVE != 0 }
