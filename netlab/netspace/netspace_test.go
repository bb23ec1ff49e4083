package netspace_test

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/netspace"
	"eidetic/netlab/nstest"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

// TestVeth: two namespaces that are joined by a veth pair reach each other at once,
// over IPv6 too, and no longer after the pair is removed.
func TestVeth(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	a, b := nstest.New(t), nstest.New(t)
	nstest.Veth(t, a, "near", b, "far")
	for _, end := range []struct {
		n        *nstest.Namespace
		name, at string
	}{{a, "near", "fd00:9::1/64"}, {b, "far", "fd00:9::2/64"}} {
		end.n.Address(t, end.name, end.at)
	}
	var l net.Listener
	if err := a.Do(func() (err error) {
		l, err = net.Listen("tcp", "[fd00:9::1]:0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := func() error {
		return b.Do(func() error {
			c, err := net.Dial("tcp", l.Addr().String())
			if err == nil {
				err = c.Close()
			}
			return err
		})
	}
	if err := dial(); err != nil {
		t.Errorf("Dial() over the veth pair = %v, want nil", err)
	}
	if err := b.Remove("far"); err != nil {
		t.Fatal(err)
	}
	if err := dial(); err == nil {
		t.Error("Dial() after Remove() = nil, want an error")
	}
	if err := a.Remove("near"); err == nil || !strings.Contains(err.Error(), "near") {
		t.Errorf("Remove() of the other end = %v, want an error that names it", err)
	}
}

func TestDisableDAD(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	n := nstest.New(t)
	if err := n.DisableDAD(); err != nil {
		t.Fatal(err)
	}
	text, err := n.Output("cat", "/proc/sys/net/ipv6/conf/default/accept_dad")
	if err != nil || strings.TrimSpace(text) != "0" {
		t.Errorf("accept_dad is %q (%v), want 0", text, err)
	}
}

// TestDoLeavesTheNamespace: what a function does in another namespace does not move the
// caller, and a namespace can be closed twice.
func TestDoLeavesTheNamespace(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	n, err := netspace.New()
	if err != nil {
		t.Fatal(err)
	}
	names := func() (list []string, err error) {
		all, err := net.Interfaces()
		for _, i := range all {
			list = append(list, i.Name)
		}
		return list, err
	}
	here := nstest.Here(t)
	nstest.Veth(t, here, "one", here, "other")
	if err := n.Do(func() error {
		list, err := names()
		if err == nil && len(list) != 1 {
			t.Errorf("the namespace has the interfaces %v, want lo alone", list)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if list, err := names(); err != nil || len(list) != 3 {
		t.Errorf("this namespace has the interfaces %v (%v), want lo, one and other", list, err)
	}
	n.Close()
	n.Close()
	if err := n.Do(func() error { return io.EOF }); err == nil || err == io.EOF {
		t.Errorf("Do() after Close() = %v, want an error of its own", err)
	}
}

// TestDoSparesTheFirstThread: that thread cannot end, and /proc/self shows what is done to it.
func TestDoSparesTheFirstThread(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	n := nstest.New(t)
	for range 300 { // the scheduler chooses a thread each time
		if err := n.Do(func() error {
			if unix.Gettid() == os.Getpid() {
				t.Error("Do() calls its function on the first thread of the process")
			}
			return nil
		}); err != nil || t.Failed() {
			t.Fatal(err)
		}
	}
}
