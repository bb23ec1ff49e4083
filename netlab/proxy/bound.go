package proxy

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"eidetic/netlab/hop"
)

// Some servers log in a connection, and not a request (NTLM, and Kerberos as IIS has it: RFC 4559, 6): the steps of a
// login, and the requests after it, must be on one connection, on which nobody else's are. A device that begins such a
// login on one of its connections gets one to the origin of its own for that.

const (
	maxBound  = 256             // devices' connections with one of their own
	boundTime = 5 * time.Minute // without a request, after which the device is gone or has logged in anew
)

// bound are the transports of devices' connections that have begun a login.
type bound struct {
	make func() *http.Transport

	mu sync.Mutex
	of map[boundKey]*boundTransport
}

// boundKey is a device's connection, by its end there, and the origin.
type boundKey struct {
	device netip.AddrPort
	origin string
}

type boundTransport struct {
	*http.Transport
	used time.Time
}

// transport returns the one that a request must go by, or nil if it may go by any.
func (b *bound) transport(r *http.Request, now time.Time) *http.Transport {
	c := hop.ConnOf(r.Context())
	if c.Protocol != "http/1.1" || c.Port == 0 { // HTTP/2 knows no such login (RFC 4559 needs HTTP/1.1)
		return nil
	}
	begins := logsConnectionIn(r.Header.Get("Authorization"))
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.of) == 0 && !begins {
		return nil
	}
	key := boundKey{netip.AddrPortFrom(c.Client, c.Port), r.URL.Scheme + "://" + r.URL.Host}
	if t := b.of[key]; t != nil {
		t.used = now
		return t.Transport
	}
	if !begins {
		return nil
	}
	b.sweep(now)
	if len(b.of) >= maxBound {
		return nil
	}
	if b.of == nil {
		b.of = map[boundKey]*boundTransport{}
	}
	t := b.make()
	t.MaxConnsPerHost = 1
	b.of[key] = &boundTransport{t, now}
	return t
}

// logsConnectionIn tells the schemes that log in a connection.
func logsConnectionIn(authorization string) bool {
	scheme, _, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "NTLM") || strings.EqualFold(scheme, "Negotiate")
}

// sweep forgets what was not used for long; the lock is held.
func (b *bound) sweep(now time.Time) {
	for key, t := range b.of {
		if now.Sub(t.used) > boundTime {
			t.CloseIdleConnections()
			delete(b.of, key)
		}
	}
}

// close ends the idle connections.
func (b *bound) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.of {
		t.CloseIdleConnections()
	}
	clear(b.of)
}
