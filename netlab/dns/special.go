package dns

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// refused are names that do not exist on the device's network, whatever a name server says, so that the device's
// requests come to the box.
var refused = map[string]bool{ // constant
	// Firefox does not use DNS over HTTPS then (support.mozilla.org/kb/canary-domain-use-application-dnsnet).
	"use-application-dns.net": true,
	// Apple's devices do not use iCloud Private Relay then (developer.apple.com/support/prepare-your-network-for-icloud-private-relay).
	"mask.icloud.com": true, "mask-h2.icloud.com": true,
}

// special answers for names that say what a network is like (RFC 6761). Those of the network behind the box would lead
// the device past the box, to its proxy, its resolvers or its translator. known is false for any other name.
func special(name string, qtype uint16) (rcode int, addrs []netip.Addr, known bool) {
	first, _, _ := strings.Cut(name, ".")
	switch {
	case refused[name], first == "wpad", first == "isatap": // web proxies and routers that are found by name
		return dns.RcodeNameError, nil, true
	case name == "resolver.arpa" || strings.HasSuffix(name, ".resolver.arpa"): // encrypted resolvers (RFC 9462, 6.4)
		return dns.RcodeSuccess, nil, true
	case name == "ipv4only.arpa": // without an AAAA there is no NAT64 (RFC 8880, 7.1)
		if qtype == dns.TypeA {
			addrs = []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 0, 170}), netip.AddrFrom4([4]byte{192, 0, 0, 171})}
		}
		return dns.RcodeSuccess, addrs, true
	}
	return 0, nil, false
}

// fallback returns the addresses of a name that a Source may not know.
func (s *Server) fallback(name string) ([]netip.Addr, bool) {
	if addrs, ok := s.c.Fallback[name]; ok {
		return addrs, true
	}
	for rest, more := name, true; ; {
		if _, rest, more = strings.Cut(rest, "."); !more {
			return nil, false
		}
		if addrs, ok := s.c.Fallback["*."+rest]; ok {
			return addrs, true
		}
	}
}
