// Package proxy holds the listeners between the device and the core. In come
// connections, transparent ones on ports 80 and 443 or those of an explicit
// proxy; out go requests with an absolute URL, whose context carries the
// connection's facts ([hop.ConnOf]). HTTP/1.1 (RFC 9112), HTTP/2 (RFC 9113) and
// HTTP/3 (RFC 9114) are offered by ALPN as the core says for each host; explicit
// proxying follows RFC 9110, section 9.3.6.
//
// [Upstream] is the other side: how a recorder reaches origins.
package proxy

import "net/http"

// Core answers requests.
type Core interface {
	// ServeHTTP answers a request whose URL is absolute and has no user info.
	http.Handler
	// Protocols returns the ALPN protocols to offer for a host name, best
	// first; empty means http/1.1 alone.
	Protocols(host string) []string
	// HTTP3 tells whether to take a QUIC connection for a host name. It may
	// find out by asking the origin, which TCP handshakes must not wait for.
	HTTP3(host string) bool
}
