package dns

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Pool assigns a synthetic address to each origin address. The synthetic address is
// a hash of the origin's, or the next free one, so that it rarely depends on the
// order of queries: equal archives give a device equal addresses. A Pool may be used
// from many goroutines.
type Pool struct {
	prefix4, prefix6 netip.Prefix

	now func() time.Time

	mu        sync.Mutex
	synthetic map[netip.Addr]*list.Element // by origin
	origin    map[netip.Addr]*list.Element // by synthetic
	used      list.List                    // of *assigned, the one used last first
}

// assigned is a synthetic address in use.
type assigned struct {
	synthetic, origin netip.Addr
	used              time.Time // when it was last asked for or connected to
	names             []string  // of its hosts, the one asked for last first
}

// maxNames bounds the hosts of an address that are remembered.
const maxNames = 8

// maxPool is much less than the addresses of a /15, so that probing stays short.
const maxPool = 50_000

// givenBack is how long an address must have been unused before another origin may get it:
// many times as long as a device keeps an answer of the name server.
const givenBack = 10 * ttl * time.Second

// NewPool makes a pool. prefix4 must be IPv4 and leave at least 8 bits;
// prefix6 may be the zero Prefix, then IPv6 origins get IPv4 addresses.
func NewPool(prefix4, prefix6 netip.Prefix) (*Pool, error) {
	if !prefix4.IsValid() || !prefix4.Addr().Is4() || prefix4.Bits() > 24 {
		return nil, fmt.Errorf("synthetic prefix %v is not an IPv4 prefix of at most 24 bits, such as 198.18.0.0/15", prefix4)
	}
	if prefix6.IsValid() && (!prefix6.Addr().Is6() || prefix6.Bits() > 64) {
		return nil, fmt.Errorf("synthetic prefix %v is not an IPv6 prefix of at most 64 bits, such as fd00:198:18::/48", prefix6)
	}
	return &Pool{
		prefix4: prefix4.Masked(), prefix6: prefix6.Masked(), now: time.Now,
		synthetic: map[netip.Addr]*list.Element{}, origin: map[netip.Addr]*list.Element{},
	}, nil
}

// Synthetic returns the address that stands for origin. When all are in use, it takes the
// one that was unused for longest, if that is long enough.
func (p *Pool) Synthetic(origin netip.Addr) (netip.Addr, error) {
	origin = origin.Unmap().WithZone("")
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.synthetic[origin]; ok {
		return p.touch(e).synthetic, nil
	}
	if len(p.origin) >= p.most() && !p.giveBack() {
		return netip.Addr{}, fmt.Errorf("no synthetic address is left for %v: %d are in use", origin, len(p.origin))
	}
	h := fnv.New64a()
	_, _ = h.Write(origin.AsSlice()) // a hash does not fail
	n := mix(h.Sum64())
	for {
		a := p.at(origin, n)
		if _, taken := p.origin[a]; !taken {
			e := p.used.PushFront(&assigned{synthetic: a, origin: origin, used: p.now()})
			p.synthetic[origin], p.origin[a] = e, e
			return a, nil
		}
		n++
	}
}

// touch notes that an address is in use.
func (p *Pool) touch(e *list.Element) *assigned {
	p.used.MoveToFront(e)
	a := e.Value.(*assigned)
	a.used = p.now()
	return a
}

// giveBack frees the address that was unused for longest, and returns false if that is too
// recent.
func (p *Pool) giveBack() bool {
	e := p.used.Back()
	if e == nil || p.now().Sub(e.Value.(*assigned).used) < givenBack {
		return false
	}
	a := p.used.Remove(e).(*assigned)
	delete(p.synthetic, a.origin)
	delete(p.origin, a.synthetic)
	return true
}

// mix improves FNV's weak low bits (it is the finaliser of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// most returns how many addresses the pool can assign.
func (p *Pool) most() int { return min(maxPool, p.usable4()) }

// usable4 returns how many addresses of the IPv4 prefix the pool uses. It leaves the
// first 256 to the box if the prefix is large enough, and uses none that ends in 0
// or 255, which some devices treat as a network or broadcast address.
func (p *Pool) usable4() int {
	return max(1, 1<<(24-p.prefix4.Bits())-1) * 254
}

// at returns the n-th usable address of the prefix for origin's family,
// counted modulo its size.
func (p *Pool) at(origin netip.Addr, n uint64) netip.Addr {
	if origin.Is4() || !p.prefix6.IsValid() {
		off := n % uint64(p.usable4())
		off = off/254*256 + off%254 + 1
		if p.prefix4.Bits() < 24 {
			off += 256
		}
		b := p.prefix4.Addr().As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(off))
		return netip.AddrFrom4(b)
	}
	b := p.prefix6.Addr().As16()
	binary.BigEndian.PutUint64(b[8:], n|1<<63)
	return netip.AddrFrom16(b)
}

// Origin returns the address that a synthetic one stands for.
func (p *Pool) Origin(synthetic netip.Addr) (netip.Addr, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.origin[synthetic.Unmap()]
	if !ok {
		return netip.Addr{}, false
	}
	return p.touch(e).origin, true
}

// name notes that a host was found at a synthetic address.
func (p *Pool) name(synthetic netip.Addr, host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.origin[synthetic]
	if !ok {
		return
	}
	a := e.Value.(*assigned)
	if len(a.names) > 0 && a.names[0] == host {
		return
	}
	names := append([]string{host}, slices.DeleteFunc(a.names, func(n string) bool { return n == host })...)
	a.names = names[:min(len(names), maxNames)]
}

// Names lists the hosts that a device has found at a synthetic address, the one that it has asked for last first.
func (p *Pool) Names(synthetic netip.Addr) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.origin[synthetic.Unmap()]; ok {
		return slices.Clone(e.Value.(*assigned).names)
	}
	return nil
}

// IPv6 reports whether the pool has IPv6 addresses.
func (p *Pool) IPv6() bool { return p.prefix6.IsValid() }
