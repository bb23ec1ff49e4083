// Package proxy holds the listeners between the device and the core. In come
// connections, transparent ones on ports 80 and 443 or those of an explicit
// proxy; out go requests with an absolute URL and what is known of the
// connection. HTTP/1.1 (RFC 9112), HTTP/2 (RFC 9113) and HTTP/3 (RFC 9114) are
// offered by ALPN as the core says for each host; explicit proxying follows
// RFC 9110, section 9.3.6.
//
// [Upstream] is the other side: how a recorder reaches origins.
package proxy

import (
	"net/http"
	"net/netip"
)

// Conn is what a listener knows of the connection that a request came by.
type Conn struct {
	Client   netip.Addr     // the device
	Dest     netip.AddrPort // what the device connected to; zero in an explicit proxy's tunnel by name
	Protocol string         // spoken with the device: "http/1.1", "h2", "h3"
	TLS      string         // "tls/1.2", "tls/1.3", or "" for plain
	Explicit bool           // through the explicit proxy
	QUIC     bool           // HTTP/3 is to be had at Dest's port too, so Alt-Svc may say so
}

// Core answers requests.
type Core interface {
	// Serve answers r, whose URL is absolute and has no user info.
	Serve(w http.ResponseWriter, r *http.Request, c Conn)
	// Protocols returns the ALPN protocols to offer for a host name, best
	// first; empty means http/1.1 alone.
	Protocols(host string) []string
	// HTTP3 tells whether to take a QUIC connection for a host name. It may
	// find out by asking the origin, which TCP handshakes must not wait for.
	HTTP3(host string) bool
}
