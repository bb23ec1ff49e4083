package boottest

import (
	"strings"
	"testing"
)

// testGadget makes the box a keyboard, a mouse and a touch screen at a USB device port of
// software, whose other end is the box's own kernel: what it gets is what was sent.
// A phone's input devices are held against the kernel's UHID driver.
func testGadget(t *testing.T, b *Box) {
	const unit = "appliance-usb@dummy_udc.0.service" // which makes the same at the same port
	b.Run(t, "systemctl mask --runtime "+unit)
	defer b.Run(t, "systemctl unmask --runtime "+unit)
	b.Test(t, "./control/gadget", "TestGadget")
	b.Test(t, "./control/adb", "TestUHID")
}

// testUSBPort checks that a box with a USB device port is a keyboard and a mouse there by itself,
// which the service's account may use, though it may not make them, and that only one program does.
func testUSBPort(t *testing.T, b *Box) {
	b.Run(t, "modprobe dummy_hcd")
	defer b.Until(t, "modprobe -r dummy_hcd")
	b.Until(t, "grep configured /sys/class/udc/dummy_udc.0/state")
	// The kernel fetches a mouse's reports only while somebody reads them. Each reader ends with its device.
	b.Until(t, "test $(grep -l Eidetic /sys/class/input/event*/device/name | wc -l) -ge 3")
	b.Run(t, "for f in $(grep -l Eidetic /sys/class/input/event*/device/name | cut -d / -f 5); do setsid cat /dev/input/$f > /dev/null 2>&1 < /dev/null & done")
	const control = "systemd-run --quiet --wait --pipe --uid appliance --property SupplementaryGroups=input " +
		"/usr/bin/appliance control --device gadget: --screen 640x480 "
	if out := b.Run(t, control+"'key a; click 10,10'"); !strings.Contains(out, "key a") || !strings.Contains(out, "click") {
		t.Errorf("the service's account pressed a key and clicked; it was told %q", out)
	}
	out, err := b.Try(t, "("+control+"'wait 12s' & sleep 5; "+control+"'key a'; code=$?; wait; exit $code)")
	if err == nil || !strings.Contains(out, "another program drives this device") {
		t.Errorf("a second program drives the device: %q", out)
	}
}
