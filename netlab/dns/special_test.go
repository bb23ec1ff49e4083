package dns

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"eidetic/internal/rigs/testlab"
)

// TestSpecialNames: what a network is like is the box's to say, also where a recording or the name server behind the
// box has an answer.
func TestSpecialNames(t *testing.T) {
	s := start(t, v6, nil)
	behind := NewTable()
	for _, name := range []string{"mask.icloud.com", "mask-h2.icloud.com", "wpad", "wpad.corp.test", "isatap.corp.test", "ipv4only.arpa",
		"use-application-dns.net", "maskicloud.com", "shop.wpad.test"} {
		behind.AddHost(name, netip.MustParseAddr("203.0.113.9"))
		behind.AddHost(name, netip.MustParseAddr("64:ff9b::c000:aa"))
	}
	behind.AddAnswer("_dns.resolver.arpa", "SVCB", "NOERROR", []string{`_dns.resolver.arpa. 9 IN SVCB 1 dns.example. alpn="h2" key7="/q{?dns}"`})
	s.Use(behind)
	for _, c := range []struct {
		name    string
		qtype   uint16
		rcode   int
		answers int
	}{
		{"mask.icloud.com", dns.TypeA, dns.RcodeNameError, 0},
		{"MASK-H2.icloud.com", dns.TypeAAAA, dns.RcodeNameError, 0},
		{"mask.icloud.com", dns.TypeHTTPS, dns.RcodeNameError, 0},
		{"maskicloud.com", dns.TypeA, dns.RcodeSuccess, 1},
		{"wpad", dns.TypeA, dns.RcodeNameError, 0},
		{"wpad.corp.test", dns.TypeA, dns.RcodeNameError, 0},
		{"isatap.corp.test", dns.TypeA, dns.RcodeNameError, 0},
		{"shop.wpad.test", dns.TypeA, dns.RcodeSuccess, 1},
		{"_dns.resolver.arpa", dns.TypeSVCB, dns.RcodeSuccess, 0},
		{"resolver.arpa", dns.TypeA, dns.RcodeSuccess, 0},
		{"ipv4only.arpa", dns.TypeA, dns.RcodeSuccess, 2},
		{"ipv4only.arpa", dns.TypeAAAA, dns.RcodeSuccess, 0},
	} {
		if r := s.ask(t, "udp", c.name, c.qtype); r.Rcode != c.rcode || len(r.Answer) != c.answers {
			t.Errorf("%s %s: %s with %v, want %s with %d answers", c.name, dns.TypeToString[c.qtype], dns.RcodeToString[r.Rcode], r.Answer,
				dns.RcodeToString[c.rcode], c.answers)
		}
	}
	if a := addrs(s.ask(t, "udp", "ipv4only.arpa", dns.TypeA)); len(a) != 2 || a[0].String() != "192.0.0.170" {
		t.Errorf("ipv4only.arpa is at %v, want its well-known addresses", a)
	}
}

// TestRefusedMessages: what is no query for a name is refused with a code that fits, and with the extension.
func TestRefusedMessages(t *testing.T) {
	s := start(t, v6, nil)
	for want, change := range map[int]func(*dns.Msg){
		dns.RcodeRefused: func(m *dns.Msg) {
			m.Question[0] = dns.Question{Name: "version.bind.", Qtype: dns.TypeTXT, Qclass: dns.ClassCHAOS}
		},
		dns.RcodeSuccess:        func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassANY },
		dns.RcodeBadVers:        func(m *dns.Msg) { m.IsEdns0().SetVersion(1) },
		dns.RcodeNotImplemented: func(m *dns.Msg) { m.Opcode = dns.OpcodeStatus },
	} {
		m := new(dns.Msg).SetQuestion("box.test.", dns.TypeA)
		m.SetEdns0(4096, false)
		change(m)
		c := dns.Client{Timeout: testlab.Hang}
		r, _, err := c.Exchange(m, s.Addr().String())
		if err != nil || r.Rcode != want || want != dns.RcodeNotImplemented && r.IsEdns0() == nil {
			t.Errorf("%v is answered with %v (%v), want %s and the extension", m.Question, r, err, dns.RcodeToString[want])
		}
	}
}
