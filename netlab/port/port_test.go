package port

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/link/packet"
	"eidetic/netlab/nstest"
	"eidetic/netlab/ra"
	"eidetic/netlab/replay"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == forwardArg { // the link's process
		if err := packet.Serve(os.NewFile(3, "control")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testlab.NoLeaks(m)
}

// TestBrowse: a device gets a lease, reads the certificate page, is recorded, and
// browses the recording without the origin.
func TestBrowse(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	phone := newPhone(t, w, "dev0")
	p := w.port(t, "dev0", func(c *Config) { c.StateDir = t.TempDir() })
	phone.lease(t)
	if b, err := os.ReadFile(filepath.Join(phone.dir, "ntp")); err != nil || strings.TrimSpace(string(b)) != "192.168.77.1" {
		t.Errorf("the lease's time server is %q (%v)", b, err)
	}
	if out, err := phone.curl(t, "http://box.test/"); err != nil || !strings.Contains(out, "Set up this device") {
		t.Fatalf("the certificate page: %v\n%s", err, out)
	}

	path := filepath.Join(t.TempDir(), "shop.wacz")
	wall := time.Now()
	aw, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: wall, PageDate: wall})
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := p.Network().Record(t.Context(), aw, replay.RecordOptions{Wall: time.Now, Inject: inject.Options{Date: wall}})
	if err != nil {
		t.Fatal(err)
	}
	urls := []string{"http://www.shop.test/plain", "https://www.shop.test/", "https://www.shop.test:8443/odd"}
	var live []string
	for _, url := range urls {
		out, err := phone.curl(t, url)
		if err != nil {
			t.Fatalf("recording %s: %v\n%s", url, err, out)
		}
		live = append(live, out)
	}
	p.Network().Disarm()
	if err := recorder.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := aw.Close(); err != nil {
		t.Fatal(err)
	}
	if got := w.reached(); len(got) != len(urls) {
		t.Fatalf("the site got the requests %q", got)
	}

	a, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for trial := range 2 {
		watch := p.Watch()
		s, err := p.Network().Replay(t.Context(), a, replay.Options{Wall: time.Now(), Timing: replay.Timing{Mode: replay.TimingNone}})
		if err != nil {
			t.Fatal(err)
		}
		for i, url := range urls {
			if out, err := phone.curl(t, url); err != nil || out != live[i] {
				t.Errorf("replaying %s: %v\n%s\nwant what was recorded:\n%s", url, err, out, live[i])
			}
		}
		if out, err := phone.curl(t, "-o", "/dev/null", "-w", "%{http_code}", "https://www.shop.test/unknown"); err != nil || out != "404" {
			t.Errorf("a page that was not recorded is answered with %s (%v)", out, err)
		}
		if st := s.Stats(); st.Misses != 1 || st.Requests != len(urls)+1 {
			t.Errorf("trial %d has %+v", trial, st)
		}
		for _, why := range watch.Reasons() {
			if !strings.Contains(why, "too busy") && !strings.Contains(why, "the kernel dropped") { // the machine may be slow, in a test
				t.Errorf("trial %d is invalid: %s", trial, why)
			}
		}
	}
	if got := w.reached(); len(got) != len(urls) {
		t.Errorf("while replaying the site got the requests %q, want none", got[len(urls):])
	}
	// A lease counts once its device is seen to answer, which is looked for now and then.
	testlab.Await(t, "the lease to be seen", func() bool { return len(p.mustStatus(t).Leases) > 0 })
	if st, err := p.Status(); err != nil || !st.Present || !st.Carrier || len(st.Leases) != 1 {
		t.Errorf("Status() = %+v, %v", st, err)
	}
}

// TestTime asks with Debian's client for the time, at servers that a device can have
// in its firmware.
func TestTime(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	phone := newPhone(t, w, "dev0")
	// The clock is an hour ahead, so that an answer from the machine's own clock shows.
	w.port(t, "dev0", func(c *Config) { c.Wall = func() time.Time { return time.Now().Add(time.Hour) } })
	phone.lease(t)
	phone.awaitIPv6(t)
	for _, server := range []string{"192.168.77.1", "198.51.100.123", "time.android.com", "fd00:77::1", "2001:db8::123"} {
		var out string
		var err error
		good := false
		for range 3 { // a stall makes the measured offset wrong by half its length
			out, err = phone.run(testlab.NeedProgram(t, "ntpdate"), "-q", "-d", server)
			if good = err == nil && (strings.Contains(out, "+3600.") || strings.Contains(out, "+3599.")); good {
				break
			}
		}
		if !good {
			ways, _ := phone.Output("sh", "-c", "ip route; ip -6 route; ip -6 address; ip neighbour") // only for the message
			t.Errorf("ntpdate -q -d %s: %v\n%s\nthe device has\n%s", server, err, out, ways)
		}
	}
}

// TestIsolation tries every way in which a device could reach others.
func TestIsolation(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	one, two := newPhone(t, w, "dev0"), newPhone(t, w, "dev1")
	p := w.port(t, "dev0", nil)
	w.port(t, "dev1", func(c *Config) { c.Gateway = gateway78 })
	one.lease(t)
	two.lease(t)
	// The machine around the box forwards packets, and has services of its own.
	for _, name := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		if err := os.WriteFile("/proc/sys/net/"+name, []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
	}
	w.box.Address(t, "up0", "2001:db8:1::2/64")
	w.internet.Address(t, "eth0", "2001:db8:1::80/64")
	w.box.Default(t, "2001:db8:1::80")
	w.internet.Default(t, "2001:db8:1::2")
	one.awaitIPv6(t)
	serveAnything(t, w.box, ":8080")
	serveAnything(t, w.internet, ":9000")
	serveAnything(t, two.Namespace, ":5555")
	serveAnything(t, one.Namespace, ":5555")

	const soon, surely = time.Second, time.Minute
	for _, addr := range []string{
		"192.168.77.1:8080", // the panel, at the gateway
		"203.0.113.2:8080",  // the panel, at the uplink's address
		siteAddr + ":9000",  // beyond the uplink
		"192.168.78.2:5555", // the other port's device
		"192.168.78.1:8080", // the box, at the other port
		"8.8.8.8:853", "1.1.1.1:22",
		"[fd00:77::1]:8080", "[fd00:78::1]:8080", "[2001:db8:1::2]:8080", "[2001:db8:1::80]:9000", "[2001:db8::1]:22",
	} {
		if err := one.reaches("tcp", addr, soon); err == nil {
			t.Errorf("the device reached %s, want it unreachable", addr)
		}
	}
	for _, addr := range []string{"192.168.77.1:53", "192.168.77.1:80", "192.168.77.1:443", "192.168.77.1:3128",
		"8.8.8.8:53", "198.51.100.9:443",
		"[fd00:77::1]:53", "[fd00:77::1]:80", "[2001:db8::53]:53", "[2001:db8::9]:443"} {
		if err := one.reaches("tcp", addr, surely); err != nil {
			t.Errorf("the device did not reach the box at %s: %v", addr, err)
		}
	}
	// The uplink does not reach the device's side of the box either.
	internet := &phone{Namespace: w.internet}
	for _, addr := range []string{"192.168.77.1:80", "192.168.77.1:53", "192.168.77.1:8080", "192.168.77.2:5555",
		"[fd00:77::1]:80", "[fd00:77::1]:8080"} {
		if err := internet.reaches("tcp", addr, soon); err == nil {
			t.Errorf("the uplink reached %s, want it unreachable", addr)
		}
	}
	// The box reaches its device, as adb and VNC need.
	box := &phone{Namespace: w.box}
	if err := box.reaches("tcp", "192.168.77.2:5555", surely); err != nil {
		t.Errorf("the box cannot reach its device: %v", err)
	}
	// The box ignores a device that advertises itself as a router.
	var rogue *ra.Server
	err := one.Do(func() (err error) {
		rogue, err = ra.Serve(ra.Config{Interface: "eth0", Router: one.linkLocal(t), Prefix: netip.MustParsePrefix("2001:db8:bad::/64")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := one.curl(t, "http://192.168.77.1/"); err != nil { // behind the advertisement
		t.Error(err, out)
	}
	for _, what := range []string{"route", "address"} {
		out, err := w.box.Output("ip", "-6", what)
		if err != nil || strings.Contains(out, "bad:") || strings.Contains(out, "default") && strings.Contains(out, "dev lab0 proto ra") {
			t.Errorf("the box took the device's advertisement: %v\n%s", err, out)
		}
	}
	if err := rogue.Close(); err != nil {
		t.Error(err)
	}
	st, err := p.Status()
	if err != nil || st.Strays == 0 {
		t.Errorf("Status() = %+v, %v; want strays counted", st, err)
	}
	if got := w.reached(); len(got) > 0 {
		t.Errorf("the site got the requests %q, want none", got)
	}
}

// TestRestores: a port at an interface that is in use restores the interface at its end.
func TestRestores(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	newPhone(t, w, "dev0")
	w.box.Address(t, "dev0", "10.9.8.7/24")
	if out, err := w.box.Output("ip", "route", "add", "10.99.0.0/16", "via", "10.9.8.1", "dev", "dev0"); err != nil {
		t.Fatal(err, out)
	}
	before := w.settled(t)
	p := w.port(t, "dev0", nil)
	if w.snapshot(t) == before {
		t.Fatal("the port did not change the network, want it changed until Close")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	w.unchanged(t, before)
	if out, err := w.box.Output("nft", "list", "ruleset"); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("nftables after Close: %v\n%s", err, out)
	}
}

func serveAnything(t *testing.T, n *nstest.Namespace, addr string) {
	t.Helper()
	s := &http.Server{Addr: addr}
	l, err := listenIn(n, addr)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
}
