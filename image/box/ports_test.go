package box

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecide(t *testing.T) {
	ip := netip.MustParseAddr
	radio := Link{Name: "w", Wireless: true}
	a, b, c := Link{Name: "a"}, Link{Name: "b"}, Link{Name: "c"}
	leased := func(l Link, s string) Link { l.Address = ip(s); return l }
	device := func(name string, n int) DevicePort { return DevicePort{name, devicePrefix(n)} }
	cases := []struct {
		name    string
		before  Roles
		links   []Link
		cfg     Config
		settled bool
		want    Roles
	}{
		{"no lease: all wait", Roles{}, []Link{b, a}, Config{}, true, Roles{Waiting: []string{"a", "b"}}},
		{"a lease: the others still wait", Roles{}, []Link{a, leased(b, "10.0.0.9")}, Config{}, false,
			Roles{Uplink: "b", Address: ip("10.0.0.9"), Waiting: []string{"a"}}},
		{"settled: the other ports become device ports", Roles{Uplink: "b"}, []Link{a, leased(b, "10.0.0.9"), c}, Config{}, true,
			Roles{Uplink: "b", Address: ip("10.0.0.9"), Devices: []DevicePort{device("a", 0), device("c", 1)}}},
		{
			"a second port with a lease is no device port",
			Roles{Uplink: "b"},
			[]Link{leased(a, "10.1.0.9"), leased(b, "10.0.0.9")},
			Config{},
			true,
			Roles{Uplink: "b", Address: ip("10.0.0.9"), Waiting: []string{"a"}, Leased: []string{"a"}},
		},
		{"the uplink keeps its role without a lease", Roles{Uplink: "b"}, []Link{leased(a, "10.1.0.9"), b}, Config{}, true,
			Roles{Uplink: "b", Waiting: []string{"a"}, Leased: []string{"a"}}},
		{"a device port keeps its role and its address", Roles{Uplink: "b", Devices: []DevicePort{device("c", 0)}},
			[]Link{a, b, c}, Config{}, true, Roles{Uplink: "b", Devices: []DevicePort{device("c", 0), device("a", 1)}}},
		{"configured uplink", Roles{}, []Link{leased(a, "10.1.0.9"), b}, Config{Uplink: "b"}, false,
			Roles{Uplink: "b", Waiting: []string{"a"}, Leased: []string{"a"}}},
		{"configured device ports need no uplink", Roles{}, []Link{a, b}, Config{DevicePorts: []string{"b"}}, false,
			Roles{Devices: []DevicePort{device("b", 0)}, Waiting: []string{"a"}}},
		{"a radio that is not configured has no role", Roles{Uplink: "b"}, []Link{leased(b, "10.0.0.9"), radio}, Config{}, true,
			Roles{Uplink: "b", Address: ip("10.0.0.9")}},
		{"a configured radio is one", Roles{}, []Link{leased(b, "10.0.0.9"), radio}, Config{DevicePorts: []string{"w"}}, true,
			Roles{Uplink: "b", Address: ip("10.0.0.9"), Devices: []DevicePort{device("w", 0)}}},
		{"a configured device port is never the uplink", Roles{},
			[]Link{leased(a, "10.1.0.9"), leased(b, "10.0.0.9")}, Config{DevicePorts: []string{"a"}}, true,
			Roles{Uplink: "b", Address: ip("10.0.0.9"), Devices: []DevicePort{device("a", 0)}}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := Decide(tc.before, tc.links, tc.cfg, tc.settled)
			compare := cmp.Comparer(func(x, y netip.Addr) bool { return x == y })
			prefix := cmp.Comparer(func(x, y netip.Prefix) bool { return x == y })
			if d := cmp.Diff(tc.want, got, compare, prefix); d != "" {
				t.Errorf("roles (-want +got):\n%s", d)
			}
			if again := Decide(got, tc.links, tc.cfg, tc.settled); !again.Equal(got) {
				t.Errorf("a second Decide with the same input gives %+v, want no change", again)
			}
		})
	}
}

func TestBanner(t *testing.T) {
	b := Banner{Version: "0.1.7", Hostname: "box", Token: "abcd", Health: "ok"}
	want := "\n  Eidetic 0.1.7\n\n  Uplink   none yet: connect a port to a network that gives leases (DHCP)\n  Health   ok\n\n"
	if got := b.Text(); got != want {
		t.Errorf("the banner without an uplink is wrong:\n%s", got)
	}
	b.Roles = Roles{
		Uplink: "e0", Address: netip.MustParseAddr("10.0.0.9"),
		Devices: []DevicePort{{"e1", devicePrefix(0)}}, Waiting: []string{"e2"},
	}
	want = `
  Eidetic 0.1.7

  Panel    http://10.0.0.9:8080/  or  http://box.local:8080/
  Token    abcd
  Uplink   e0, 10.0.0.9
  Device   e1, the box is 192.168.77.1 there
  Waiting  e2
  Health   ok

`
	if got := b.Text(); got != want {
		t.Errorf("the banner with an uplink is wrong:\n%s", got)
	}
	b.Fingerprint, b.Roles.Leased = strings.Repeat("3b1c", 16), []string{"e2"}
	for _, want := range []string{"  Panel    https://10.0.0.9:8080/  or  https://box.local:8080/\n", "  SHA-256  3B:1C:", "Warning  e2 has a lease, too"} {
		if got := b.Text(); !strings.Contains(got, want) {
			t.Errorf("the banner has no %q:\n%s", want, got)
		}
	}
	b.Roles.Address = netip.MustParseAddr("2001:db8:1234:5678:1234:5678:1234:5678")
	if got, want := b.Text(), "  Panel    https://["+b.Roles.Address.String()+"]:8080/\n           https://box.local:8080/\n"; !strings.Contains(got, want) {
		t.Errorf("the banner has no %q:\n%s", want, got)
	}
	for _, line := range strings.Split(b.Text(), "\n") {
		if len(line) > 80 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
}
