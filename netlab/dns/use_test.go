package dns

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestUseReplacesTheSource(t *testing.T) {
	s := start(t, netip.Prefix{}, nil)
	for i, want := range []int{dns.RcodeSuccess, dns.RcodeNameError} {
		s.Use([]Source{table(), NewTable()}[i])
		for range 2 {
			if r := s.ask(t, "udp", "api.shop.test", dns.TypeA); r.Rcode != want {
				t.Errorf("from source %d the answer is %s, want %s", i, dns.RcodeToString[r.Rcode], dns.RcodeToString[want])
			}
		}
	}
}

// TestAnswersComeFromTheQueriedAddress asks a server that listens on all addresses.
// The clients' sockets accept answers only from the address that they asked.
func TestAnswersComeFromTheQueriedAddress(t *testing.T) {
	pool, err := NewPool(v4, netip.Prefix{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen(Config{Addr: "0.0.0.0:0", Pool: pool, Clock: lab.Monotonic})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Use(table())
	for _, ip := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.1"} {
		addr := netip.AddrPortFrom(netip.MustParseAddr(ip), s.Addr().Port())
		c := dns.Client{Timeout: testlab.Hang}
		for range 3 {
			r, _, err := c.Exchange(new(dns.Msg).SetQuestion("api.shop.test.", dns.TypeA), addr.String())
			if err != nil || len(r.Answer) != 1 {
				t.Errorf("%v answers %v, %v; want one record", addr, r, err)
			}
		}
	}
}
