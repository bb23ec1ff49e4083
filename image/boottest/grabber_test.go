package boottest

import "testing"

// testGrabber films the kernel's virtual video driver in place of a capture
// card: all formats, signals that go and come, unplugging, injected errors.
func testGrabber(t *testing.T, b *Box) {
	b.Test(t, "./capture/v4l2", "TestVivid")
}
