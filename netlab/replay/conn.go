package replay

import (
	"context"
	"net/netip"
)

// Conn is what a listener knows of the connection that a request came by.
type Conn struct {
	Client   netip.Addr     // the device
	Dest     netip.AddrPort // what the device connected to: a synthetic address, or the proxy
	Protocol string         // spoken with the device: "http/1.1", "h2", "h3"
	TLS      string         // "tls/1.2", "tls/1.3", or "" for plain
	QUIC     bool           // the listener takes HTTP/3 too
}

type connKey struct{}

// WithConn returns a context that carries c; listeners set it on each request.
func WithConn(ctx context.Context, c Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ConnFrom returns the connection's facts, or the zero Conn.
func ConnFrom(ctx context.Context) Conn {
	c, _ := ctx.Value(connKey{}).(Conn)
	return c
}
