package boottest

import "testing"

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
