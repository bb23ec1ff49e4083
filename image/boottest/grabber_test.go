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
