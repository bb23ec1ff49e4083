package port

import (
	"strings"
	"testing"
	"time"

	"eidetic/netlab/nstest"
)

// TestUplinkTakesNoDevice: a lease with static routes (option 121 of DHCP), or a router advertisement with one, leads a
// part of the device's network to the uplink. The box still reaches its device, and nobody else at its address.
func TestUplinkTakesNoDevice(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	device := newPhone(t, w, "dev0")
	w.port(t, "dev0", nil)
	device.lease(t)
	device.awaitIPv6(t)
	serveAnything(t, device.Namespace, ":5555")
	for _, route := range [][]string{
		{"route", "add", "192.168.77.0/25", "via", siteAddr, "dev", "up0"},
		{"route", "add", "192.168.77.2/32", "via", siteAddr, "dev", "up0"},
		{"-6", "route", "add", "fd00:77::/65", "dev", "up0"},
	} {
		if out, err := w.box.Output("ip", route...); err != nil {
			t.Fatalf("ip %v: %v\n%s", route, err, out)
		}
	}
	for address, family := range map[string]string{"192.168.77.2": "-4", "192.168.77.99": "-4", "fd00:77::2": "-6"} {
		if out, err := w.box.Output("ip", family, "route", "get", address); err != nil || !strings.Contains(out, "dev lab0") {
			t.Errorf("packets to %s go %s (%v); want them at lab0", address, strings.TrimSpace(out), err)
		}
	}
	box := &phone{Namespace: w.box}
	if err := box.reaches("tcp", "192.168.77.2:5555", time.Minute); err != nil {
		t.Errorf("the box cannot reach its device: %v", err)
	}
	if out, err := device.curl(t, "http://box.test/"); err != nil || !strings.Contains(out, "Set up this device") {
		t.Errorf("the device does not reach the box: %v\n%s", err, out)
	}
}
