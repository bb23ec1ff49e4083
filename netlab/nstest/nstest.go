// Package nstest runs tests of networks in namespaces of their own, as root or
// as an ordinary user. In goes a test; out comes the same test run by a second
// process inside new user, network and mount namespaces, in which it may make
// interfaces, routes and further network namespaces that vanish with it.
package nstest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"eidetic/internal/testlab"
)

const insideVar = "EIDETIC_NSTEST"

// Inside reports whether the test runs in namespaces of its own. The first
// time it does not: then Inside runs this one test again there, passes its
// output and outcome on, and returns false, upon which the test must return.
func Inside(t testing.TB) bool {
	t.Helper()
	if os.Getenv(insideVar) == t.Name() {
		up, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(up)
		}
		if err != nil {
			t.Fatalf("bring lo up: %v", err)
		}
		return true
	}
	testlab.NeedNamespaces(t)
	args := []string{"-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$", "-test.count=1", "-test.timeout=5m"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), insideVar+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	// The kernel's signal at a parent's death is sent when the thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("inside namespaces: %v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("inside namespaces:\n%s", out)
	}
	return false
}

// Namespace is a network namespace.
type Namespace struct {
	h netns.NsHandle
	// Netlink speaks to the namespace from any goroutine.
	Netlink *netlink.Handle
}

// Here returns the namespace that the test runs in.
func Here(t testing.TB) *Namespace {
	t.Helper()
	h, err := netns.Get()
	return wrap(t, h, err)
}

// New makes a network namespace, with lo up.
func New(t testing.TB) *Namespace {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := netns.Get()
	if err != nil {
		t.Fatalf("this thread's namespace: %v", err)
	}
	defer old.Close()
	h, err := netns.New() // and enters it
	if err := errors.Join(err, netns.Set(old)); err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	n := wrap(t, h, nil)
	lo, err := n.Netlink.LinkByName("lo")
	if err == nil {
		err = n.Netlink.LinkSetUp(lo)
	}
	if err != nil {
		t.Fatalf("bring lo up: %v", err)
	}
	return n
}

func wrap(t testing.TB, h netns.NsHandle, err error) *Namespace {
	t.Helper()
	if err != nil {
		t.Fatalf("open a network namespace: %v", err)
	}
	nl, err := netlink.NewHandleAt(h)
	if err != nil {
		t.Fatalf("speak to a network namespace: %v", err)
	}
	t.Cleanup(func() {
		nl.Close()
		_ = h.Close() // the namespace ends with the process anyway
	})
	return &Namespace{h, nl}
}

// Do runs f on a thread that is in the namespace: sockets that it opens and
// programs that it starts belong there.
func (n *Namespace) Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := netns.Set(n.h); err != nil {
			done <- fmt.Errorf("enter a network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// Output runs a program there.
func (n *Namespace) Output(name string, args ...string) (string, error) {
	var out []byte
	err := n.Do(func() (err error) {
		out, err = exec.Command(name, args...).CombinedOutput()
		return err
	})
	return string(out), err
}

// Veth joins two namespaces by a pair of interfaces and brings both up.
func Veth(t testing.TB, a *Namespace, nameA string, b *Namespace, nameB string) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = nameA
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: nameB, PeerNamespace: netlink.NsFd(b.h)}
	if err := a.Netlink.LinkAdd(veth); err != nil {
		t.Fatalf("make the veth pair %s, %s: %v", nameA, nameB, err)
	}
	a.Up(t, nameA)
	b.Up(t, nameB)
}

// Up brings an interface up.
func (n *Namespace) Up(t testing.TB, name string) {
	t.Helper()
	l, err := n.Netlink.LinkByName(name)
	if err == nil {
		err = n.Netlink.LinkSetUp(l)
	}
	if err != nil {
		t.Fatalf("bring %s up: %v", name, err)
	}
}

// Address gives an interface an address in prefix form: "192.168.77.1/24".
func (n *Namespace) Address(t testing.TB, name, prefix string) {
	t.Helper()
	l, err := n.Netlink.LinkByName(name)
	if err != nil {
		t.Fatalf("find %s: %v", name, err)
	}
	a, err := netlink.ParseAddr(prefix)
	if err == nil {
		a.Flags |= 0x02 // IFA_F_NODAD: an IPv6 address is good at once
		err = n.Netlink.AddrAdd(l, a)
	}
	if err != nil {
		t.Fatalf("give %s the address %s: %v", name, prefix, err)
	}
}

// Default routes everything through a gateway.
func (n *Namespace) Default(t testing.TB, gateway string) {
	t.Helper()
	if err := n.Netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(gateway)}); err != nil {
		t.Fatalf("route by %s: %v", gateway, err)
	}
}
