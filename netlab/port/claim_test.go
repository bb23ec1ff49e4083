package port

import (
	"maps"
	"net"
	"net/netip"
	"slices"
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

// TestPortsThatAreNone: an interface that leads to the network, or shares its cable, is refused in plain words before
// anything is changed.
func TestPortsThatAreNone(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	newPhone(t, w, "dev0")
	newPhone(t, w, "dev1")
	ip := func(args ...string) {
		t.Helper()
		if out, err := w.box.Output("ip", args...); err != nil {
			t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
	refused := func(device, says string) {
		t.Helper()
		p, err := Start(t.Context(), Config{Interface: device, CA: w.boxCA, Clock: lab.Monotonic, Wall: time.Now})
		if err == nil {
			_ = p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Start() of %s = %v, want an error that says %q", device, err, says)
		}
		rules, err := w.box.Output("nft", "list", "ruleset")
		if _, labErr := net.InterfaceByName("lab0"); err != nil || labErr == nil || strings.TrimSpace(rules) != "" {
			t.Errorf("the refused port %s left lab0 (%v) or rules behind: %v\n%s", device, labErr == nil, err, rules)
		}
	}
	refused("up0", "default route uses up0, so")

	// The default route of IPv4, and then IPv6's alone, through a bridge on the port.
	ip("link", "add", "br0", "type", "bridge")
	ip("link", "set", "dev1", "master", "br0")
	ip("link", "set", "br0", "up")
	ip("address", "add", "10.3.0.2/24", "dev", "br0")
	ip("route", "replace", "default", "via", "10.3.0.1", "dev", "br0")
	refused("dev1", "default route uses br0, whose packets pass dev1, so")
	ip("route", "del", "default")
	ip("-6", "address", "add", "2001:db8:9::2/64", "dev", "br0", "nodad")
	ip("-6", "route", "add", "default", "via", "2001:db8:9::1", "dev", "br0")
	refused("dev1", "default route uses br0, whose packets pass dev1, so")

	// A device that announces itself as a router beside the machine's own.
	ip("-6", "address", "add", "2001:db8:1::2/64", "dev", "dev0", "nodad")
	ip("-6", "route", "add", "default", "via", "2001:db8:1::1", "dev", "dev0", "metric", "2000")
	w.port(t, "dev0", nil)
}

// Which interfaces a packet passes, and which share the cable of another one. Few kernels have all these kinds.
func TestStackedInterfaces(t *testing.T) {
	attrs := func(index, parent, master int, name string) netlink.LinkAttrs {
		return netlink.LinkAttrs{Index: index, ParentIndex: parent, MasterIndex: master, Name: name, NetNsID: -1}
	}
	elsewhere := attrs(7, 1, 0, "inside")
	elsewhere.NetNsID = 3
	port, member, bond := &netlink.Device{LinkAttrs: attrs(1, 0, 2, "eth0")}, &netlink.Device{LinkAttrs: attrs(9, 0, 2, "eth1")},
		&netlink.Bond{LinkAttrs: attrs(2, 0, 0, "bond0")}
	vlan, top := &netlink.Vlan{LinkAttrs: attrs(3, 2, 4, "bond0.7")}, &netlink.Bridge{LinkAttrs: attrs(4, 0, 0, "br0")}
	veth, other := &netlink.Veth{LinkAttrs: attrs(5, 6, 0, "veth0")}, &netlink.Veth{LinkAttrs: attrs(6, 5, 0, "veth1")}
	mac := &netlink.Macvlan{LinkAttrs: elsewhere}
	all := []netlink.Link{port, member, bond, vlan, top, veth, other, mac}
	for of, want := range map[netlink.Link][]int{
		top: {1, 2, 3, 4, 9}, vlan: {1, 2, 3, 9}, bond: {1, 2, 9}, port: {1}, veth: {5}, mac: {7},
	} {
		if got := slices.Sorted(maps.Keys(carriers(all, of.Attrs().Index))); !slices.Equal(got, want) {
			t.Errorf("packets of %s pass %v, want %v", of.Attrs().Name, got, want)
		}
	}
	if got := carriers(all, 0); len(got) != 1 || !got[0] {
		t.Errorf("packets of a route that names no interface pass %v, want none of them", got)
	}
	for l, want := range map[netlink.Link]string{
		vlan: "bond0.7 is a virtual interface (vlan) on ", mac: "inside is a virtual interface (macvlan) on another interface and shares", port: "",
		veth: "", top: "", bond: "",
	} {
		if err := checkKind(l); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("checkKind(%s) = %v, want %q", l.Attrs().Name, err, want)
		}
	}
}
