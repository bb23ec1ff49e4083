package boottest

import "testing"

// testGrabber films the kernel's virtual video driver, which stands for a capture
// card: all formats and their colours, lost and restored signals, unplugging, injected errors.
func testGrabber(t *testing.T, b *Box) {
	b.Test(t, "./capture/v4l2", "TestVivid")
}

// testGrabberColours films each format in each matrix and range.
func testGrabberColours(t *testing.T, b *Box) {
	b.Test(t, "./capture/v4l2", "TestEveryVividColour")
}

// testUSBGrabber films a stick that is emulated as USB through the kernel's driver of such sticks, with a fault of each
// kind that leaves the stick plugged in.
func testUSBGrabber(t *testing.T, b *Box) {
	testStick(t, b, "TestFaultsAreNamed")
}

// testUSBGrabbers films sticks that are blue, noisy, pulled out, and altering what they see, in all modes.
func testUSBGrabbers(t *testing.T, b *Box) {
	testStick(t, b, "TestDamagedCountsAsLost|TestOwnClockJumps|TestCablePulled|TestBlueIsNamed|TestNoiseIsHeld|"+
		"TestAlteredPicturesAreNamed|TestModes")
}

func testStick(t *testing.T, b *Box, run string) {
	b.Run(t, "dmesg -n 1") // the port of software complains of each request for its count of frames
	defer b.Until(t, "modprobe -r uvcvideo vhci-hcd")
	b.Test(t, "./internal/rigs/usbgrabber", run)
}
