package dns

import (
	"net/netip"
	"testing"

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
