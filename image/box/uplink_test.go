package box

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// look is one look of appliance-ports at the links; the box was started long ago.
type look struct {
	root string
	ran  []string
}

func (l *look) at(t *testing.T, cfg Config, links ...Link) Roles {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := Ports{
		Root: l.root, Log: slog.New(slog.DiscardHandler), Config: cfg,
		Run: func(_ context.Context, name string, args ...string) ([]byte, error) {
			l.ran = append(l.ran, name+" "+strings.Join(args, " "))
			return nil, nil
		},
		Links:  func() ([]Link, error) { cancel(); return links, nil },
		Settle: time.Nanosecond,
	}
	if err := p.Watch(ctx); err != nil {
		t.Fatal(err)
	}
	var roles Roles
	text, err := os.ReadFile(filepath.Join(l.root, PortsFile))
	if err == nil {
		err = json.Unmarshal(text, &roles)
	}
	if err != nil {
		t.Fatal(err)
	}
	return roles
}

// reboot forgets what does not survive one.
func (l *look) reboot(t *testing.T) {
	t.Helper()
	l.ran = nil
	if err := os.RemoveAll(filepath.Join(l.root, "run")); err != nil {
		t.Fatal(err)
	}
}

// confines fails the test if another port than the uplink may take a route or a name server.
func (l *look) confines(t *testing.T, uplink string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.root, "run/systemd/network/20-waiting.network"))
	for _, line := range []string{"Name=!" + uplink, "UseGateway=no", "UseRoutes=no", "UseDNS=no", "RouteTable=7999", "IPv6AcceptRA=no"} {
		if err != nil || !strings.Contains(string(text), line+"\n") {
			t.Errorf("the ports that wait have no %s: the box would go by a device's routes: %v\n%s", line, err, text)
		}
	}
}

// A device that runs a DHCP server, on a port that comes first by name, becomes neither the
// uplink of a box that had one, nor a port on which the panel is open.
func TestDeviceDoesNotBecomeTheUplink(t *testing.T) {
	lease := func(name, address string) Link { return Link{Name: name, Address: netip.MustParseAddr(address)} }
	l := &look{root: t.TempDir()}
	if got := l.at(t, Config{}, Link{Name: "a"}, lease("b", "10.0.0.9")); got.Uplink != "b" {
		t.Fatalf("first boot: uplink %q, want b", got.Uplink)
	}
	l.at(t, Config{}, Link{Name: "a"}, lease("b", "10.0.0.9")) // settled: the role is kept
	l.confines(t, "b")
	for _, links := range [][]Link{
		{lease("a", "10.66.0.9"), {Name: "b"}},             // the device is faster
		{lease("a", "10.66.0.9"), lease("b", "10.0.0.9")},  // both have a lease
		{lease("a", "10.66.0.9")},                          // the uplink is not there
		{lease("a", "10.66.0.9"), lease("b", "10.66.0.7")}, // both of the device
	} {
		l.reboot(t)
		got := l.at(t, Config{}, links...)
		if got.Uplink != "b" || !slices.Equal(got.Leased, []string{"a"}) || got.Warning() == "" {
			t.Errorf("%v: uplink %q, leased %v, warning %q; want b, a, and a warning", links, got.Uplink, got.Leased, got.Warning())
		}
		ran := strings.Join(l.ran, "\n")
		if !strings.Contains(ran, `add element inet box uplink { "b" }`) || strings.Contains(ran, `uplink { "a" }`) {
			t.Errorf("%v: the firewall is open on another port than b:\n%s", links, ran)
		}
		if !strings.Contains(ran, "networkctl reload") {
			t.Errorf("%v: no configuration of ports was loaded:\n%s", links, ran)
		}
		l.confines(t, "b")
	}
}

// Two leases at the first boot: the first by name is used, and not kept.
func TestTwoLeasesAreNotKept(t *testing.T) {
	l := &look{root: t.TempDir()}
	for range 2 {
		got := l.at(t, Config{}, Link{Name: "a", Address: netip.MustParseAddr("10.66.0.9")}, Link{Name: "b", Address: netip.MustParseAddr("10.0.0.9")})
		if got.Uplink != "a" || got.Warning() == "" {
			t.Errorf("uplink %q, warning %q; want a and a warning", got.Uplink, got.Warning())
		}
	}
	if _, err := os.Stat(filepath.Join(l.root, UplinkFile)); err == nil {
		t.Error("an uplink that is in doubt was kept")
	}
}

// In a network with IPv6 alone the port with a router's address is the uplink. Beside a lease of IPv4 such an address says
// nothing: many devices announce themselves as routers.
func TestUplinkOfIPv6Alone(t *testing.T) {
	at := func(name, address string) Link { return Link{Name: name, Address: netip.MustParseAddr(address)} }
	l := &look{root: t.TempDir()}
	for range 2 { // found, and settled
		if got := l.at(t, Config{}, Link{Name: "a"}, at("b", "2001:db8::9")); got.Uplink != "b" || got.Address != netip.MustParseAddr("2001:db8::9") {
			t.Fatalf("roles %+v; want the uplink b", got)
		}
	}
	l.reboot(t)
	got := l.at(t, Config{}, at("a", "2001:db8:1::9"), at("b", "2001:db8::9"))
	if got = l.at(t, Config{}, at("a", "2001:db8:1::9"), at("b", "2001:db8::9")); got.Uplink != "b" || len(got.Devices) != 1 || got.Warning() != "" {
		t.Errorf("with a device that is a router: %+v, warning %q; want the uplink b and the device port a", got, got.Warning())
	}
	l = &look{root: t.TempDir()}
	for range 2 {
		got = l.at(t, Config{}, at("a", "2001:db8:1::9"), at("b", "10.0.0.9"))
	}
	if got.Uplink != "b" || len(got.Devices) != 1 || got.Warning() != "" {
		t.Errorf("with a router of IPv6 beside a lease: %+v, warning %q; want the uplink b and the device port a", got, got.Warning())
	}
	if got := countable([]Link{at("b", "2001:db8::9")}, "", false); got[0].Address.IsValid() {
		t.Errorf("before a lease of IPv4 may have come, the port has %v; want none", got[0].Address)
	}
}

// Which of a port's addresses says that it has a lease.
func TestLeased(t *testing.T) {
	address := func(text string, lifetime, flags int) netlink.Addr {
		ip := net.ParseIP(text)
		if four := ip.To4(); four != nil {
			ip = four
		}
		return netlink.Addr{IPNet: &net.IPNet{IP: ip}, ValidLft: lifetime, Flags: flags}
	}
	link := address("fe80::1", forever, 0)
	for name, c := range map[string]struct {
		all  []netlink.Addr
		want string
	}{
		"nothing":              {[]netlink.Addr{link}, "invalid IP"},
		"set by hand":          {[]netlink.Addr{address("10.0.0.9", forever, 0), link}, "invalid IP"},
		"DHCP":                 {[]netlink.Addr{address("10.0.0.9", 600, 0), link}, "10.0.0.9"},
		"both":                 {[]netlink.Addr{address("2001:db8::9", 600, 0), address("10.0.0.9", 600, 0), address("10.0.0.8", 600, 0)}, "10.0.0.9"},
		"a router, for ever":   {[]netlink.Addr{link, address("2001:db8::9", forever, 0)}, "2001:db8::9"},
		"a lease that is over": {[]netlink.Addr{address("10.0.0.9", 0, 0)}, "invalid IP"},
		"not checked yet":      {[]netlink.Addr{address("2001:db8::9", 600, unix.IFA_F_TENTATIVE), address("2001:db8::8", 600, 0)}, "2001:db8::8"},
	} {
		if got := leased(c.all).String(); got != c.want {
			t.Errorf("%s: leased() = %s, want %s", name, got, c.want)
		}
	}
}

func TestUplinkIsChangedAtTheConsole(t *testing.T) {
	l := &look{root: t.TempDir()}
	links := []Link{{Name: "a"}, {Name: "b", Address: netip.MustParseAddr("10.0.0.9")}}
	l.at(t, Config{}, links...)
	roles := l.at(t, Config{}, links...)
	c := Console{Root: l.root}
	for line, want := range map[string]string{
		"": "", "reboot": "one command", "uplink": "one command", "uplink ../x": "no port", "uplink c": "there are a, b",
		"uplink b": "already",
	} {
		if got := c.obey(line, roles); !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if got := c.obey(" uplink  a ", roles); !strings.Contains(got, "restarts") {
		t.Errorf("uplink a: %q", got)
	}
	l.at(t, Config{}, links...)
	if ran := strings.Join(l.ran, "\n"); !strings.Contains(ran, "systemctl --no-block reboot") {
		t.Errorf("the box does not restart; ran:\n%s", ran)
	}
	l.reboot(t)
	if got := l.at(t, Config{}, links...); got.Uplink != "a" {
		t.Errorf("after the restart the uplink is %q, want a", got.Uplink)
	}
	// The configuration, which the panel can change, goes before it and is kept.
	l.reboot(t)
	if got := l.at(t, Config{Uplink: "b"}, links...); got.Uplink != "b" {
		t.Errorf("with box.uplink: %q, want b", got.Uplink)
	}
	l.reboot(t)
	if got := l.at(t, Config{}, links...); got.Uplink != "b" {
		t.Errorf("after box.uplink was removed: %q, want b", got.Uplink)
	}
}

// The console shows a QR code where there is room, and only there.
func TestCodeOnTheConsole(t *testing.T) {
	b := Banner{Fingerprint: strings.Repeat("3b1c", 16), Roles: Roles{Address: netip.MustParseAddr("10.0.0.9")}}
	code := b.Code()
	if !strings.HasPrefix(code, "https://10.0.0.9:8080/access#sha256=3b1c") || (Banner{}).Code() != "" {
		t.Fatalf("Code() = %q, and %q without an address", code, Banner{}.Code())
	}
	drawn := codeFor(code, 128, 40)
	lines := strings.Split(strings.TrimSuffix(drawn, "\n"), "\n")
	if len(lines) < 20 || len(lines) > 25 {
		t.Errorf("the code has %d rows:\n%s", len(lines), drawn)
	}
	for _, line := range lines {
		if len([]rune(line)) != len([]rune(lines[0])) {
			t.Fatalf("rows of different widths:\n%s", drawn)
		}
	}
	for _, size := range [][2]int{{0, 0}, {80, 12}, {40, 60}} {
		if got := codeFor(code, size[0], size[1]); got != "" {
			t.Errorf("a code in %d columns and %d rows:\n%s", size[0], size[1], got)
		}
	}
}
