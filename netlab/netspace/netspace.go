// Package netspace makes small networks of namespaces inside this process's
// own: in go names and addresses, out come network namespaces joined by veth
// pairs, which vanish with their last user. It uses vishvananda/netlink and netns;
// see network_namespaces(7) and veth(4).
package netspace

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a network namespace. Close it when it is no longer needed.
type Namespace struct {
	h netns.NsHandle
	// Netlink configures the namespace; any goroutine may use it.
	Netlink *netlink.Handle
}

// Here returns the namespace that this process runs in.
func Here() (*Namespace, error) {
	h, err := current()
	if err != nil {
		return nil, err
	}
	return wrap(h)
}

// current opens this thread's namespace. The path is valid in every process
// namespace; netns.Get's path has our process number, which can differ from the
// one in /proc.
func current() (netns.NsHandle, error) {
	h, err := netns.GetFromPath("/proc/thread-self/ns/net")
	if err != nil {
		return h, fmt.Errorf("open this network namespace: %w", err)
	}
	return h, nil
}

// New makes a network namespace with lo up. It needs CAP_SYS_ADMIN here.
func New() (*Namespace, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := current()
	if err != nil {
		return nil, err
	}
	defer old.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	h, err := current()
	if err := errors.Join(err, netns.Set(old)); err != nil {
		return nil, fmt.Errorf("return from a new network namespace: %w", err)
	}
	n, err := wrap(h)
	if err != nil {
		return nil, err
	}
	if err := n.Up("lo"); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func wrap(h netns.NsHandle) (*Namespace, error) {
	nl, err := netlink.NewHandleAt(h, unix.NETLINK_ROUTE) // a box's kernel lacks some of the other families
	if err != nil {
		_ = h.Close() // the error before says what is wrong
		return nil, fmt.Errorf("open netlink in a network namespace: %w", err)
	}
	return &Namespace{h, nl}, nil
}

// Close releases the namespace. It ends with its last process, socket and open
// descriptor. A second call does nothing.
func (n *Namespace) Close() {
	if n.h.IsOpen() {
		n.Netlink.Close()
		_ = n.h.Close() // the descriptor holds no data
	}
}

// Fd returns the namespace's descriptor, which Close closes.
func (n *Namespace) Fd() int { return int(n.h) }

// Do runs f on a thread of its own in the namespace. Sockets that f opens and
// programs that f starts stay there.
func (n *Namespace) Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if unix.Gettid() == os.Getpid() {
			// The first thread cannot end, and /proc/self shows its namespaces. While this goroutine
			// waits on it, another one gets another thread.
			err := n.Do(f)
			runtime.UnlockOSThread()
			done <- err
			return
		}
		if err := netns.Set(n.h); err != nil {
			done <- fmt.Errorf("enter a network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// Output runs a program in the namespace and returns what it prints.
func (n *Namespace) Output(name string, args ...string) (string, error) {
	var out []byte
	err := n.Do(func() (err error) {
		out, err = exec.Command(name, args...).CombinedOutput()
		return err
	})
	return string(out), err
}

// Veth joins two namespaces by a pair of interfaces and brings both up.
func Veth(a *Namespace, nameA string, b *Namespace, nameB string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = nameA
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: nameB, PeerNamespace: netlink.NsFd(b.h)}
	if err := a.Netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("make the veth pair %s, %s: %w", nameA, nameB, err)
	}
	if err := errors.Join(a.Up(nameA), b.Up(nameB)); err != nil {
		return err
	}
	return errors.Join(a.WaitOperational(nameA), b.WaitOperational(nameB))
}

// settleTime bounds the wait for an interface whose other end is up. The kernel
// announces such changes once a second.
const settleTime = 10 * time.Second

// WaitOperational returns when the kernel has announced that an interface is
// operational. A browser that receives the announcement later drops the
// connections that it has made.
func (n *Namespace) WaitOperational(name string) error {
	changes, stop := make(chan netlink.LinkUpdate, 64), make(chan struct{})
	err := netlink.LinkSubscribeWithOptions(changes, stop, netlink.LinkSubscribeOptions{Namespace: &n.h, ListExisting: true})
	if err != nil {
		return fmt.Errorf("listen to changes of %s: %w", name, err)
	}
	defer func() {
		close(stop)
		for range changes { // until its goroutine has ended
		}
	}()
	late := time.NewTimer(settleTime)
	defer late.Stop()
	for {
		select {
		case c, ok := <-changes:
			if !ok {
				return fmt.Errorf("listen to changes of %s: the kernel closed the subscription", name)
			}
			if a := c.Attrs(); a.Name == name && a.OperState == netlink.OperUp {
				return nil
			}
		case <-late.C:
			return fmt.Errorf("%s is not operational %v after both ends were brought up", name, settleTime)
		}
	}
}

// Up brings an interface up.
func (n *Namespace) Up(name string) error {
	l, err := n.Netlink.LinkByName(name)
	if err == nil {
		err = n.Netlink.LinkSetUp(l)
	}
	if err != nil {
		return fmt.Errorf("bring %s up: %w", name, err)
	}
	return nil
}

// Address gives an interface an address in prefix form: "192.168.77.1/24".
func (n *Namespace) Address(name, prefix string) error {
	l, err := n.Netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	a, err := netlink.ParseAddr(prefix)
	if err == nil {
		a.Flags |= unix.IFA_F_NODAD // nobody else on the cable has the address, and it is usable at once
		err = n.Netlink.AddrAdd(l, a)
	}
	if err != nil {
		return fmt.Errorf("give %s the address %s: %w", name, prefix, err)
	}
	return nil
}

// Default routes everything through a gateway.
func (n *Namespace) Default(gateway string) error {
	if err := n.Netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(gateway)}); err != nil {
		return fmt.Errorf("route by %s: %w", gateway, err)
	}
	return nil
}

// Remove removes an interface; the other end of a veth pair goes with it.
func (n *Namespace) Remove(name string) error {
	l, err := n.Netlink.LinkByName(name)
	if err == nil {
		err = n.Netlink.LinkDel(l)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// DisableDAD lets the namespace's interfaces use their IPv6 addresses at once,
// without duplicate address detection. With it the addresses would become usable
// one or two seconds later, and a browser that sees its addresses change drops all
// its connections (ERR_NETWORK_CHANGED) in the middle of a page.
func (n *Namespace) DisableDAD() error {
	return n.Do(func() error {
		for _, conf := range []string{"all", "default"} {
			file := "/proc/sys/net/ipv6/conf/" + conf + "/accept_dad"
			if err := os.WriteFile(file, []byte("0\n"), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("switch duplicate address detection off: %w", err)
			}
		}
		return nil
	})
}

// Named opens a namespace that "ip netns add" has made.
func Named(name string) (*Namespace, error) {
	h, err := netns.GetFromName(name)
	if err != nil {
		return nil, fmt.Errorf("open the network namespace %q: %w", name, err)
	}
	return wrap(h)
}
