package port

import (
	"fmt"
	"os"
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
}

// TestRenamedPort: a port that is renamed while it is used is restored under its new name, and the port goes on with
// another interface that gets the old name, or with the same one when it is called so again.
func TestRenamedPort(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	phone := newPhone(t, w, "dev0")
	p := w.port(t, "dev0", nil)
	phone.lease(t)
	rename := func(from, to string) {
		t.Helper()
		// The port brings its interface up again at once, and one that is up may refuse a new name.
		testlab.Await(t, "the renaming", func() bool {
			_, _ = w.box.Output("ip", "link", "set", from, "down") // the next step says what is wrong
			_, err := w.box.Output("ip", "link", "set", from, "name", to)
			return err == nil
		})
	}
	trial := p.Watch()
	rename("dev0", "old0")
	testlab.Await(t, "the renaming to be seen", func() bool { return !p.mustStatus(t).Present })
	if why := strings.Join(trial.Reasons(), "; "); !strings.Contains(why, "dev0 went away (1 times)") {
		t.Errorf("Reasons() of a trial whose port was renamed = %q, want that", why)
	}
	flag, err := os.ReadFile("/proc/sys/net/ipv6/conf/old0/disable_ipv6")
	if link, linkErr := w.box.Output("ip", "link", "show", "old0"); err != nil || linkErr != nil || string(flag) != "0\n" || strings.Contains(link, "NOARP") {
		t.Errorf("under its new name the interface has disable_ipv6 %q, %v, %v and is\n%s\nwant it as it was", flag, err, linkErr, link)
	}
	if rules, err := w.box.Output("nft", "list", "ruleset"); err != nil || strings.Contains(rules, "old0") || strings.Contains(rules, "dev0") {
		t.Errorf("nftables still has rules for the interface: %v\n%s", err, rules)
	}
	rename("old0", "dev0")
	testlab.Await(t, "the port to be back", func() bool { s := p.mustStatus(t); return s.Present && s.Carrier })
	if out, err := phone.curl(t, "http://box.test/"); err != nil || !strings.Contains(out, "Set up") {
		t.Errorf("under the old name again: %v %s", err, out)
	}
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

// TestOddPorts: two ports with one hardware address, one of them with a queue discipline that drops everything, serve
// their devices.
func TestOddPorts(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	phones := []*phone{newPhone(t, w, "dev0"), newPhone(t, w, "dev1")}
	for _, args := range [][]string{
		{"ip", "link", "set", "dev0", "address", "02:00:00:00:00:01"}, {"ip", "link", "set", "dev1", "address", "02:00:00:00:00:01"},
		{testlab.NeedProgram(t, "tc"), "qdisc", "replace", "dev", "dev1", "root", "bfifo", "limit", "1"},
	} {
		if out, err := w.box.Output(args[0], args[1:]...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	w.port(t, "dev0", nil)
	w.port(t, "dev1", func(c *Config) { c.Gateway = gateway78 })
	for i, phone := range phones {
		phone.lease(t)
		if out, err := phone.curl(t, "http://box.test/"); err != nil || !strings.Contains(out, "Set up") {
			t.Errorf("the device at dev%d: %v %s", i, err, out)
		}
	}
}
