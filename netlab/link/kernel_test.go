package link

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/testlab"
	"eidetic/netlab/nstest"
)

// seen describes all that a kernel link changes, in the words of other programs.
func seen(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, args := range [][]string{{"tc", "qdisc", "show"}, {"tc", "filter", "show", "dev", "port0", "ingress"}, {"ip", "-br", "link"}} {
		out, err := exec.Command(testlab.NeedProgram(t, args[0]), args[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		all.Write(out)
	}
	on, err := Offloads("port0")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(on)
	return all.String() + strings.Join(on, " ")
}

// TestKernelRates does what needs no netem: rates, and everything put back.
func TestKernelRates(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	device, box := nstest.New(t), nstest.Here(t)
	nstest.Veth(t, device, "eth0", box, "port0")
	device.Address(t, "eth0", deviceAddr+"/24")
	box.Address(t, "port0", gatewayAddr+"/24")
	if err := device.Do(func() error { return DisableOffloads("eth0") }); err != nil {
		t.Fatal(err)
	}
	before := seen(t)
	c := KernelConfig{Interface: "port0", IFB: "port0-up", Profile: Profile{Name: "custom", Down: 4e6, Up: 2e6}, Clock: lab.Monotonic}
	for range 2 {
		k, err := NewKernel(c)
		if err != nil {
			t.Fatal(err)
		}
		far, near := dialer(t, device, listen(t, gatewayAddr+":0"))(t)
		for _, test := range []struct {
			up   bool
			rate float64
		}{{false, 4e6}, {true, 2e6}} {
			from, to := near, far
			if test.up {
				from, to = far, near
			}
			const bytes = 200_000
			if took, ideal := carry(t, from, to, bytes).Seconds(), bytes*8*1500/1448/test.rate; took < .97*ideal || took > 10*ideal {
				t.Errorf("up %v: %d bytes took %.3f s, want %.3f", test.up, bytes, took, ideal)
			}
		}
		if err := k.Set(Profile{Name: "custom", DownTrace: &Trace{}}); err == nil || !strings.Contains(err.Error(), "traces") {
			t.Errorf("a trace is no error: %v", err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		if after := seen(t); after != before {
			t.Errorf("afterwards there is\n%s\nand before there was\n%s", after, before)
		}
	}
	// What somebody configured is not ours to remove.
	tc := testlab.NeedProgram(t, "tc")
	if out, err := exec.Command(tc, "qdisc", "add", "dev", "port0", "root", "tbf", "rate", "1mbit", "burst", "2000", "latency", "50ms").CombinedOutput(); err != nil {
		t.Fatalf("tc: %v: %s", err, out)
	}
	if _, err := NewKernel(c); err == nil || !strings.Contains(err.Error(), "tc qdisc del dev port0 root") {
		t.Errorf("error %v, want one that says how to remove the discipline", err)
	}
	// A link that cannot be made leaves nothing.
	c.Interface = "none0"
	if _, err := NewKernel(c); err == nil || !strings.Contains(err.Error(), "none0") {
		t.Errorf("error %v, want one about none0", err)
	}
}
