package samplesite

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// nameTTL is the lifetime of every record, in seconds.
const nameTTL = 60

// zones are the zones for which the name server has authority.
func zones() []string { return []string{"shop.test.", "example-ads.test."} }

// names answers A questions about hosts with authority (RFC 1035); a known name
// without the type gets NODATA, an unknown one NXDOMAIN (RFC 2308), a foreign one REFUSED.
func names(hosts map[string]netip.Addr) dns.Handler {
	return dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		defer func() { _ = w.WriteMsg(m) }() // an error means that the client has disconnected
		if q.Opcode != dns.OpcodeQuery || len(q.Question) != 1 {
			m.Rcode = dns.RcodeNotImplemented
			return
		}
		name := strings.ToLower(q.Question[0].Name)
		zone := ""
		for _, z := range zones() {
			if dns.IsSubDomain(z, name) {
				zone = z
			}
		}
		if zone == "" || q.Question[0].Qclass != dns.ClassINET {
			m.Rcode = dns.RcodeRefused
			return
		}
		m.Authoritative = true
		addr, found := hosts[strings.TrimSuffix(name, ".")]
		if found && addr.Is4() && q.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: nameTTL},
				A:   addr.AsSlice(),
			}}
			return
		}
		if !found && name != zone {
			m.Rcode = dns.RcodeNameError
		}
		m.Ns = []dns.RR{&dns.SOA{
			Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: nameTTL},
			Ns:  "ns." + zone, Mbox: "hostmaster." + zone, Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: nameTTL,
		}}
	})
}
