package device

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a network namespace held by a descriptor; it ends with the
// last of the descriptor, the processes and the sockets in it.
type Namespace struct {
	handle netns.NsHandle
}

// NewNamespace makes an empty network namespace whose loopback is up.
func NewNamespace() (*Namespace, error) {
	n := &Namespace{handle: netns.None()}
	err := onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making a network namespace: %w", err)
		}
		handle, err := netns.Get()
		if err != nil {
			return fmt.Errorf("holding a network namespace: %w", err)
		}
		n.handle = handle
		if err := steadyAddresses(); err != nil {
			return err
		}
		return linkUp("lo")
	})
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// steadyAddresses lets interfaces of the current thread's namespace have their
// IPv6 addresses at once. With duplicate address detection they would come a
// second or two later, and a browser that sees its addresses change drops all
// its connections (ERR_NETWORK_CHANGED) in the middle of a page.
func steadyAddresses() error {
	for _, conf := range []string{"all", "default"} {
		file := "/proc/sys/net/ipv6/conf/" + conf + "/accept_dad"
		if err := os.WriteFile(file, []byte("0\n"), 0o644); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("switching duplicate address detection off: %w", err)
		}
	}
	return nil
}

// Here holds the namespace that the process is in.
func Here() (*Namespace, error) {
	handle, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("holding the own network namespace: %w", err)
	}
	return &Namespace{handle}, nil
}

// Do runs fn on a thread inside the namespace. Processes that fn starts and
// sockets that it opens stay there.
func (n *Namespace) Do(fn func() error) error {
	return onOwnThread(func() error {
		if err := netns.Set(n.handle); err != nil {
			return fmt.Errorf("entering a network namespace: %w", err)
		}
		return fn()
	})
}

// Close lets go of the namespace.
func (n *Namespace) Close() error {
	if !n.handle.IsOpen() {
		return nil
	}
	return n.handle.Close()
}

// onOwnThread runs fn on an operating system thread that ends with it, so that
// no other goroutine ever runs in the namespace fn moved it to.
func onOwnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime then ends the thread
		done <- fn()
	}()
	return <-done
}

// Cable joins the current namespace to n by a veth pair: here is the name of
// our end, there the name of the other.
func (n *Namespace) Cable(here, there string) error {
	pair := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: here, MTU: 1500},
		PeerName:      there,
		PeerNamespace: netlink.NsFd(int(n.handle)),
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("making the cable %s to %s: %w", here, there, err)
	}
	if err := linkUp(here); err != nil {
		return err
	}
	return n.Do(func() error { return linkUp(there) })
}

// Unplug removes the cable whose end here has this name.
func Unplug(here string) error {
	link, err := netlink.LinkByName(here)
	if err != nil {
		return fmt.Errorf("unplugging %s: %w", here, err)
	}
	if err := netlink.LinkDel(link); err != nil {
		return fmt.Errorf("unplugging %s: %w", here, err)
	}
	return nil
}

// Address gives addresses, with their prefix lengths, to an interface of the
// current namespace.
func Address(name string, addresses ...netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", name, err)
	}
	for _, a := range addresses {
		addr, err := netlink.ParseAddr(a.String())
		if err != nil {
			return fmt.Errorf("address %s: %w", a, err)
		}
		if a.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD // nobody else is on this cable to have it
		}
		if err := netlink.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("giving %s to %s: %w", a, name, err)
		}
	}
	return nil
}

// DefaultRoute sends everything of the current namespace to the gateway.
func DefaultRoute(gateway netip.Addr) error {
	if err := netlink.RouteAdd(&netlink.Route{Gw: gateway.AsSlice()}); err != nil {
		return fmt.Errorf("routing through %s: %w", gateway, err)
	}
	return nil
}

func linkUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bringing up %s: %w", name, err)
	}
	return nil
}
