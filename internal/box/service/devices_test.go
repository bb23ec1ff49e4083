package service

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/errand"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/seat"
	"eidetic/internal/web/panel"
)

func TestDeviceConfigSaysWhere(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"devices: [{name: x}]", "devices[0].port"},
		{"devices:\n  - port: a/b\n", "devices[0].port"},
		{"devices: [{port: e0}, {port: e0, name: y}]", "two devices are at e0"},
		{"devices: [{port: e0, name: virtual}]", "is taken"},
		{"devices: [{port: e0, gateway: 192.168.77.1}]", "prefix length"},
		{"devices: [{port: e0, gateway: 10.0.0.1/24}]", "of the form 192.168.N.1/24"},
		{"devices: [{port: e0, gateway: 192.168.80.1/24}, {port: e1, gateway: 192.168.80.1/24}]", "devices[1].gateway"},
		{"devices: [{port: e0, gateway: 192.168.78.1/24}, {port: e1}]", "192.168.78.1/24 is the box's address at e0 already"},
		{"devices: [{port: e0}]\nbox: {uplink: e0}", "e0 is box.uplink"},
		{"devices: [" + strings.Repeat("{port: e0}, ", maxDevices+1) + "]", "at most 64"},
		{"devices: [{port: e0, rate: 1000}]", "devices[0].rate"},
		{"devices: [{port: e0, rate: .nan}]", "devices[0].rate"},
		{"devices: [{port: e0, fresh: [press x]}]", "devices[0].fresh"},
		{"devices: [{port: e0, vnc: 70000}]", "box.yaml"},
		{"devices: [{port: e0, screen: {v4l2: /dev/sda}}]", "devices[0].screen.v4l2"},
		{"devices: [{port: e0, screen: {v4l2: /dev/video0, latency_ms: [9, 8]}}]", "devices[0].screen.latency_ms"},
		{"devices: [{port: e0, screen: {}}]", "name one of v4l2, camera, rfb, x11 and scrcpy"},
		{"devices: [{port: e0, controls: {gadget: auto, adb: auto}}]", "name one of gadget, ch9329"},
		{"devices: [{port: e0, controls: {gadgt: auto}}]", `unknown field "gadgt"`},
		{"devices: [{port: e0, recipe: beos}]", "devices[0].recipe"},
		{"devices: [{port: e0, display: 'host:0'}]", "devices[0].display"},
		{"devices: [{port: e0, clear: true}]", "devices[0].clear"},
		{"devices: [{port: e0, power: {shelly: 192.168.1.20}}]", "devices[0].power.shelly"},
		{"devices: [{port: e0, power: {}}]", "name one of shelly, tasmota, usb, gpio and wake_on_lan"},
		{"network: {resolver: example.com}", "network.resolver"},
	} {
		cfg := DefaultConfig()
		if err := ParseConfig("box.yaml", []byte(c.text), &cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParseConfig(%s) = %v; want a word of %q", c.text, err, c.want)
		}
	}
}

// named is a device that is or is not ready.
type named struct{ panel.Device }

func (n named) describe(context.Context) panel.Device                              { return n.Device }
func (named) forErrands() errand.Device                                            { return errand.Device{} }
func (named) refuses(plan.Checked) error                                           { return nil }
func (n named) carryOut(context.Context, string, plan.Checked, execute.News) error { return nil }
func (n named) place() *seat.Seat                                                  { return &seat.Seat{} }

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
		t.Errorf("describe() is in the order %q; want \"b virtual a\"", got)
	}
}

// An upload that an earlier service was killed in is removed at the start, and
// nothing else is.
func TestUploadsThatWereCutOff(t *testing.T) {
	a := Uploads{Dir: filepath.Join(t.TempDir(), "archives")}
	if err := a.makeDir(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{incoming + "123", "shop.wacz", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(a.Dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a.removeIncomplete(slog.New(slog.DiscardHandler))
	var left []string
	entries, err := os.ReadDir(a.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); got != "notes.txt shop.wacz" {
		t.Errorf("the files %s are left; want notes.txt and shop.wacz", got)
	}
}

func TestArchivesFolder(t *testing.T) {
	a := Uploads{Dir: filepath.Join(t.TempDir(), "none-yet")}
	if all, err := a.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("List() of a folder that is missing = %v, %v; want nothing, nil", all, err)
	}
	for name, says := range map[string]string{"../x.wacz": "not a name of a recording", "x.zip": "not a name of a recording", ".x.wacz": "not a name of a recording"} {
		if _, err := a.Put(t.Context(), name, "", strings.NewReader("x"), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Put(%q) = %v; want %q", name, err, says)
		}
	}
	_, err := a.Put(t.Context(), "x.wacz", "", strings.NewReader("PK\x03\x04 and no more"), nil)
	if err == nil || !strings.Contains(err.Error(), "x.wacz") || strings.Contains(err.Error(), ".incoming-") {
		t.Errorf("Put() of half a recording = %v; want an error with its name", err)
	}
	left, err := os.ReadDir(a.Dir)
	if err != nil || len(left) != 0 {
		t.Errorf("the files %v are left behind, %v; want none, nil", left, err)
	}
	for _, err := range []error{a.Remove("x.wacz"), func() error { _, err := a.Open("x.wacz"); return err }()} {
		if err == nil || !strings.Contains(err.Error(), "there is no recording") {
			t.Errorf("a recording that is missing: %v; want that there is none", err)
		}
	}
}

// TestQuarantine: a device that nothing brought back takes no run until somebody has opened the box's page on it.
func TestQuarantine(t *testing.T) {
	d := &portDevice{}
	if err := d.quarantine(time.Now()); err != nil {
		t.Errorf("quarantine() of a device that never hung = %v; want nil", err)
	}
	d.hung, d.hungAt = errors.New("it did not open the page"), time.Now()
	if err := d.quarantine(d.hungAt.Add(-time.Minute)); err == nil || !strings.Contains(err.Error(), "open http://box.test/ on it") {
		t.Errorf("quarantine() = %v; want what to do", err)
	}
	if err := d.quarantine(d.hungAt.Add(time.Second)); err != nil || d.hung != nil {
		t.Errorf("quarantine() after the page was opened = %v; want nil", err)
	}
}

// TestRefusesStates: a plan is refused when it is sent, not when its run begins.
func TestRefusesStates(t *testing.T) {
	arm := lab.NamedArm{Name: lab.Control, Arm: lab.Arm{State: lab.StateRebooted}}
	p := plan.Checked{Cells: []plan.Cell{{Arms: []plan.Arm{{NamedArm: arm}}}}}
	phone := &portDevice{config: deviceConfig{
		Port: "e0", Controls: &lab.ControlsPart{ADB: lab.AutoPart}, Recipe: "android-chrome",
	}.withDefaults(0)}
	if err := phone.refuses(p); err != nil {
		t.Errorf("a phone refuses rebooted: %v", err)
	}
	for name, d := range map[string]measurable{"virtual": &virtualDevice{}, "vnc": &portDevice{config: deviceConfig{Port: "e0"}.withDefaults(0)}} {
		var field *lab.FieldError
		if err := d.refuses(p); !errors.As(err, &field) || field.Path != "state" {
			t.Errorf("%s: refuses() = %v; want an error of the field state", name, err)
		}
	}
}

// TestBroadcast: magic packets go to the network of the device's port.
func TestBroadcast(t *testing.T) {
	for gateway, want := range map[string]string{"192.168.77.1/24": "192.168.77.255", "10.1.2.3/20": "10.1.15.255", "": "255.255.255.255"} {
		if got := broadcast(gateway).String(); got != want {
			t.Errorf("broadcast(%q) = %s; want %s", gateway, got, want)
		}
	}
}
