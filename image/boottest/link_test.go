package boottest

import "testing"

// testKernelLink holds the kernel back end of the link to the suite that all
// back ends pass; its netem is on the box whatever machine tests this.
func testKernelLink(t *testing.T, b *Box) {
	b.Test(t, "./netlab/link", "TestKernelConforms")
}
