package credentials

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// freeTries are the wrong tokens from one address that are answered at once: people
	// mistype. From then on the delay doubles with every wrong one.
	freeTries  = 5
	firstDelay = time.Second
	lastDelay  = time.Minute
	// forgetAfter is how long after its last wrong token an address is forgotten.
	forgetAfter = 15 * time.Minute
	// maxDelayed bounds the addresses that are remembered.
	maxDelayed = 4096
)

// delays counts the wrong tokens of each address.
type delays struct {
	now    func() time.Time
	mu     sync.Mutex
	byAddr map[string]*tries
}

type tries struct {
	wrong int
	last  time.Time
}

func newDelays(now func() time.Time) *delays {
	return &delays{now: now, byAddr: map[string]*tries{}}
}

// source is what an address counts as: a host gets a whole /64 of IPv6, so that is one
// source.
func source(from string) string {
	addr, err := netip.ParseAddr(from)
	if err != nil {
		return from
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return addr.String()
	}
	return prefix.String()
}

// wait is how long this address has to wait before its next token is looked at.
func (d *delays) wait(from string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.byAddr[source(from)]
	if t == nil || t.wrong < freeTries {
		return 0
	}
	delay := lastDelay
	if doublings := t.wrong - freeTries; doublings < 6 { // 2⁶ seconds are more than lastDelay
		delay = firstDelay << doublings
	}
	return max(0, delay-d.now().Sub(t.last))
}

// wrong counts a wrong token, and returns how many came from this address.
func (d *delays) wrong(from string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, now := source(from), d.now()
	t := d.byAddr[key]
	if t == nil || now.Sub(t.last) > forgetAfter {
		d.makeRoom(now)
		t = &tries{}
		d.byAddr[key] = t
	}
	t.wrong++
	t.last = now
	return t.wrong
}

// right forgets the wrong tokens of an address.
func (d *delays) right(from string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byAddr, source(from))
}

// makeRoom drops what is old, or the address whose last wrong token is the longest ago.
func (d *delays) makeRoom(now time.Time) {
	if len(d.byAddr) < maxDelayed {
		return
	}
	var oldest string
	for key, t := range d.byAddr {
		if now.Sub(t.last) > forgetAfter {
			delete(d.byAddr, key)
			continue
		}
		if oldest == "" || t.last.Before(d.byAddr[oldest].last) {
			oldest = key
		}
	}
	if len(d.byAddr) >= maxDelayed {
		delete(d.byAddr, oldest)
	}
}

// Wait is how long a client at this address has to wait before a token of it is looked at;
// 0 for most. Sessions need no delay: nobody guesses 130 random bits, and a person who is
// logged in must not be locked out by a neighbour.
func (s *Store) Wait(from string) time.Duration { return s.delays.wait(from) }

// Token returns who a token belongs to. A wrong one is counted.
func (s *Store) Token(secret, from string) (who Identity, ok bool) {
	who, ok = s.identify(secret, from)
	s.count(from, ok)
	return who, ok
}

// count counts a token that was right or wrong. A wrong one is written to the log the
// first time and whenever the count has doubled: a guesser must not fill the log.
func (s *Store) count(from string, right bool) {
	if right {
		s.delays.right(from)
		return
	}
	if n := s.delays.wrong(from); n&(n-1) == 0 {
		s.recordStranger(n, from)
	}
}
