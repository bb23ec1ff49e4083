// Package hop holds what one hop knows of a request besides net/http's own
// types: the facts of the connection that it came by, and header fields in the
// order and case in which they were on the wire. The listeners and the
// transport to origins (netlab/proxy, netlab/proxy/wire) put it into a request's
// context; the core (netlab/replay) reads it there. So neither side imports the
// other, and there is one type for each fact.
package hop

import (
	"context"
	"net/netip"
)

// Conn is what a listener knows of the connection that a request came by.
type Conn struct {
	Client   netip.Addr     // the device
	Port     uint16         // its end of the connection, which tells it from its others; 0 if it is unknown
	Dest     netip.AddrPort // what the device connected to; zero in an explicit proxy's tunnel by name
	Protocol string         // spoken with the device: "http/1.1", "h2", "h3"
	TLS      string         // "tls/1.2", "tls/1.3", or "" for plain
	Explicit bool           // the request came through the explicit proxy
	QUIC     bool           // Dest's port serves HTTP/3 too, so Alt-Svc may say so
}

type connKey struct{}

// WithConn returns a context that carries c. Listeners set it on each request.
func WithConn(ctx context.Context, c Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ConnOf returns the connection's facts, or the zero Conn.
func ConnOf(ctx context.Context) Conn {
	c, _ := ctx.Value(connKey{}).(Conn)
	return c
}
