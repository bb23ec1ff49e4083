package reach

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// machine is one with a public address of its own, and neighbours with public addresses.
func machine() (Machine, error) {
	return Machine{
		Addrs:    []netip.Addr{netip.MustParseAddr("203.0.114.7"), netip.MustParseAddr("2600:1::7"), netip.MustParseAddr("127.0.0.1")},
		Networks: []netip.Prefix{netip.MustParsePrefix("203.0.114.0/24"), netip.MustParsePrefix("2600:1::/64")},
	}, nil
}

func TestPublicAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"198.51.100.7": "", "2001:db8::1": "", "64:ff9b::c633:6407": "", "2600:1:0:1::7": "", "203.0.115.1": "",
		"127.0.0.1": isItself, "127.255.255.254": isItself, "::1": isItself, "0.0.0.0": isItself, "::": isItself,
		"10.1.2.3": isPrivate, "172.31.0.1": isPrivate, "192.168.1.1": isPrivate, "fd00:ec2::254": isPrivate, "100.100.100.200": isPrivate,
		"169.254.169.254": isLink, "fe80::1": isLink, "fe80::1%lo": isLink,
		"224.0.0.1": isNobody, "ff02::1": isNobody, "ff0e::1": isNobody, "255.255.255.255": isNobody,
		"::ffff:127.0.0.1": isItself, "::ffff:10.0.0.1": isPrivate,
		"64:ff9b::7f00:1": isPrivate, "64:ff9b::cb00:7207": isPrivate, "2002:a00:1::1": isPrivate, "2002:a9fe:a9fe::": isPrivate,
		"0.1.2.3": isPrivate, "192.0.0.8": isPrivate, "198.18.0.1": isPrivate, "198.19.255.255": isPrivate, "240.0.0.1": isPrivate,
		"::a00:1": isPrivate, "::ffff:0:a00:1": isPrivate, "64:ff9b:1::a00:1": isPrivate, "2001::1": isPrivate, "fec0::1": isPrivate,
		// This machine at its public addresses, and its neighbours.
		"203.0.114.7": isItself, "2600:1::7": isItself, "203.0.114.8": isNear, "2600:1::8": isNear, "::ffff:203.0.114.7": isItself,
	} {
		r := &Rule{Machine: machine}
		err := r.Check("shop.example", netip.AddrPortFrom(netip.MustParseAddr(addr), 80))
		if want == isPublic && err != nil || want != isPublic && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check(%s) = %v; want %q", addr, err, want)
		}
		private := &Rule{Machine: machine, Private: true}
		if err := private.Check("shop.example", netip.AddrPortFrom(netip.MustParseAddr(addr), 80)); (err != nil) != (want == isNobody) {
			t.Errorf("with Private, Check(%s) = %v", addr, err)
		}
	}
	unknown := &Rule{Machine: func() (Machine, error) { return Machine{}, errors.New("no netlink") }}
	if err := unknown.Check("shop.example", netip.MustParseAddrPort("198.51.100.7:80")); !errors.Is(err, ErrRefused) {
		t.Errorf("Check() on a machine that does not know itself = %v; want ErrRefused", err)
	}
}

// This machine's real addresses and networks are found.
func TestThisMachine(t *testing.T) {
	m, err := ThisMachine()
	if err != nil || !m.has(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		t.Fatalf("ThisMachine() = %v, %v; want 127.0.0.1 in it", m, err)
	}
	for _, a := range m.Addrs {
		if err := new(Rule).Check("shop.example", netip.AddrPortFrom(a, 8080)); !errors.Is(err, ErrRefused) {
			t.Errorf("Check() of this machine's %v = %v; want ErrRefused", a, err)
		}
	}
}

func TestOwnListenersAreClosed(t *testing.T) {
	r := &Rule{Private: true, Machine: machine, Own: []netip.AddrPort{
		netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("0.0.0.0:443"), netip.MustParseAddrPort("[::]:9000"), {},
	}, Pages: map[string][]netip.Addr{"127.0.0.1": {netip.MustParseAddr("127.0.0.1")}}, Allow: []string{"127.0.0.1"}}
	for to, closed := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.1:443": true, "[::1]:443": true, "0.0.0.0:8080": true, "203.0.114.7:443": true,
		"[2600:1::7]:9000": true, "203.0.114.7:9000": true, "[::ffff:127.0.0.1]:8080": true,
		"127.0.0.1:3000": false, "198.51.100.7:443": false, "127.0.0.2:8080": false, "203.0.114.8:443": false,
	} {
		if err := r.Check("127.0.0.1", netip.MustParseAddrPort(to)); strings.Contains(errText(err), "itself listens") != closed {
			t.Errorf("Check(%s) = %v; want it closed: %t", to, err, closed)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The address counts, in whatever way the URL writes it, and after the name is resolved; what is connected to is what
// was checked.
func TestDialerChecksWhatItConnectsTo(t *testing.T) {
	var dialled []string
	answers := [][]netip.Addr{{netip.MustParseAddr("198.51.100.7")}, {netip.MustParseAddr("127.0.0.1")}}
	d := Dialer{
		Rule: &Rule{Machine: machine},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled = append(dialled, HostOf(ctx)+" "+address)
			return nil, net.ErrClosed
		},
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "turns.example" { // another answer each time
				now := answers[0]
				answers = append(answers[1:], now)
				return now, nil
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("198.51.100.9"), netip.MustParseAddr("10.0.0.1")}, nil
		},
	}
	for _, addr := range []string{"127.0.0.1:8080", "[::1]:80", "[::ffff:7f00:1]:80", "169.254.169.254:80"} {
		if _, err := d.DialContext(t.Context(), "tcp", addr); !errors.Is(err, ErrRefused) {
			t.Errorf("DialContext(%s) = %v; want ErrRefused", addr, err)
		}
		if _, err := d.Connect(t.Context(), "tcp", "shop.example", addr); !errors.Is(err, ErrRefused) {
			t.Errorf("Connect(%s) = %v; want ErrRefused", addr, err)
		}
	}
	for _, addr := range []string{"mixed.example:80", "turns.example:80"} {
		if _, err := d.DialContext(t.Context(), "tcp", addr); !errors.Is(err, net.ErrClosed) {
			t.Errorf("DialContext(%s) = %v; want that of Dial", addr, err)
		}
	}
	if _, err := d.DialContext(t.Context(), "tcp", "turns.example:80"); !errors.Is(err, ErrRefused) {
		t.Errorf("DialContext() of a name that leads elsewhere now = %v; want ErrRefused", err)
	}
	if got := strings.Join(dialled, ", "); got != "mixed.example 198.51.100.9:80, turns.example 198.51.100.7:80" {
		t.Errorf("the connections were %s; want those to public addresses alone", got)
	}
	for _, addr := range []string{"shop.example", "shop.example:http", "shop.example:70000"} {
		if _, err := d.DialContext(t.Context(), "tcp", addr); err == nil {
			t.Errorf("DialContext(%s) succeeded; want an error", addr)
		}
	}
}
