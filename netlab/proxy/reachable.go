package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// ErrPrivate is in the error of a connection that Public refused.
var ErrPrivate = errors.New("an address of this machine or of a private network") // constant

// Public is an UpstreamConfig.Refuse that lets a recording reach public addresses alone:
// a page from the internet must not read what only this machine or its network may read.
// It refuses loopback, link-local (with the metadata services of clouds), private, shared,
// multicast, reserved and unspecified addresses.
func Public(to netip.AddrPort) error {
	a := to.Addr().Unmap()
	if a.IsGlobalUnicast() && !a.IsPrivate() && !isReserved(a.WithZone("")) && !embedsPrivate(a) {
		return nil
	}
	return fmt.Errorf("%v is %w", to, ErrPrivate)
}

// reserved lists what a private network may use, or a translator leads into one, that netip does not name.
var reserved = []netip.Prefix{ // constant
	netip.MustParsePrefix("0.0.0.0/8"),      // RFC 791, this network
	netip.MustParsePrefix("100.64.0.0/10"),  // RFC 6598, shared by the customers of a provider
	netip.MustParsePrefix("192.0.0.0/24"),   // RFC 6890, protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"),  // RFC 2544, origins of a replay
	netip.MustParsePrefix("240.0.0.0/4"),    // RFC 1112, reserved, with broadcast
	netip.MustParsePrefix("::/96"),          // RFC 4291, IPv4-compatible
	netip.MustParsePrefix("64:ff9b:1::/48"), // RFC 8215, NAT64 of one's own network
	netip.MustParsePrefix("2001::/32"),      // RFC 4380, Teredo
	netip.MustParsePrefix("fec0::/10"),      // RFC 3879, site-local
}

func isReserved(a netip.Addr) bool {
	return slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) })
}

// NotItself returns an error for an address at which one of own listens: a request that
// comes back to the box would be sent again, without end.
func NotItself(to netip.AddrPort, own []netip.AddrPort) error {
	for _, o := range own {
		if o.Port() != to.Port() || !o.IsValid() {
			continue
		}
		if o.Addr().Unmap() == to.Addr().Unmap() || o.Addr().IsUnspecified() && isOfThisMachine(to.Addr().Unmap()) ||
			to.Addr().IsUnspecified() && isOfThisMachine(o.Addr().Unmap()) {
			return fmt.Errorf("%v is where the box itself listens, and the request would come back to it", to)
		}
	}
	return nil
}

// isOfThisMachine tells whether one of this machine's interfaces has the address.
func isOfThisMachine(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, i := range all {
		if p, err := netip.ParsePrefix(i.String()); err == nil && p.Addr().Unmap() == a {
			return true
		}
	}
	return false
}

// embedsPrivate tells an IPv6 address that a translator makes an IPv4 address of: NAT64
// (RFC 6052) and 6to4 (RFC 3056).
func embedsPrivate(a netip.Addr) bool {
	if !a.Is6() {
		return false
	}
	b := a.As16()
	var four netip.Addr
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		four = netip.AddrFrom4([4]byte(b[12:16]))
	case netip.MustParsePrefix("2002::/16").Contains(a):
		four = netip.AddrFrom4([4]byte(b[2:6]))
	default:
		return false
	}
	return Public(netip.AddrPortFrom(four, 0)) != nil
}

// addresses returns the addresses of an origin (host:port) that may be connected to.
func (u *Upstream) addresses(ctx context.Context, addr string) ([]netip.AddrPort, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: the port is no number: %w", addr, err)
	}
	addrs, err := u.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var out []netip.AddrPort
	var errs []error
	for _, a := range addrs {
		to := netip.AddrPortFrom(a, uint16(port))
		if u.c.Refuse != nil {
			if err := u.c.Refuse(to); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		out = append(out, to)
	}
	if len(out) == 0 && len(errs) > 0 {
		return nil, fmt.Errorf("connect to %s: %w", addr, errors.Join(errs...))
	}
	return out, nil
}
