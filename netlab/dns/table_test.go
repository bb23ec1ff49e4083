package dns

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestParents: a name of which only names under it are known exists, and has no data.
func TestParents(t *testing.T) {
	table := NewTable()
	table.AddHost("a.deep.shop.test", netip.MustParseAddr("192.0.2.1"))
	table.AddAnswer("www.alias.test", "A", "NOERROR", []string{"www.alias.test. 60 IN CNAME edge.cdn.example.", "edge.cdn.example. 60 IN A 192.0.2.2"})
	table.AddAnswer("gone.test", "A", "NXDOMAIN", nil)
	table.AddAnswer("x.none.other", "A", "NXDOMAIN", nil)
	table.AddAnswer("x.broken.example.org", "A", "SERVFAIL", nil)
	for name, want := range map[string]int{
		"a.deep.shop.test": dns.RcodeSuccess, "deep.shop.test": dns.RcodeSuccess, "shop.test": dns.RcodeSuccess, "test": dns.RcodeSuccess,
		"alias.test": dns.RcodeSuccess, "cdn.example": dns.RcodeSuccess, "b.deep.shop.test": dns.RcodeNameError, "hop.test": dns.RcodeNameError,
		"gone.test": dns.RcodeNameError, "none.other": dns.RcodeNameError, "other": dns.RcodeNameError, "example.org": dns.RcodeNameError,
	} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS, dns.TypeTXT} {
			a, err := table.Lookup(context.Background(), name, qtype)
			if err != nil || a.RCode != want {
				t.Errorf("%s %s: %s, %v; want %s", name, dns.TypeToString[qtype], dns.RcodeToString[a.RCode], err, dns.RcodeToString[want])
			}
		}
	}
}

// TestParentsOfServer: what lies above names of the box and of probes exists, too.
func TestParentsOfServer(t *testing.T) {
	s := start(t, netip.Prefix{}, nil)
	table := NewTable()
	table.AddHost("www.shop.example", netip.MustParseAddr("203.0.113.8"))
	s.Use(table)
	for name, want := range map[string]int{
		".":            dns.RcodeSuccess, // of NXDOMAIN here, nothing at all exists (RFC 8020)
		"shop.example": dns.RcodeSuccess, "example": dns.RcodeSuccess, "test": dns.RcodeSuccess, "apple.com": dns.RcodeSuccess,
		"pple.com": dns.RcodeNameError, "www.apple.com": dns.RcodeNameError, "example.com": dns.RcodeNameError,
	} {
		if r := s.ask(t, "udp", name, dns.TypeA); r.Rcode != want || len(r.Answer) != 0 || len(r.Ns) != 1 {
			t.Errorf("%s is %s %v with %d of SOA, want %s without data", name, dns.RcodeToString[r.Rcode], r.Answer, len(r.Ns), dns.RcodeToString[want])
		}
	}
	if r := s.ask(t, "udp", "captive.apple.com", dns.TypeA); len(addrs(r)) != 1 {
		t.Errorf("captive.apple.com is %v", r.Answer)
	}
}

// TestAliasesInOrder: a device gets the aliases in order, whatever the order of the resolver.
func TestAliasesInOrder(t *testing.T) {
	table := NewTable()
	table.AddAnswer("www.shop.test", "A", "NOERROR", []string{
		"edge.cdn.test. 5 IN A 203.0.113.9", "shop.cdn.test. 5 IN CNAME edge.cdn.test.", "WWW.shop.test. 5 IN CNAME Shop.cdn.test.",
	})
	table.AddAnswer("round.test", "A", "NOERROR", []string{"b.test. 5 IN CNAME round.test.", "round.test. 5 IN CNAME b.test."})
	for name, want := range map[string]string{"www.shop.test": "shop.cdn.test. edge.cdn.test.", "round.test": "b.test. round.test."} {
		a, err := table.Lookup(t.Context(), name, dns.TypeA)
		var targets []string
		for _, rr := range a.Chain {
			targets = append(targets, strings.ToLower(rr.(*dns.CNAME).Target))
		}
		if got := strings.Join(targets, " "); got != want || err != nil {
			t.Errorf("the aliases of %s lead to %s, %v; want %s", name, got, err, want)
		}
	}
}
