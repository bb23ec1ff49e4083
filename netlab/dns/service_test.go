package dns

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestServicesOfOtherHosts: a record that leads to another host is passed on if that host is known, whatever its mode.
func TestServicesOfOtherHosts(t *testing.T) {
	known := table()
	known.AddAnswer("shop.test", "HTTPS", "NOERROR", []string{"shop.test. 9 IN HTTPS 0 www.shop.test."})
	known.AddAnswer("cdn.shop.test", "HTTPS", "NOERROR", []string{`cdn.shop.test. 9 IN HTTPS 1 Six.Shop.Test. alpn="h2"`})
	known.AddAnswer("old.shop.test", "HTTPS", "NOERROR", []string{"old.shop.test. 9 IN HTTPS 0 nobody-asked.test."})
	known.AddAnswer("_dot.shop.test", "SVCB", "NOERROR", []string{"_dot.shop.test. 9 IN SVCB 1 nobody-asked.test."})
	known.AddAnswer("no.shop.test", "HTTPS", "NOERROR", []string{"no.shop.test. 9 IN HTTPS 0 ."})
	s := start(t, v6, nil)
	s.Use(known)
	for name, want := range map[string]int{"shop.test": 1, "cdn.shop.test": 1, "old.shop.test": 0, "_dot.shop.test": 0, "no.shop.test": 1} {
		qtype := dns.TypeHTTPS
		if strings.HasPrefix(name, "_") {
			qtype = dns.TypeSVCB
		}
		if r := s.ask(t, "udp", name, qtype); r.Rcode != dns.RcodeSuccess || len(r.Answer) != want {
			t.Errorf("%s: %s, %v; want NOERROR and %d records", name, dns.RcodeToString[r.Rcode], r.Answer, want)
		}
	}
}
