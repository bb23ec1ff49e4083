package port

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/nstest"
	"eidetic/netlab/replay"
)

func (p *Port) mustStatus(t *testing.T) Status {
	t.Helper()
	s, err := p.Status()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFlaps unplugs the cable a hundred times, and the whole port twenty times.
func TestFlaps(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	phone := newPhone(t, w, "dev0")
	p := w.port(t, "dev0", nil)
	phone.lease(t)
	ip := testlab.NeedProgram(t, "ip")
	must := func(n *nstest.Namespace, args ...string) {
		t.Helper()
		if out, err := n.Output(ip, args...); err != nil {
			t.Fatal(err, out)
		}
	}
	watch := p.Watch()
	for i := range 100 {
		must(phone.Namespace, "link", "set", "eth0", "down")
		testlab.Await(t, "the cable's loss to be seen", func() bool { return !p.mustStatus(t).Carrier })
		if i == 0 {
			if why := strings.Join(watch.Reasons(), "; "); !strings.Contains(why, "cable was lost (1 times)") {
				t.Errorf("Reasons() of a trial whose cable was lost = %q, want that loss", why)
			}
		}
		must(phone.Namespace, "link", "set", "eth0", "up")
		testlab.Await(t, "the cable to be seen", func() bool { return p.mustStatus(t).Carrier })
	}
	if n := p.mustStatus(t).Flaps; n != 100 {
		t.Errorf("Status() counts %d losses of the cable, want 100", n)
	}
	phone.lease(t)
	if out, err := phone.curl(t, "http://box.test/"); err != nil || !strings.Contains(out, "Set up") {
		t.Fatalf("after 100 flaps: %v %s", err, out)
	}

	watch = p.Watch()
	for range 20 { // a USB adapter goes, and comes back as a new interface
		must(w.box, "link", "del", "dev0")
		testlab.Await(t, "the port's loss to be seen", func() bool { return !p.mustStatus(t).Present })
		nstest.Veth(t, w.box, "dev0", phone.Namespace, "eth0")
		testlab.Await(t, "the port to be seen", func() bool { s := p.mustStatus(t); return s.Present && s.Carrier })
	}
	if why := strings.Join(watch.Reasons(), "; "); !strings.Contains(why, "dev0 went away (20 times)") {
		t.Errorf("Reasons() of a trial whose port went away = %q, want that", why)
	}
	phone.lease(t)
	if out, err := phone.curl(t, "http://box.test/"); err != nil || !strings.Contains(out, "Set up") {
		t.Errorf("with the 21st adapter: %v %s", err, out)
	}
	// A port can be renamed, and another one get its name.
	must(w.box, "link", "set", "dev0", "down")
	must(w.box, "link", "set", "dev0", "name", "old0")
	testlab.Await(t, "the renaming to be seen", func() bool { return !p.mustStatus(t).Present })
}

// TestMissingPort starts without the port's interface, which appears later.
func TestMissingPort(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	p := w.port(t, "usb0", nil)
	if s := p.mustStatus(t); s.Present {
		t.Fatalf("Status() = %+v, want the port absent", s)
	}
	if why := strings.Join(p.Watch().Reasons(), ""); !strings.Contains(why, "usb0 is not there") {
		t.Errorf("Reasons() of a trial without a port = %q, want that", why)
	}
	phone := newPhone(t, w, "usb0")
	phone.lease(t)
	if out, err := phone.curl(t, "http://box.test/"); err != nil || !strings.Contains(out, "Set up") {
		t.Errorf("%v %s", err, out)
	}
}

// TestTwoDevices: two devices with one MAC address at two ports are valid, and two
// devices behind a switch at one port are not.
func TestTwoDevices(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	one, two := newPhone(t, w, "dev0"), newPhone(t, w, "dev1")
	for _, phone := range []*phone{one, two} {
		if out, err := phone.Output("ip", "link", "set", "eth0", "address", "02:11:22:33:44:55"); err != nil {
			t.Fatal(err, out)
		}
	}
	p := w.port(t, "dev0", nil)
	w.port(t, "dev1", func(c *Config) { c.Gateway = gateway78 })
	watch := p.Watch()
	for _, phone := range []*phone{one, two} {
		phone.lease(t)
		if out, err := phone.curl(t, "http://box.test/"); err != nil || !strings.Contains(out, "Set up") {
			t.Errorf("%v %s", err, out)
		}
	}
	for _, why := range watch.Reasons() {
		if strings.Contains(why, "device") {
			t.Errorf("Reasons() with one device at each port = %s, want none", why)
		}
	}

	desk := nstest.New(t) // with a switch on it
	third := newPhone(t, w, "dev2")
	fourth := &phone{Namespace: nstest.New(t), dir: t.TempDir(), caFile: third.caFile}
	for _, args := range [][]string{
		{"link", "add", "br0", "type", "bridge"}, {"link", "set", "br0", "up"},
	} {
		if out, err := desk.Output("ip", args...); err != nil {
			t.Fatal(err, out)
		}
	}
	nstest.Veth(t, desk, "p0", w.box, "dev3")
	for i, phone := range []*phone{third, fourth} {
		if i == 0 { // its cable goes to the switch instead
			if out, err := w.box.Output("ip", "link", "del", "dev2"); err != nil {
				t.Fatal(err, out)
			}
		}
		nstest.Veth(t, desk, fmt.Sprintf("p%d", i+1), phone.Namespace, "eth0")
	}
	for _, name := range []string{"p0", "p1", "p2"} {
		if out, err := desk.Output("ip", "link", "set", name, "master", "br0"); err != nil {
			t.Fatal(err, out)
		}
	}
	shared := w.port(t, "dev3", func(c *Config) { c.Gateway = gateway79 })
	watch = shared.Watch()
	third.lease(t)
	fourth.lease(t)
	for _, phone := range []*phone{third, fourth} {
		if out, err := phone.curl(t, "http://box.test/"); err != nil {
			t.Errorf("%v %s", err, out)
		}
	}
	if why := strings.Join(watch.Reasons(), "; "); !strings.Contains(why, "2 devices were active") {
		t.Errorf("Reasons() with two devices at one port = %q, want that", why)
	}
}

// TestFlood: one device sends hostile frames as fast as it can, while the trial of a
// device at another port goes on.
func TestFlood(t *testing.T) {
	testlab.Long(t, "a flood")
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	good, bad := newPhone(t, w, "dev0"), newPhone(t, w, "dev1")
	p := w.port(t, "dev0", nil)
	attacked := w.port(t, "dev1", func(c *Config) { c.Gateway, c.StateDir = gateway78, t.TempDir() })
	good.lease(t)
	bad.lease(t)
	a := shop("93.184.216.34:443", map[string]string{"https://www.shop.test/": "<!doctype html><h1>The shop</h1>"})
	s, err := p.Network().Replay(t.Context(), a, replay.Options{Wall: time.Now(), Timing: replay.Timing{Mode: replay.TimingNone}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := attacked.Network().Replay(t.Context(), a, replay.Options{Wall: time.Now()}); err != nil {
		t.Fatal(err)
	}

	watch, attackedWatch := p.Watch(), attacked.Watch()
	stop := make(chan struct{})
	var blasting sync.WaitGroup
	sent := 0
	blasting.Go(func() { sent = bad.blast(t, 1, stop) })
	begin := time.Now()
	loads := 0
	for time.Since(begin) < 4*time.Second || loads < 5 {
		if out, err := good.curl(t, "https://www.shop.test/"); err != nil || !strings.Contains(out, "The shop") {
			t.Errorf("load %d during the flood failed: %v %s", loads, err, out)
		}
		loads++
	}
	close(stop)
	blasting.Wait()
	t.Logf("%d frames in %v, %d loads beside them", sent, time.Since(begin), loads)
	if sent < 1000 {
		t.Errorf("%d frames were sent, want enough for a flood", sent)
	}
	if st := s.Stats(); st.Requests != loads || st.Misses != 0 {
		t.Errorf("the other device's trial has %+v, want %d requests", st, loads)
	}
	t.Logf("Reasons() of the other device's trial: %q", watch.Reasons())
	t.Logf("Reasons() of the flooding device's trial: %q", attackedWatch.Reasons())

	// The box works, and so does the port that was flooded.
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	if mem.HeapInuse > 512<<20 {
		t.Errorf("after the flood the heap uses %d MB", mem.HeapInuse>>20)
	}
	if n := len(attacked.mustStatus(t).Leases); n > 253 {
		t.Errorf("there are %d leases in a /24, want at most 253", n)
	}
	testlab.Await(t, "the attacked port to answer", func() bool {
		out, err := bad.curl(t, "http://box.test/")
		return err == nil && strings.Contains(out, "Set up")
	})
}
