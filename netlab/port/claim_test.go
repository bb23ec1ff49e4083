package port

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"eidetic/internal/lab"
	"eidetic/netlab/nstest"
)

// TestLivePortsAreNotSwept: a second port with the address or the interface of a
// living one is refused, as is the uplink, and the first one goes on. When the first
// one ends, the second can start.
func TestLivePortsAreNotSwept(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	ph := newPhone(t, w, "dev0")
	first := w.port(t, "dev0", nil)
	ph.lease(t)
	for _, c := range []struct{ device, gateway, says string }{
		{"dev1", "192.168.77.1/24", "give this port another gateway"},
		{"dev0", "192.168.78.1/24", "another program uses this port"},
	} {
		second, err := Start(t.Context(), Config{Interface: c.device, Gateway: netip.MustParsePrefix(c.gateway),
			CA: w.boxCA, Clock: first.c.Clock, Wall: first.c.Wall})
		if err == nil {
			_ = second.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Start() of %s with %s = %v, want an error that says %q", c.device, c.gateway, err, c.says)
		}
	}
	if _, err := net.InterfaceByName("lab0"); err != nil {
		t.Errorf("the first port's lab interface is gone: %v", err)
	}
	if _, err := net.InterfaceByName("lab1"); err == nil {
		t.Error("a refused port left its lab interface behind")
	}
	if s, err := first.Status(); err != nil || !s.Present {
		t.Errorf("Status() of the first port = %+v, %v; want it present with a carrier", s, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	w.port(t, "dev1", nil)
}

// A start removes what a killed run left at another address, and a lab interface to
// which a killed run had not given its alias.
func TestLeftoversAreSwept(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	phone := newPhone(t, w, "dev0")
	before := w.settled(t)
	left := func(gateway string) *Port {
		c, n, err := Config{Interface: "dev0", Gateway: netip.MustParsePrefix(gateway), CA: w.boxCA, Clock: lab.Monotonic,
			Wall: time.Now}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		return &Port{c: c, names: n} // it has no claim, like a port of a killed process
	}
	killed := left("192.168.78.1/24")
	for _, step := range []func() (func() error, error){killed.makeLab, killed.route, killed.routeBack, killed.makeFilter} {
		if _, err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := killed.filter.guard("dev0", killed.names.table+"-port"); err != nil {
		t.Fatal(err)
	}
	if _, err := left("192.168.77.1/24").makeLab(); err != nil {
		t.Fatal(err)
	}
	l, err := netlink.LinkByName("lab0")
	if err == nil {
		err = netlink.LinkSetAlias(l, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	p := w.port(t, "dev0", nil)
	phone.lease(t)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	w.unchanged(t, before)
	if out, err := w.box.Output("nft", "list", "ruleset"); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("nftables after Close: %v\n%s", err, out)
	}
}
