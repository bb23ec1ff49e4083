//go:build guest

package link

import (
	"testing"

	"eidetic/netlab/nstest"
)

// TestKernelConforms needs netem, which the box's kernel has.
func TestKernelConforms(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	device, k := newKernel(t)
	conform(t, backend{name: "kernel", set: k.Set, report: k.Report, close: k.Close, dial: dialer(t, device, listen(t, gatewayAddr+":0"))})
}
