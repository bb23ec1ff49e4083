package service

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/image/box"
	"eidetic/netlab/ca"
	"eidetic/netlab/nstest"
	"eidetic/netlab/port"
)

// fakeRoot is the file system of a box that has found out nothing yet.
func fakeRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "usr/lib/appliance/repart.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func showWanted(p *ports) string {
	var all []string
	for _, w := range p.wanted() {
		words := []string{w.Name, w.Port, w.Gateway}
		if w.why != nil {
			words = []string{w.Name, w.Port, "not: " + strings.SplitN(w.why.Error(), ":", 2)[0]}
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ", ")
}

// On a machine of one's own the configuration says all.
func TestWantedPorts(t *testing.T) {
	p := &ports{
		root:   t.TempDir(),
		log:    slog.New(slog.DiscardHandler),
		config: []deviceConfig{{Name: "laptop", Port: "enp3s0", Rate: 10}, {Port: "wlan0", WiFi: &wifiConfig{}}},
	}
	if got, want := showWanted(p), "laptop enp3s0 192.168.77.1/24, wlan0 wlan0 192.168.78.1/24"; got != want {
		t.Errorf("wanted() = %q; want %q", got, want)
	}
	if c := p.wanted()[0]; c.VNC != 5900 || len(c.Fresh) != 1 || c.Rate != 10 || !c.http3() {
		t.Errorf("defaults: %+v", c)
	}
}

// On a box nothing leads to a device that the box did not find to do so, and
// each address is there once.
func TestWantedPortsOfABox(t *testing.T) {
	root := fakeRoot(t)
	p := &ports{root: root, log: slog.New(slog.DiscardHandler), config: []deviceConfig{
		{Name: "tablet", Port: "enp3s0", Rate: 10, Gateway: "192.168.77.1/24"}, // the address is the box's choice
		{Name: "oops", Port: "enp1s0"},
		{Name: "wire", Port: "enp9s0"},
		{Name: "air2", Port: "wlan1", WiFi: &wifiConfig{}},
		{Name: "air", Port: "wlan0", WiFi: &wifiConfig{}},
		{Name: "enp2s0", Port: "wlan2", WiFi: &wifiConfig{}}, // named like a port
	}}
	for _, text := range []string{"", "no JSON"} {
		if text != "" {
			write(t, root, box.PortsFile, text)
		}
		for _, w := range p.wanted() {
			if w.why == nil || w.Gateway != "" {
				t.Errorf("before there are roles (%q): %+v", text, w)
			}
		}
	}
	write(t, root, box.PortsFile, `{"uplink":"enp1s0","address":"10.0.0.9","devices":[
		{"name":"enp2s0","address":"192.168.77.1/24"},{"name":"enp3s0","address":"192.168.78.1/24"},{"name":"wlan2","address":"192.168.79.1/24"}]}`)
	write(t, root, "sys/class/net/wlan0/uevent", "DEVTYPE=wlan\nINTERFACE=wlan0\n")
	want := "tablet enp3s0 192.168.78.1/24, oops enp1s0 not: this port leads to the network, wire enp9s0 not: the box has no device port of this name (yet), " +
		"air2 wlan1 not: there is no radio of this name, air wlan0 192.168.94.1/24, enp2s0 wlan2 192.168.79.1/24, port enp2s0 enp2s0 192.168.77.1/24"
	if got := showWanted(p); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A box says that a port's address is another one now, and two ports change
// theirs: the networks follow, but not under a run.
func TestLookFollowsTheRoles(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	root := fakeRoot(t)
	var devices deviceList
	p := &ports{
		root:      root,
		data:      t.TempDir(),
		authority: authority,
		devices:   &devices,
		log:       slog.New(slog.DiscardHandler),
		known:     map[string]*portDevice{},
		config:    []deviceConfig{{Name: "tablet", Port: "tst3"}},
	}
	t.Cleanup(func() {
		for name, d := range p.known {
			p.close(d.network(), name)
		}
	})
	look := func(roles string) {
		t.Helper()
		if roles != "" {
			write(t, root, box.PortsFile, roles)
		}
		p.update(t.Context(), func() {})
	}
	state := func() string {
		var all []string
		for _, name := range devices.list() {
			d := devices.get(name).(*portDevice)
			s := "down"
			if running := d.network(); running != nil {
				s = status(t, running).Gateway.String()
			}
			all = append(all, name+" "+s)
		}
		return strings.Join(all, ", ")
	}
	expect := func(want string) {
		t.Helper()
		if got := state(); got != want {
			t.Errorf("the ports are %q; want %q", got, want)
		}
	}
	look("")
	expect("tablet down") // it is listed, and says why
	if got := devices.get("tablet").describe(t.Context()).Problem; !strings.Contains(got, "waits for a lease") {
		t.Errorf("says %q", got)
	}
	look(`{"uplink":"up0","devices":[{"name":"tst2","address":"192.168.77.1/24"},{"name":"tst3","address":"192.168.78.1/24"}]}`)
	expect("tablet 192.168.78.1/24, tst2 192.168.77.1/24")
	look(`{"uplink":"up0"}`) // the box looks again: nothing is taken away
	expect("tablet 192.168.78.1/24, tst2 192.168.77.1/24")
	swapped := `{"uplink":"up0","devices":[{"name":"tst3","address":"192.168.77.1/24"},{"name":"tst2","address":"192.168.78.1/24"}]}`
	tablet := devices.get("tablet").(*portDevice)
	_, _, done := tablet.occupy()
	look(swapped)
	if got := tablet.network(); got == nil || status(t, got).Gateway.String() != "192.168.78.1/24" {
		t.Errorf("a run lost its network: %s", state())
	}
	if _, err := net.InterfaceByName("lab1"); err != nil {
		t.Errorf("its lab interface: %v", err)
	}
	done()
	look("")
	look("")
	expect("tablet 192.168.77.1/24, tst2 192.168.78.1/24")
	look(`{"uplink":"tst2","devices":[{"name":"tst3","address":"192.168.77.1/24"}]}`)
	look(`{"uplink":"tst2","devices":[{"name":"tst4","address":"192.168.77.1/24"}]}`)
	expect("tablet down, tst2 192.168.78.1/24, tst4 192.168.77.1/24")
}

func status(t *testing.T, p *port.Port) port.Status {
	t.Helper()
	s, err := p.Status()
	if err != nil {
		t.Error(err)
	}
	return s
}
