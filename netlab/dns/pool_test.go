package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"
	"pgregory.net/rapid"
)

func TestPoolIsOneToOne(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pool, err := NewPool(v4, v6)
		if err != nil {
			r.Fatal(err)
		}
		used := map[netip.Addr]netip.Addr{}
		for _, b := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 4, 4), 0, 300).Draw(r, "origins") {
			origin := netip.AddrFrom4([4]byte(b))
			a, err := pool.Synthetic(origin)
			if err != nil {
				r.Fatal(err)
			}
			if !v4.Contains(a) || a.As4()[3] == 0 || a.As4()[3] == 255 {
				r.Fatalf("%v got %v", origin, a)
			}
			if before, ok := used[a]; ok && before != origin {
				r.Fatalf("%v stands for %v and %v", a, before, origin)
			}
			used[a] = origin
			if back, ok := pool.Origin(a); !ok || back != origin {
				r.Fatalf("%v stands for %v, want %v", a, back, origin)
			}
		}
	})
}

func TestPoolDoesNotDependOnOrder(t *testing.T) {
	a, b := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("2001:db8::1")
	one, _ := NewPool(v4, v6)
	two, _ := NewPool(v4, v6)
	a1, _ := one.Synthetic(a)
	b1, _ := one.Synthetic(b)
	b2, _ := two.Synthetic(b)
	a2, _ := two.Synthetic(a)
	if a1 != a2 || b1 != b2 {
		t.Errorf("Synthetic() gives %v and %v in one order, %v and %v in the other; want the same", a1, b1, a2, b2)
	}
}

func TestPoolRefusesPrefixes(t *testing.T) {
	for _, c := range [][2]string{{"198.18.0.0/30", ""}, {"fd00::/48", ""}, {"198.18.0.0/15", "198.18.0.0/15"},
		{"198.18.0.0/15", "fd00::/96"}} {
		p4 := netip.MustParsePrefix(c[0])
		p6, _ := netip.ParsePrefix(c[1])
		if _, err := NewPool(p4, p6); err == nil {
			t.Errorf("NewPool(%v, %v) = nil, want an error", p4, p6)
		}
	}
}

func TestSmallPoolUsesAllItCan(t *testing.T) {
	pool, err := NewPool(netip.MustParsePrefix("10.0.0.0/24"), netip.Prefix{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 254 {
		if _, err := pool.Synthetic(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)})); err != nil {
			t.Fatalf("address %d of 254: %v", i, err)
		}
	}
	if a, err := pool.Synthetic(netip.AddrFrom4([4]byte{203, 0, 114, 1})); err == nil {
		t.Errorf("Synthetic() of a full pool = %v, want an error", a)
	}
}

// A device that asks for more names than there are addresses gets those that nobody has used
// for long; one that is in use stays with its origin.
func TestPoolGivesAddressesBack(t *testing.T) {
	pool, err := NewPool(netip.MustParsePrefix("10.0.0.0/24"), netip.Prefix{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	pool.now = func() time.Time { return now }
	origin := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}) }
	inUse, err := pool.Synthetic(origin(0))
	if err != nil {
		t.Fatal(err)
	}
	old, err := pool.Synthetic(origin(1))
	if err != nil {
		t.Fatal(err)
	}
	for i := 2; i < 254; i++ {
		if _, err := pool.Synthetic(origin(i)); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(givenBack - time.Second)
	if _, ok := pool.Origin(inUse); !ok { // a connection to it
		t.Fatal("an address without an origin")
	}
	if a, err := pool.Synthetic(origin(254)); err == nil {
		t.Errorf("Synthetic() = %v before the addresses are given back, want an error", a)
	}
	now = now.Add(time.Second)
	got, err := pool.Synthetic(origin(254))
	if err != nil || got != old {
		t.Errorf("Synthetic() = %v, %v; want %v, which was unused for longest", got, err, old)
	}
	if o, ok := pool.Origin(inUse); !ok || o != origin(0) {
		t.Errorf("the address in use stands for %v (%v), want %v", o, ok, origin(0))
	}
	if o, _ := pool.Origin(old); o != origin(254) {
		t.Errorf("the address given back stands for %v, want %v", o, origin(254))
	}
}

// TestNamesOfAnAddress: the hosts that were found at an address are known, the last one first, and no more than a few.
func TestNamesOfAnAddress(t *testing.T) {
	s := start(t, v6, nil)
	s.Use(table())
	for _, name := range []string{"cdn.shop.test", "WWW.shop.test", "cdn.shop.test", "api.shop.test", "www.shop.test"} {
		s.ask(t, "udp", name, dns.TypeA)
	}
	at := addrs(s.ask(t, "udp", "www.shop.test", dns.TypeA))[0]
	if got := s.pool.Names(at); !slices.Equal(got, []string{"www.shop.test", "cdn.shop.test"}) {
		t.Errorf("at %v are %q, want the two hosts of it, the last one first", at, got)
	}
	for i := range 2 * maxNames {
		s.pool.name(at, fmt.Sprint("host-", i))
	}
	if got := s.pool.Names(at); len(got) != maxNames || got[0] != fmt.Sprint("host-", 2*maxNames-1) {
		t.Errorf("at %v are %d hosts, the first of them %s; want the last %d", at, len(got), got[0], maxNames)
	}
	if got := s.pool.Names(gateway); got != nil {
		t.Errorf("at the gateway are %q, want none", got)
	}
}
