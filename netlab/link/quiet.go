package link

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// quiet makes an interface that only carries frames for others say nothing by
// itself: no ARP (the kernel would answer for the gateway's address and so
// lead the device around the link), no IPv6, offloads off.
func quiet(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("link: interface %q: %w", name, err)
	}
	if err := netlink.LinkSetARPOff(l); err != nil {
		return fmt.Errorf("link: switch ARP of %s off: %w", name, err)
	}
	err = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EROFS) { // no IPv6 here, or a read-only /proc
		return fmt.Errorf("link: switch IPv6 of %s off: %w", name, err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("link: bring %s up: %w", name, err)
	}
	if err := DisableOffloads(name); err != nil {
		return err
	}
	// The other end of a veth pair is what sends; if it is in this namespace
	// it is ours as well (lab0).
	if veth, ok := l.(*netlink.Veth); ok {
		peer, err := netlink.LinkByIndex(veth.Attrs().ParentIndex)
		if err == nil && peer.Type() == "veth" && peer.Attrs().ParentIndex == veth.Attrs().Index {
			return DisableOffloads(peer.Attrs().Name)
		}
	}
	return nil
}
