package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/image/box"
	"eidetic/internal/job"
	"eidetic/internal/panel"
)

// What a box found out about its ports, and what its owner says of them, make
// one list; the box's address at a port is the box's own choice.
func TestWantedPorts(t *testing.T) {
	root := t.TempDir()
	p := &ports{root: root, log: slog.New(slog.DiscardHandler), config: []deviceConfig{{Name: "laptop", Port: "enp3s0", Rate: 10}}}
	show := func() string {
		var all []string
		for _, c := range p.wanted() {
			all = append(all, strings.Join([]string{c.Name, c.Port, c.Gateway}, " "))
		}
		return strings.Join(all, ", ")
	}
	if p.isBox() {
		t.Error("an empty folder is taken for a box")
	}
	if got, want := show(), "laptop enp3s0 192.168.77.1/24"; got != want {
		t.Errorf("without roles: %q, want %q", got, want)
	}
	file := put(t, root, box.PortsFile)
	if !p.isBox() {
		t.Error("a box is not taken for one")
	}
	if got, want := show(), "laptop enp3s0 192.168.77.1/24"; got != want {
		t.Errorf("with roles that cannot be read: %q, want %q", got, want)
	}
	roles := `{"uplink":"enp1s0","address":"10.0.0.9","devices":[{"name":"enp2s0","address":"192.168.77.1/24"},{"name":"enp3s0","address":"192.168.78.1/24"}]}`
	if err := os.WriteFile(file, []byte(roles), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := show(), "laptop enp3s0 192.168.78.1/24, enp2s0 enp2s0 192.168.77.1/24"; got != want {
		t.Errorf("with roles: %q, want %q", got, want)
	}
	for _, c := range p.wanted() {
		if c.VNC != 5900 || len(c.Fresh) != 1 || c.Rate != map[string]float64{"enp3s0": 10, "enp2s0": 60}[c.Port] {
			t.Errorf("defaults: %+v", c)
		}
	}
}

func TestDeviceConfigSaysWhere(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"devices: [{name: x}]", "devices[0].port"},
		{"devices:\n  - port: a/b\n", "devices[0].port"},
		{"devices: [{port: e0}, {port: e0, name: y}]", "two devices are at e0"},
		{"devices: [{port: e0, name: virtual}]", "is taken"},
		{"devices: [{port: e0, gateway: 192.168.77.1}]", "prefix length"},
		{"devices: [{port: e0, rate: 1000}]", "devices[0].rate"},
		{"devices: [{port: e0, rate: .nan}]", "devices[0].rate"},
		{"devices: [{port: e0, fresh: [press x]}]", "devices[0].fresh"},
		{"devices: [{port: e0, vnc: 70000}]", "box.yaml"},
		{"network: {resolver: example.com}", "network.resolver"},
	} {
		cfg := defaultServeConfig()
		if err := parseServeConfig("box.yaml", []byte(c.text), &cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a word of %q", c.text, err, c.want)
		}
	}
}

// named is a device that is or is not ready.
type named struct{ panel.Device }

func (n named) describe(context.Context) panel.Device               { return n.Device }
func (n named) carryOut(context.Context, job.Order, job.News) error { return nil }

func TestDevicesInOrder(t *testing.T) {
	var all deviceList
	for _, d := range []panel.Device{
		{Name: "virtual", Kind: "virtual", Ready: true}, {Name: "a", Kind: "port"}, {Name: "b", Kind: "port", Ready: true},
	} {
		all.add(d.Name, named{d})
	}
	var names []string
	for _, d := range all.describe(t.Context()) {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "b virtual a" {
		t.Errorf("in the order %q", got)
	}
}

func TestArchivesFolder(t *testing.T) {
	a := archives{filepath.Join(t.TempDir(), "none-yet")}
	if all, err := a.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	for name, says := range map[string]string{"../x.wacz": "no name of a recording", "x.zip": "no name of a recording", ".x.wacz": "no name of a recording"} {
		if _, err := a.Put(t.Context(), name, strings.NewReader("x")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := a.Put(t.Context(), "x.wacz", strings.NewReader("PK\x03\x04 and no more"))
	if err == nil || !strings.Contains(err.Error(), "x.wacz") || strings.Contains(err.Error(), ".incoming-") {
		t.Errorf("half a recording: %v", err)
	}
	left, err := os.ReadDir(a.dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	for _, err := range []error{a.Remove("x.wacz"), func() error { _, err := a.Open("x.wacz"); return err }()} {
		if err == nil || !strings.Contains(err.Error(), "there is no recording") {
			t.Errorf("what is not there: %v", err)
		}
	}
}
