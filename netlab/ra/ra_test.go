package ra

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/ipv6"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/nstest"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

var (
	router = netip.MustParseAddr("fe80::1")
	prefix = netip.MustParsePrefix("fd00:77::1/64")
	dns    = netip.MustParseAddr("fd00:77::1")
)

// TestMarshal compares with bytes put together by hand from the RFCs.
func TestMarshal(t *testing.T) {
	a := Advertisement{
		Lifetime: 30 * time.Minute, Source: net.HardwareAddr{2, 0, 0, 0, 0, 1}, MTU: 1500, Prefix: prefix, DNS: dns, Portal: "urn:x",
	}
	want := strings.Join([]string{
		"86000000", "40000708", "00000000", "00000000",
		"0101020000000001",
		"05010000000005dc",
		"030440c0", "00000708", "00000708", "00000000", "fd000077000000000000000000000000",
		"19030000", "00000708", "fd000077000000000000000000000001",
		"250175726e3a7800",
	}, "")
	b, err := a.Marshal()
	if err != nil || hex.EncodeToString(b) != want {
		t.Errorf("Marshal() = %x, %v; want\n%s", b, err, want)
	}
	a.Lifetime = 0
	if b, err = a.Marshal(); err != nil || binary.BigEndian.Uint16(b[6:]) != 0 || bytes.Contains(b, []byte("urn")) {
		t.Errorf("Marshal() with lifetime 0 = %x, %v; want lifetimes 0 and no portal", b, err)
	}
	for _, bad := range []Advertisement{
		{Prefix: netip.MustParsePrefix("fd00::/48")}, {Prefix: netip.MustParsePrefix("10.0.0.0/24")}, {},
		{Lifetime: time.Hour, Prefix: prefix, Portal: strings.Repeat("x", 2039)},
	} {
		if b, err := bad.Marshal(); err == nil {
			t.Errorf("Marshal() of %+v = %x, want an error", bad, b)
		}
	}
}

// TestSolicitationsTogether: two solicitations before an answer get one answer, to
// all nodes.
func TestSolicitationsTogether(t *testing.T) {
	s := &Server{requests: make(chan net.IP, 1)}
	one, two := net.ParseIP("fe80::1:1"), net.ParseIP("fe80::1:2")
	s.request(one)
	if to := <-s.requests; !to.Equal(one) {
		t.Errorf("one solicitation is answered to %v, want %v", to, one)
	}
	s.request(one)
	s.request(two)
	if to := <-s.requests; !to.Equal(net.IPv6linklocalallnodes) {
		t.Errorf("two solicitations are answered to %v, want %v", to, net.IPv6linklocalallnodes)
	}
}

// stalled is a socket whose deadline has expired before every write.
type stalled struct {
	net.PacketConn
	deadlines int
}

func (s *stalled) SetWriteDeadline(time.Time) error {
	s.deadlines++
	return s.PacketConn.SetWriteDeadline(time.Unix(1, 0))
}

// TestWithdrawIsRepeated: the final advertisement is tried three times, since no
// later one makes up for it.
func TestWithdrawIsRepeated(t *testing.T) {
	c, err := net.ListenPacket("udp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	socket := &stalled{PacketConn: c}
	s := &Server{c: Config{Log: slog.New(slog.DiscardHandler), Router: router}, ifi: &net.Interface{}, conn: socket,
		packet: ipv6.NewPacketConn(c)}
	s.withdraw()
	if socket.deadlines != 3 {
		t.Errorf("the final advertisement was tried %d times, want 3", socket.deadlines)
	}
}

func TestCheckSolicitation(t *testing.T) {
	local, nobody := netip.MustParseAddr("fe80::2"), netip.IPv6Unspecified()
	for _, c := range []struct {
		name string
		hex  string
		from netip.Addr
		hops int
		says string
	}{
		{"plain", "8500000000000000", local, 255, ""},
		{"from nobody", "8500000000000000", nobody, 255, ""},
		{"with an address", "8500000000000000" + "0101020000000001", local, 255, ""},
		{"routed", "8500000000000000", local, 254, "hop limit"},
		{"an advertisement", "8600000000000000", local, 255, "no router"},
		{"short", "850000", local, 255, "no router"},
		{"from elsewhere", "8500000000000000", netip.MustParseAddr("2001:db8::1"), 255, "no link-local address"},
		{"empty option", "85000000000000000100", local, 255, "length"},
		{"long option", "850000000000000001ff020000000001", local, 255, "length"},
		{"nobody's address", "8500000000000000" + "0101020000000001", nobody, 255, "unspecified source"},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		err = CheckSolicitation(b, c.from, c.hops)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("CheckSolicitation() of %s = %v, want %q", c.name, err, c.says)
		}
	}
}

// TestKernel: Linux takes an address, a route and the prefix from our advertisements,
// which must be well-formed for that, and removes them at the end.
func TestKernel(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	device, box := nstest.New(t), nstest.Here(t)
	nstest.Veth(t, box, "lab0", device, "eth0")
	box.Address(t, "lab0", "fe80::1/64")
	s, err := Serve(Config{Interface: "lab0", Router: router, Prefix: prefix, DNS: dns, MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	ip := testlab.NeedProgram(t, "ip")
	await := func(want bool, what string, args ...string) {
		t.Helper()
		out := ""
		testlab.Await(t, fmt.Sprintf("%v of %q in what ip %v prints", want, what, args), func() bool {
			var err error
			if out, err = device.Output(ip, args...); err != nil {
				t.Fatal(err, out)
			}
			return strings.Contains(out, what) == want
		}, func() any { return out })
	}
	await(true, "fd00:77:", "-6", "address", "show", "dev", "eth0", "scope", "global")
	await(true, "default via fe80::1", "-6", "route")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	await(false, "default via", "-6", "route")
}

func TestServeRefuses(t *testing.T) {
	for _, c := range []Config{
		{Interface: "lo", Router: dns, Prefix: prefix},
		{Interface: "nosuch0", Router: router, Prefix: prefix},
		{Interface: "lo", Router: router},
	} {
		if s, err := Serve(c); err == nil {
			t.Errorf("Serve(%+v) = nil, want an error", c)
			_ = s.Close()
		}
	}
}

func FuzzSolicitation(f *testing.F) {
	f.Add([]byte{133, 0, 0, 0, 0, 0, 0, 0}, true)
	f.Add([]byte{133, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1}, false)
	f.Add([]byte{133, 0, 0, 0, 0, 0, 0, 0, 14, 0}, true)
	f.Fuzz(func(t *testing.T, b []byte, nobody bool) {
		defer testlab.Input(t)()
		from := netip.MustParseAddr("fe80::2")
		if nobody {
			from = netip.IPv6Unspecified()
		}
		if CheckSolicitation(b, from, 255) == nil && (len(b) < 8 || len(b)%8 != 0) {
			t.Fatalf("CheckSolicitation(%x) = nil, want an error", b)
		}
	})
}
