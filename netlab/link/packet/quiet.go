package packet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// quiet keeps the kernel from sending on an interface that only carries frames
// for others: ARP off (the kernel would answer for the gateway's address, and the
// device's packets would then bypass the link), IPv6 off, offloads off.
func quiet(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("link: interface %q: %w", name, err)
	}
	if err := netlink.LinkSetARPOff(l); err != nil {
		return fmt.Errorf("link: switch ARP of %s off: %w", name, err)
	}
	err = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EROFS) { // this kernel has no IPv6, or /proc is read-only
		return fmt.Errorf("link: switch IPv6 of %s off: %w", name, err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("link: bring %s up: %w", name, err)
	}
	if err := DisableOffloads(name); err != nil {
		return err
	}
	// On a veth pair the other end sends. If that is in this namespace, it is
	// lab0, whose offloads must be off as well.
	if veth, ok := l.(*netlink.Veth); ok {
		peer, err := netlink.LinkByIndex(veth.Attrs().ParentIndex)
		if err == nil && peer.Type() == "veth" && peer.Attrs().ParentIndex == veth.Attrs().Index {
			return DisableOffloads(peer.Attrs().Name)
		}
	}
	return nil
}
