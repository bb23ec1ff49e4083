//go:build guest

package link

import (
	"testing"

	"eidetic/internal/lab"
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

// newKernel makes a device behind a kernel link.
func newKernel(t testing.TB) (*nstest.Namespace, *Kernel) {
	t.Helper()
	device, box := nstest.New(t), nstest.Here(t)
	nstest.Veth(t, device, "eth0", box, "port0")
	device.Address(t, "eth0", deviceAddr+"/24")
	box.Address(t, "port0", gatewayAddr+"/24")
	if err := device.Do(func() error { return DisableOffloads("eth0") }); err != nil {
		t.Fatal(err)
	}
	k, err := NewKernel(KernelConfig{Interface: "port0", IFB: "port0-up", Profile: Profile{Name: "native"}, Clock: lab.Monotonic})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return device, k
}
