package slots

import (
	"maps"
	"net/netip"
	"sync"
	"time"
)

const (
	// outFor is how long an address that comes too often is kept out at first; each time again it is twice as long, up
	// to eight times.
	outFor       = 10 * time.Second
	mostDoubling = 3
	// knownFor is how long an address has the higher rate after somebody was admitted there, and knownTimes is how much
	// higher it is.
	knownFor   = 10 * time.Minute
	knownTimes = 16
	// mostSources bounds the addresses whose rates are known, and mostOut those that the filter names; beyond it all
	// strangers are kept out but a few.
	mostSources = 4096
	mostOut     = 64
	mostKnown   = 64
)

// rates bounds the new connections of strangers.
type rates struct {
	limits Limits
	gate   gate
	now    func() time.Time

	mu     sync.Mutex
	all    bucket
	one    map[netip.Prefix]*bucket
	known  map[netip.Prefix]time.Time // until when
	out    map[netip.Prefix]time.Time // until when
	crowd  time.Time                  // until when all strangers come too often together
	again  *time.Timer                // sets the gate when somebody may come back
	closed bool
}

// bucket holds the connections that may still come at once.
type bucket struct {
	left    float64
	at      time.Time
	strikes int // how often it was empty since it was full
}

// take takes one, of a bucket that holds most and is filled with so many a second.
func (b *bucket) take(now time.Time, perSecond, most float64) bool {
	if b.at.IsZero() {
		b.left = most
	} else {
		b.left = min(most, b.left+now.Sub(b.at).Seconds()*perSecond)
	}
	if b.left == most {
		b.strikes = 0
	}
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// gate keeps addresses out before they are connections.
type gate interface {
	// set keeps these out and, in a crowd, all others but known ones and, by chance, a few.
	set(out, known []netip.Prefix, crowd bool)
}

func newRates(limits Limits, g gate) *rates {
	return &rates{
		limits: limits, gate: g, now: time.Now, one: map[netip.Prefix]*bucket{},
		known: map[netip.Prefix]time.Time{}, out: map[netip.Prefix]time.Time{},
	}
}

// allow says whether a stranger's new connection may come in. One that may not keeps its address out.
func (r *rates) allow(source netip.Prefix) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, times := r.now(), 1.0
	isKnown := now.Before(r.known[source])
	if isKnown {
		times = knownTimes
	}
	b := r.one[source]
	if b == nil {
		if len(r.one) >= mostSources {
			r.forget(now)
		}
		b = &bucket{}
		r.one[source] = b
	}
	if n := float64(r.limits.AddressPerSecond) * times; n > 0 && !b.take(now, n, 2*float64(r.limits.PerAddress)*times) {
		r.out[source] = now.Add(outFor << min(b.strikes, mostDoubling))
		b.strikes++
		r.shut(now)
		return false
	}
	if n := float64(r.limits.PerSecond); n > 0 && !isKnown && !r.all.take(now, n, 2*float64(r.limits.Strangers)) {
		r.crowd = now.Add(outFor)
		r.shut(now)
		return false
	}
	return true
}

// forget makes room among the sources: it drops those whose buckets must be full again, or else all.
func (r *rates) forget(now time.Time) {
	full := time.Duration(2*r.limits.PerAddress) * time.Second / time.Duration(max(1, r.limits.AddressPerSecond))
	maps.DeleteFunc(r.one, func(_ netip.Prefix, b *bucket) bool { return now.Sub(b.at) > full })
	if len(r.one) >= mostSources {
		clear(r.one)
	}
}

// know gives the address of somebody who was admitted the higher rate.
func (r *rates) know(source netip.Prefix) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	isNew := !now.Before(r.known[source])
	if isNew && len(r.known) >= mostKnown {
		maps.DeleteFunc(r.known, func(_ netip.Prefix, until time.Time) bool { return !now.Before(until) })
		if len(r.known) >= mostKnown {
			return
		}
	}
	r.known[source] = now.Add(knownFor)
	if !isNew {
		return
	}
	delete(r.one, source) // its bucket is larger now, and full
	delete(r.out, source)
	if r.again != nil {
		r.shut(now)
	}
}

// shut tells the gate whom to keep out now, and again when the first of them may come back; r.mu is held.
func (r *rates) shut(now time.Time) {
	if r.closed {
		return
	}
	next := r.crowd
	var out, known []netip.Prefix
	for source, until := range r.out {
		if !now.Before(until) {
			delete(r.out, source)
			continue
		}
		out = append(out, source)
		if !next.After(now) || until.Before(next) {
			next = until
		}
	}
	for source, until := range r.known {
		if now.Before(until) {
			known = append(known, source)
		}
	}
	isCrowd := now.Before(r.crowd) || len(out) > mostOut
	r.gate.set(out[:min(len(out), mostOut)], known, isCrowd)
	if r.again != nil {
		r.again.Stop()
	}
	if !next.After(now) {
		return
	}
	r.again = time.AfterFunc(next.Sub(now), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.shut(r.now())
	})
}

func (r *rates) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.again != nil {
		r.again.Stop()
	}
}
