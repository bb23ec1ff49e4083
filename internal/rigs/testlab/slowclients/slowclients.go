// Package slowclients attacks a panel as a stranger on its network would who wants to take
// its connections from everybody else: in flow addresses, out flow connections that are
// held open in every slow way. Only tests import it.
package slowclients

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"eidetic/internal/rigs/testlab"
)

// kind is a way to hold a connection: what is sent, and whether over TLS. After it nothing is
// read.
type kind struct {
	name, sent string
	secure     bool
}

// kinds returns the ways to hold a connection to host.
func kinds(host string) []kind {
	const many = 100
	return []kind{
		{"nothing", "", false},
		{"half a handshake", "\x16\x03\x01\x02", false},
		{"half a request", "GET /api/v1/runs HTTP/1.1\r\nHost: " + host + "\r\nX-A: ", false},
		{"answers that are never read, without TLS", strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", many), false},
		{"a handshake and nothing", "", true},
		{"half a request over TLS", "GET /api/v1/runs HTTP/1.1\r\nHost: " + host + "\r\nX-A: ", true},
		{"half a body", "POST /api/v1/session HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 1000\r\n\r\nx", true},
		{"answers that are never read", strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: "+host+"\r\n\r\n", many), true},
		{"idle after a request", "GET /api/v1/health HTTP/1.1\r\nHost: " + host + "\r\n\r\n", true},
	}
}

// Open opens n connections from an address to a panel, of every slow kind in turn, and puts them
// into open. It returns when all were opened, or the address is kept out; the panel may have closed some meanwhile.
func Open(ctx context.Context, from netip.Addr, to netip.AddrPort, n int, open *sync.Map) error {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}, Timeout: time.Second / 2}
	all := kinds(to.Addr().String())
	for i := range n {
		k := all[i%len(all)]
		c, err := dialer.DialContext(ctx, "tcp", to.String())
		switch {
		case gotNoAnswer(err), errors.Is(err, syscall.ECONNRESET):
			return nil // it is kept out
		case err != nil:
			return err
		}
		open.Store(c, k.name)
		_ = c.SetDeadline(time.Now().Add(testlab.Hang))
		if k.secure {
			secure := tls.Client(c, &tls.Config{InsecureSkipVerify: true}) // a stranger asks for nothing
			if secure.HandshakeContext(ctx) != nil {
				continue // it lost its slot meanwhile
			}
			_, _ = io.WriteString(secure, k.sent)
			continue
		}
		_, _ = io.WriteString(c, k.sent)
	}
	return nil
}

// Count says what became of the connections of strangers who come back.
type Count struct {
	Made   atomic.Int64 // so many got in, if only to be closed at once
	Silent atomic.Int64 // so many got no answer
}

// Return connects from an address again and again, and holds the last few connections, as strangers do who come back
// when they are dropped. It returns when ctx ends or when over says so.
func Return(ctx context.Context, from netip.Addr, to netip.AddrPort, count *Count, over func() bool) {
	const hold, patience = 25, time.Second
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}, Timeout: patience}
	all := kinds(to.Addr().String())
	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	for i := 0; ctx.Err() == nil && !over(); i++ {
		c, err := dialer.DialContext(ctx, "tcp", to.String())
		if gotNoAnswer(err) {
			count.Silent.Add(1)
			continue
		}
		count.Made.Add(1)
		if err != nil { // it was closed as soon as it was made
			continue
		}
		if k := all[i%len(all)]; !k.secure {
			_, _ = io.WriteString(c, k.sent)
		}
		if held = append(held, c); len(held) > hold {
			_ = held[0].Close()
			held = held[1:]
		}
	}
}

// gotNoAnswer tells a connection that timed out: of the time limit's two clocks either may come first, and each has an
// error of its own.
func gotNoAnswer(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Close closes the connections.
func Close(open *sync.Map) {
	open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
}
