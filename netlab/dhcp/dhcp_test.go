package dhcp

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/nstest"
)

var (
	gateway = netip.MustParseAddr("192.168.77.1")
	prefix  = netip.MustParsePrefix("192.168.77.0/24")
	noon    = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// table is a server without a socket, with a clock that the test sets.
type table struct {
	*Server
	now time.Time
}

func newTable(t testing.TB, change func(*Config)) *table {
	t.Helper()
	x := &table{now: noon}
	c := Config{Conn: nopConn{}, Gateway: gateway, Prefix: prefix, Now: func() time.Time { return x.now }}
	if change != nil {
		change(&c)
	}
	s, err := Serve(c)
	if err != nil {
		t.Fatal(err)
	}
	x.Server = s
	t.Cleanup(func() { _ = s.Close() })
	return x
}

// nopConn is a socket that receives nothing.
type nopConn struct{ net.PacketConn }

func (nopConn) ReadFrom([]byte) (int, net.Addr, error) { return 0, nil, net.ErrClosed }
func (nopConn) SetWriteDeadline(time.Time) error       { return nil }
func (nopConn) Close() error                           { return nil }
func (nopConn) LocalAddr() net.Addr                    { return &net.UDPAddr{} }

func mac(i int) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, byte(i >> 8), byte(i)} }

func (x *table) ask(t testing.TB, kind dhcpv4.MessageType, from int, wish string, mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	t.Helper()
	mods = append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(mac(from)), dhcpv4.WithMessageType(kind)}, mods...)
	if wish != "" {
		mods = append(mods, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.ParseIP(wish))))
	}
	m, err := dhcpv4.New(mods...)
	if err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.answer(m, mac(from).String())
}

func said(m *dhcpv4.DHCPv4) string {
	if m == nil {
		return "silence"
	}
	if m.YourIPAddr.IsUnspecified() {
		return m.MessageType().String()
	}
	return m.MessageType().String() + " " + m.YourIPAddr.String()
}

// TestCloseWritesWhatIsLate: Close writes the leases that a timer would have written,
// also when the timer's function already waits for the lock that Close has.
func TestCloseWritesWhatIsLate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leases.json")
	x := newTable(t, func(c *Config) { c.File = file })
	x.saved = time.Now().Add(time.Hour) // so that the next is late, whenever this machine gets there
	x.ask(t, dhcpv4.MessageTypeRequest, 1, "192.168.77.9")
	if _, err := os.Stat(file); x.later == nil || err == nil {
		t.Fatalf("the lease was written at once (%v), want it written later", err)
	}
	x.later.Stop()
	fired := make(chan struct{})
	x.later = time.AfterFunc(0, func() { close(fired) })
	<-fired
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); !strings.Contains(string(b), "192.168.77.9") {
		t.Errorf("the file has %s (%v), want both leases", b, err)
	}
}

func TestLeases(t *testing.T) {
	const (
		discover = dhcpv4.MessageTypeDiscover
		request  = dhcpv4.MessageTypeRequest
		release  = dhcpv4.MessageTypeRelease
		decline  = dhcpv4.MessageTypeDecline
		inform   = dhcpv4.MessageTypeInform
	)
	other := dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 0, 1)))
	x := newTable(t, func(c *Config) {
		c.Reserved = map[string]netip.Addr{mac(9).String(): netip.MustParseAddr("192.168.77.50")}
	})
	for i, c := range []struct {
		wait time.Duration
		kind dhcpv4.MessageType
		from int
		wish string
		mod  dhcpv4.Modifier
		want string
	}{
		{0, discover, 1, "", nil, "OFFER 192.168.77.2"},
		{0, discover, 2, "", nil, "OFFER 192.168.77.3"},
		{0, request, 1, "192.168.77.2", nil, "ACK 192.168.77.2"},
		{0, request, 2, "192.168.77.2", nil, "NAK"},
		{0, request, 2, "10.1.2.3", nil, "NAK"},
		{0, request, 2, "192.168.77.1", nil, "NAK"},
		{0, request, 2, "192.168.77.255", nil, "NAK"},
		{0, request, 2, "192.168.77.3", other, "silence"},
		{0, discover, 3, "192.168.77.40", nil, "OFFER 192.168.77.40"},
		{0, discover, 9, "192.168.77.40", nil, "OFFER 192.168.77.50"},
		{0, request, 9, "192.168.77.60", nil, "NAK"},
		{0, request, 4, "192.168.77.50", nil, "NAK"},
		{0, request, 4, "192.168.77.70", nil, "ACK 192.168.77.70"}, // it moved here with its address
		{30 * time.Minute, request, 1, "192.168.77.2", nil, "ACK 192.168.77.2"},
		{40 * time.Minute, discover, 5, "192.168.77.2", nil, "OFFER 192.168.77.4"}, // renewed, so still taken
		{0, release, 1, "", dhcpv4.WithClientIP(net.IPv4(192, 168, 77, 2)), "silence"},
		{0, discover, 1, "", nil, "OFFER 192.168.77.2"},
		{0, decline, 1, "192.168.77.2", nil, "silence"},
		{0, discover, 1, "", nil, "OFFER 192.168.77.5"},
		{0, inform, 7, "", nil, "ACK"},
	} {
		x.now = x.now.Add(c.wait)
		var mods []dhcpv4.Modifier
		if c.mod != nil {
			mods = append(mods, c.mod)
		}
		if got := said(x.ask(t, c.kind, c.from, c.wish, mods...)); got != c.want {
			t.Errorf("step %d: %v from %d for %q: %s, want %s", i, c.kind, c.from, c.wish, got, c.want)
		}
	}
}

func TestFloodLeavesLeasesAlone(t *testing.T) {
	x := newTable(t, func(c *Config) { c.Prefix = netip.MustParsePrefix("192.168.77.0/29") })
	if got := said(x.ask(t, dhcpv4.MessageTypeRequest, 1, "192.168.77.2")); got != "ACK 192.168.77.2" {
		t.Fatal(got)
	}
	for i := range 1000 {
		x.ask(t, dhcpv4.MessageTypeDiscover, 100+i, "")
	}
	if got := said(x.ask(t, dhcpv4.MessageTypeDiscover, 2, "")); !strings.HasPrefix(got, "OFFER ") {
		t.Errorf("with no address left the answer is %s, want the oldest offer's address", got)
	}
	x.now = x.now.Add(offerTime + time.Second)
	if got := said(x.ask(t, dhcpv4.MessageTypeDiscover, 2, "")); got != "OFFER 192.168.77.3" {
		t.Errorf("after the offers have ended the answer is %s", got)
	}
	if got := said(x.ask(t, dhcpv4.MessageTypeRequest, 1, "192.168.77.2")); got != "ACK 192.168.77.2" {
		t.Errorf("the first device gets %s", got)
	}
}

// A device that declines all that it is offered, under MAC addresses that it invents, leaves the next device an address:
// the one that was declined first. A lease that is answered stays, and so does a reservation.
func TestDeclinesLeaveAddresses(t *testing.T) {
	x := newTable(t, func(c *Config) {
		c.Prefix = netip.MustParsePrefix("192.168.77.0/29")
		c.Reserved = map[string]netip.Addr{mac(9).String(): netip.MustParseAddr("192.168.77.6")}
	})
	if got := said(x.ask(t, dhcpv4.MessageTypeRequest, 1, "192.168.77.3")); got != "ACK 192.168.77.3" {
		t.Fatal(got)
	}
	for i := range 20 {
		offer := x.ask(t, dhcpv4.MessageTypeDiscover, 100+i, "")
		if offer == nil {
			t.Fatalf("device %d is offered nothing", i)
		}
		x.now = x.now.Add(time.Millisecond)
		x.ask(t, dhcpv4.MessageTypeDecline, 100+i, offer.YourIPAddr.String())
	}
	offer := said(x.ask(t, dhcpv4.MessageTypeDiscover, 2, ""))
	if offer != "OFFER 192.168.77.5" { // 2, 4 and 5 in turn, of twenty
		t.Errorf("after all were declined the answer is %s; want an offer of the one that was declined first", offer)
	}
	if got := said(x.ask(t, dhcpv4.MessageTypeRequest, 2, strings.TrimPrefix(offer, "OFFER "))); !strings.HasPrefix(got, "ACK ") {
		t.Errorf("the request for it is answered with %s; want ACK", got)
	}
	if got := said(x.ask(t, dhcpv4.MessageTypeRequest, 1, "192.168.77.3")); got != "ACK 192.168.77.3" {
		t.Errorf("the device that has a lease gets %s; want it renewed", got)
	}
	if got := said(x.ask(t, dhcpv4.MessageTypeDiscover, 9, "")); got != "OFFER 192.168.77.6" {
		t.Errorf("the device with a reservation gets %s; want its own", got)
	}
}

// Whoever invents MAC addresses gets leases that nobody answers for: they are in no list and no file, nobody is told of
// them, and a device that answers gets an address, and keeps it.
func TestLeasesGoToWhoAnswers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leases.json")
	answering := map[netip.Addr]string{}
	var told []Lease
	x := newTable(t, func(c *Config) {
		c.File, c.OnLease = file, func(l Lease) { told = append(told, l) }
		c.Answers = func([]netip.Addr) map[netip.Addr]string { return answering }
	})
	invent := func(from int) {
		for i := range 300 {
			offer := x.ask(t, dhcpv4.MessageTypeDiscover, from+i, "")
			if offer == nil {
				continue
			}
			x.now = x.now.Add(time.Millisecond)
			x.ask(t, dhcpv4.MessageTypeRequest, from+i, offer.YourIPAddr.String())
		}
	}
	invent(1000)
	x.askOnce()
	if n := len(x.Leases()); n != 0 || len(told) != 0 {
		t.Errorf("%d leases count that nobody answers for, and %d were told; want none", n, len(told))
	}
	offer := x.ask(t, dhcpv4.MessageTypeDiscover, 1, "")
	if offer == nil {
		t.Fatal("a device gets no address beside 300 that were invented")
	}
	at := offer.YourIPAddr.String()
	if got := said(x.ask(t, dhcpv4.MessageTypeRequest, 1, at)); got != "ACK "+at {
		t.Fatalf("the device gets %s; want ACK %s", got, at)
	}
	answering[netip.MustParseAddr(at)] = mac(1).String()
	x.askOnce()
	if got := x.Leases(); len(got) != 1 || got[0].MAC != mac(1).String() || len(told) != 1 {
		t.Errorf("Leases() = %+v, and %d were told; want the device's", got, len(told))
	}
	answering[netip.MustParseAddr("192.168.77.9")] = mac(2).String() // of another device than the lease
	invent(2000)
	x.askOnce()
	if got := said(x.ask(t, dhcpv4.MessageTypeRequest, 1, at)); got != "ACK "+at || len(told) != 2 {
		t.Errorf("the device that renews gets %s, and %d were told; want ACK %s and 2", got, len(told), at)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if got := newTable(t, func(c *Config) { c.File = file }).Leases(); len(got) != 1 || got[0].MAC != mac(1).String() {
		t.Errorf("after a restart Leases() = %+v; want the device's", got)
	}
}

func TestLeasesSurviveARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "leases.json")
	keep := func(c *Config) { c.File = file }
	x := newTable(t, keep)
	x.ask(t, dhcpv4.MessageTypeRequest, 1, "192.168.77.9", dhcpv4.WithOption(dhcpv4.OptHostName("-<b>Anna\x00\n's phone")))
	want := x.Leases()
	y := newTable(t, keep)
	if d := cmp.Diff(want, y.Leases(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" ||
		len(want) != 1 || want[0].Name != "b-Anna-s-phone" {
		t.Errorf("leases after a restart (-want +got):\n%s%+v", d, want)
	}
	if got := said(y.ask(t, dhcpv4.MessageTypeDiscover, 1, "")); got != "OFFER 192.168.77.9" {
		t.Errorf("the device is offered %s", got)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("the file is %v (%v)", st, err)
	}
	for _, broken := range []string{"{broken", "", "null",
		`[{"mac":"02:00:00:00:00:01","addr":"10.0.0.1","until":"2027-01-01T00:00:00Z"},{"mac":"x","addr":"192.168.77.9"}]`} {
		if err := os.WriteFile(file, []byte(broken), 0o644); err != nil {
			t.Fatal(err)
		}
		z := newTable(t, keep)
		if got := said(z.ask(t, dhcpv4.MessageTypeDiscover, 1, "")); got != "OFFER 192.168.77.2" {
			t.Errorf("with the file %q the answer is %s", broken, got)
		}
	}
	if _, err := os.Stat(file + ".broken"); err != nil {
		t.Errorf("the broken file was not renamed: %v", err)
	}
}

// TestFileWrites: a busy server writes its file at most once a second.
func TestFileWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leases.json")
	x := newTable(t, func(c *Config) { c.File = file })
	begin := time.Now()
	for i := range 500 {
		x.ask(t, dhcpv4.MessageTypeRequest, 1+i%200, fmt.Sprintf("192.168.77.%d", 2+i%200))
	}
	x.mu.Lock()
	last, waits := x.saved, x.later != nil
	x.mu.Unlock()
	if took := time.Since(begin); took < saveEvery && (last.Sub(begin) > took || !waits) {
		t.Errorf(
			"500 leases took %v; the last write was %v ago, and another one waits: %v; want one that waits",
			took,
			time.Since(last),
			waits,
		)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	y := newTable(t, func(c *Config) { c.File = file })
	if n := len(y.Leases()); n != 200 {
		t.Errorf("the file has %d leases, want 200", n)
	}
}

// TestOneAddressTwoDevices: two devices with one MAC address renew in turn, and each
// change is noticed.
func TestOneAddressTwoDevices(t *testing.T) {
	var doubts int
	x := newTable(t, func(c *Config) { c.OnDoubt = func(Lease) { doubts++ } })
	android := dhcpv4.WithOption(dhcpv4.OptClassIdentifier("android-dhcp-14"))
	windows := dhcpv4.WithOption(dhcpv4.OptClassIdentifier("MSFT 5.0"))
	for i, c := range []struct {
		who  dhcpv4.Modifier
		want int
	}{{android, 0}, {android, 0}, {windows, 1}, {windows, 1}, {android, 2}} {
		if got := said(x.ask(t, dhcpv4.MessageTypeRequest, 1, "192.168.77.2", c.who)); got != "ACK 192.168.77.2" || doubts != c.want {
			t.Errorf("step %d: %s and %d doubts, want %d", i, got, doubts, c.want)
		}
	}
}

// TestUnanswered: messages that no device on this cable sends get no answer.
func TestUnanswered(t *testing.T) {
	x := newTable(t, nil)
	for name, mod := range map[string]dhcpv4.Modifier{
		"a server":        func(m *dhcpv4.DHCPv4) { m.OpCode = dhcpv4.OpcodeBootReply },
		"a relay":         dhcpv4.WithGatewayIP(net.IPv4(10, 0, 0, 1)),
		"itself":          dhcpv4.WithGatewayIP(net.IPv4(192, 168, 77, 1)),
		"a group":         dhcpv4.WithHwAddr(net.HardwareAddr{1, 0, 0, 0, 0, 1}),
		"nobody":          dhcpv4.WithHwAddr(make(net.HardwareAddr, 6)),
		"another medium":  dhcpv4.WithHwAddr(make(net.HardwareAddr, 16)),
		"a plain request": nil,
	} {
		m, err := dhcpv4.New(dhcpv4.WithHwAddr(mac(1)), dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover))
		if err != nil {
			t.Fatal(err)
		}
		if mod != nil {
			mod(m)
		}
		if got := x.isAnswerable(m); got != (mod == nil) {
			t.Errorf("isAnswerable() of %s = %v, want %v", name, got, mod == nil)
		}
	}
}

// stalled is a socket whose deadline expires before the first write.
type stalled struct {
	nopConn
	tries int
}

func (s *stalled) WriteTo(b []byte, _ net.Addr) (int, error) {
	if s.tries++; s.tries == 1 {
		return 0, os.ErrDeadlineExceeded
	}
	return len(b), nil
}

// On a machine that stalls no answer is lost. The device would ask again only after
// seconds.
func TestStallsLoseNoAnswer(t *testing.T) {
	m, err := dhcpv4.New(dhcpv4.WithHwAddr(mac(1)), dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover))
	if err != nil {
		t.Fatal(err)
	}
	var socket stalled
	newTable(t, nil).handle(&socket, &net.UDPAddr{}, m)
	if socket.tries != 2 {
		t.Errorf("the answer was written %d times, want 2", socket.tries)
	}
}

func TestServeRefuses(t *testing.T) {
	for _, c := range []Config{
		{Gateway: gateway, Prefix: netip.MustParsePrefix("10.0.0.0/24")},
		{Gateway: gateway, Prefix: netip.MustParsePrefix("192.0.0.0/8")},
		{Gateway: gateway, Prefix: prefix, Reserved: map[string]netip.Addr{"x": gateway}},
		{Gateway: gateway, Prefix: prefix, Interface: "nosuch0"},
	} {
		c.Now = time.Now
		if s, err := Serve(c); err == nil {
			_ = s.Close()
			t.Errorf("Serve(%+v) = nil, want an error", c)
		}
	}
}

// TestClients runs the library's own client and Debian's against the server, over a
// cable between namespaces.
func TestClients(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	device, box := nstest.New(t), nstest.Here(t)
	nstest.Veth(t, device, "eth0", box, "lab0")
	box.Address(t, "lab0", "192.168.77.1/24")
	leased := make(chan Lease, 10)
	s, err := Serve(Config{Interface: "lab0", Gateway: gateway, Prefix: prefix, Now: time.Now, CaptivePortal: "https://box.test/portal",
		OnLease: func(l Lease) { leased <- l }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	err = device.Do(func() error {
		c, err := nclient4.New("eth0", nclient4.WithTimeout(5*time.Second), nclient4.WithRetry(6))
		if err != nil {
			return err
		}
		defer c.Close()
		l, err := c.Request(context.Background())
		if err != nil {
			return err
		}
		a := l.ACK
		if a.YourIPAddr.String() != "192.168.77.2" || a.Router()[0].String() != "192.168.77.1" || a.DNS()[0].String() != "192.168.77.1" ||
			a.NTPServers()[0].String() != "192.168.77.1" || string(a.Options.Get(dhcpv4.GenericOptionCode(114))) != "https://box.test/portal" {
			return fmt.Errorf("the lease is %s", a.Summary())
		}
		return nil
	})
	if err != nil {
		t.Errorf("the library's client: %v", err)
	}

	dhclient := testlab.NeedProgram(t, "dhclient")
	dir := t.TempDir()
	script, pid := filepath.Join(dir, "script"), filepath.Join(dir, "pid")
	const sh = "#!/bin/sh\ncase $reason in BOUND|REBOOT) ip address add $new_ip_address/24 dev $interface && ip route add default via $new_routers " +
		"&& echo $new_domain_name_servers > %s;; esac\n"
	if err := os.WriteFile(script, fmt.Appendf(nil, sh, filepath.Join(dir, "dns")), 0o755); err != nil {
		t.Fatal(err)
	}
	nstest.EndDaemons(t, pid)
	out, err := device.Output(dhclient, "-4", "-1", "-v", "-sf", script, "-lf", filepath.Join(dir, "leases"), "-pf", pid, "eth0")
	if err != nil {
		t.Fatalf("Debian's dhclient: %v\n%s", err, out)
	}
	dns, err := os.ReadFile(filepath.Join(dir, "dns"))
	if err != nil || strings.TrimSpace(string(dns)) != "192.168.77.1" {
		t.Errorf("dhclient's name server is %q (%v)\n%s", dns, err, out)
	}
	if out, err := device.Output(testlab.NeedProgram(t, "ping"), "-n", "-c", "1", "-W", "60", "192.168.77.1"); err != nil {
		t.Errorf("the device cannot reach its gateway: %v\n%s", err, out)
	}
	// The library's client does not use its address, and so has answered nobody; dhclient's device has.
	limit := time.After(testlab.Hang)
	select {
	case l := <-leased:
		if all := s.Leases(); len(all) != 1 || all[0] != l || !strings.HasPrefix(l.Addr.String(), "192.168.77.") {
			t.Errorf("OnLease got %+v and Leases() = %+v, want the same lease", l, all)
		}
	case <-limit:
		t.Error("the device's lease does not count, though it answers")
	}
}

// TestListWithoutEnd: a message whose list of options just stops is read; one that stops within an option is not.
func TestListWithoutEnd(t *testing.T) {
	m, err := dhcpv4.New(dhcpv4.WithHwAddr(mac(1)), dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithOption(dhcpv4.OptHostName("sensor")))
	if err != nil {
		t.Fatal(err)
	}
	b := m.ToBytes()
	end := bytes.LastIndexByte(b, 255)
	for _, c := range []struct {
		sent []byte
		want string
	}{
		{b, "sensor"}, {b[:end], "sensor"}, {append(bytes.Clone(b[:end]), 0, 0, 0), "sensor"}, {b[:end-2], ""},
	} {
		got := ""
		if m, err := parse(c.sent); err == nil {
			got = m.HostName()
		}
		if got != c.want {
			t.Errorf("%d of %d bytes are of %q; want %q", len(c.sent), len(b), got, c.want)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeInform} {
		m, err := dhcpv4.New(dhcpv4.WithHwAddr(mac(1)), dhcpv4.WithMessageType(kind))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.ToBytes())
	}
	x := newTable(f, nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		m, err := parse(b)
		if err != nil {
			return
		}
		x.handle(discard{}, &net.UDPAddr{}, m)
		if n := len(x.Leases()); n > 253 {
			t.Fatalf("there are %d leases in a /24, want at most 253", n)
		}
	})
}

// discard is a socket that drops every answer.
type discard struct{ net.PacketConn }

func (discard) SetWriteDeadline(time.Time) error { return nil }

func (discard) WriteTo(b []byte, _ net.Addr) (int, error) { return len(b), nil }

func FuzzLeaseFile(f *testing.F) {
	f.Add([]byte(`[{"mac":"02:00:00:00:00:01","addr":"192.168.77.9","name":"phone","until":"2026-11-21T13:00:00Z"}]`))
	f.Add([]byte("null"))
	f.Add([]byte(`[{"mac":"","addr":"","until":"9999-12-31T23:59:59Z"}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		x := newTable(t, nil)
		if err := x.parse(b); err != nil {
			return
		}
		for _, l := range x.Leases() {
			if !x.usable(l.Addr) || l.Until.After(x.now.Add(x.c.Lease)) || l.Name != hostname(l.Name) {
				t.Fatalf("the file's lease %+v was accepted, want it refused", l)
			}
		}
	})
}
