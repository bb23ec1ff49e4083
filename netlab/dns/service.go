package dns

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// reachable returns an HTTPS or SVCB record (RFC 9460) with only what the box can
// serve, or nil: without ECH, which would hide the name for which the proxy has to
// sign a certificate, without the origin's address hints, and with the protocols
// that the box speaks.
func reachable(rr dns.RR, http3 bool) dns.RR {
	out := dns.Copy(rr)
	var svcb *dns.SVCB
	switch rr := out.(type) {
	case *dns.HTTPS:
		svcb = &rr.SVCB
	case *dns.SVCB:
		svcb = rr
	default:
		return out
	}
	kept := svcb.Value[:0]
	removed := map[dns.SVCBKey]bool{}
	var mandatory *dns.SVCBMandatory
	alpn := true // at least one of the named protocols remains
	for _, kv := range svcb.Value {
		switch kv := kv.(type) {
		case *dns.SVCBAlpn:
			var list []string
			for _, p := range kv.Alpn {
				if p == "h2" || p == "http/1.1" || p == "h3" && http3 {
					list = append(list, p)
				}
			}
			if len(list) == 0 {
				alpn = false
				continue
			}
			kept = append(kept, &dns.SVCBAlpn{Alpn: list})
		case *dns.SVCBNoDefaultAlpn:
			kept = append(kept, kv)
		case *dns.SVCBPort:
			if kv.Port != 443 {
				return nil // the box has no listener there
			}
			kept = append(kept, kv)
		case *dns.SVCBMandatory:
			mandatory = kv
			kept = append(kept, kv)
		default:
			removed[kv.Key()] = true
		}
	}
	if mandatory != nil {
		for _, key := range mandatory.Code {
			if removed[key] {
				return nil
			}
		}
	}
	if !alpn { // only HTTP/3 was named; the default, http/1.1, remains
		for _, kv := range kept {
			if kv.Key() == dns.SVCB_NO_DEFAULT_ALPN {
				return nil
			}
		}
	}
	svcb.Value = kept
	return out
}

// leads tells whether the host that an HTTPS or SVCB record names has an address, for the device connects to that: a
// device that reads no such records, or had another answer, may never have asked for it. While recording, looking it up
// puts it into the recording.
func (s *Server) leads(rr dns.RR) bool {
	var target string
	switch rr := rr.(type) {
	case *dns.HTTPS:
		target = rr.Target
	case *dns.SVCB:
		target = rr.Target
	}
	if target == "" || target == "." { // the name itself, or that there is no service
		return true
	}
	for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
		if a, err := s.lookup(Canonical(target), qtype); err == nil && len(a.Origins) > 0 {
			return true
		}
	}
	return false
}

// serviceHost returns a name without its leading attributes:
// "www.example.com" of "_8443._https.www.example.com".
func serviceHost(name string) string {
	for strings.HasPrefix(name, "_") {
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return name
		}
		name = rest
	}
	return name
}

// reversed returns the address of a name below in-addr.arpa or ip6.arpa.
func reversed(name string) (netip.Addr, bool) {
	if rest, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		var b [4]byte
		labels := strings.Split(rest, ".")
		if len(labels) != len(b) {
			return netip.Addr{}, false
		}
		for i, l := range labels {
			n, err := strconv.ParseUint(l, 10, 8)
			if err != nil {
				return netip.Addr{}, false
			}
			b[len(b)-1-i] = byte(n)
		}
		return netip.AddrFrom4(b), true
	}
	rest, ok := strings.CutSuffix(name, ".ip6.arpa")
	labels := strings.Split(rest, ".")
	var b [16]byte
	if !ok || len(labels) != 2*len(b) {
		return netip.Addr{}, false
	}
	for i, l := range labels {
		n, err := strconv.ParseUint(l, 16, 4)
		if err != nil || len(l) != 1 {
			return netip.Addr{}, false
		}
		at := len(labels) - 1 - i
		b[at/2] |= byte(n) << (4 * (1 - at%2))
	}
	return netip.AddrFrom16(b), true
}
