package netlab

import (
	"net/netip"
	"testing"
	"time"

	"eidetic/netlab/dns"
	"eidetic/netlab/link"
)

// counted is a shaper that counts how often it is told of extra delays.
type counted struct {
	told int
	last map[netip.Addr]time.Duration
}

func (*counted) Set(link.Profile) {}
func (c *counted) SetExtra(all map[netip.Addr]time.Duration) {
	c.told, c.last = c.told+1, all
}
func (*counted) Restart()            {}
func (*counted) Report() link.Report { return link.Report{} }

// A device that asks for a host with an extra delay again and again makes the network neither remember nor do more.
func TestRepeatedQueriesAddNothing(t *testing.T) {
	pool, err := dns.NewPool(netip.MustParsePrefix("198.18.0.0/15"), netip.Prefix{})
	if err != nil {
		t.Fatal(err)
	}
	shaper := &counted{}
	n := &Network{pool: pool, shaper: shaper, extras: extras{want: map[string]time.Duration{"slow.test": time.Second}}}
	one, two := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
	for range 1000 {
		n.onQuery(dns.Query{Name: "slow.test", Source: "upstream", Origins: []netip.Addr{one}})
		n.onQuery(dns.Query{Name: "slow.test", Source: "upstream", Origins: []netip.Addr{one, two}})
		n.onQuery(dns.Query{Name: "fast.test", Source: "upstream", Origins: []netip.Addr{two}})
	}
	if got := n.extras.hosts["slow.test"]; len(got) != 2 || shaper.told != 2 || len(shaper.last) != 2 {
		t.Errorf("after 2,000 queries the host has %d addresses, and the link was told %d times of %d; want 2, twice, 2",
			len(got), shaper.told, len(shaper.last))
	}
}
