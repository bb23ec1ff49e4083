package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"198.51.100.7": true, "2001:db8::1": true, "64:ff9b::c633:6407": true,
		"127.0.0.1": false, "::1": false, "0.0.0.0": false, "::": false, "10.1.2.3": false, "172.31.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "fe80::1": false, "fd00:ec2::254": false, "100.100.100.200": false, "224.0.0.1": false,
		"::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:a00:1::1": false,
		"0.1.2.3": false, "192.0.0.8": false, "198.18.0.1": false, "198.19.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"::a00:1": false, "64:ff9b:1::a00:1": false, "2001::1": false, "fec0::1": false,
	} {
		err := Public(netip.AddrPortFrom(netip.MustParseAddr(addr), 80))
		if (err == nil) != want || err != nil && !errors.Is(err, ErrPrivate) {
			t.Errorf("Public(%s) = %v; want reachable %t", addr, err, want)
		}
	}
}

// The address counts, in whatever way the URL writes it, and after the name is resolved.
func TestRefuseAfterResolution(t *testing.T) {
	dialled := 0
	u := NewUpstream(UpstreamConfig{
		Refuse: Public,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			dialled++
			return nil, net.ErrClosed
		},
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1")}, nil
		},
	})
	defer u.Close()
	for _, addr := range []string{"rebound.example:80", "127.0.0.1:8080", "[::1]:80", "169.254.169.254:80", "2130706433:80"} {
		if _, err := u.dial(t.Context(), "tcp", addr); !errors.Is(err, ErrPrivate) {
			t.Errorf("dial(%s) = %v; want ErrPrivate", addr, err)
		}
	}
	if dialled != 0 {
		t.Errorf("%d connections were made; want none", dialled)
	}
}

func TestNotItself(t *testing.T) {
	own := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("0.0.0.0:443"), {}}
	for to, itself := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.1:443": true, "[::1]:443": true, "0.0.0.0:8080": true,
		"127.0.0.1:3000": false, "198.51.100.7:443": false, "127.0.0.2:8080": false,
	} {
		if err := NotItself(netip.MustParseAddrPort(to), own); (err != nil) != itself || err != nil && !strings.Contains(err.Error(), "itself") {
			t.Errorf("NotItself(%s) = %v; want an error: %t", to, err, itself)
		}
	}
}
