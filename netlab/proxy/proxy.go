// Package proxy holds the listeners between the device and the core. In come
// connections, transparent ones on ports 80 and 443 or those of an explicit
// proxy; out go requests with an absolute URL, whose context carries the
// connection's facts ([hop.ConnOf]). HTTP/1.1 (RFC 9112), HTTP/2 (RFC 9113) and
// HTTP/3 (RFC 9114) are offered by ALPN as the core says for each host; explicit
// proxying follows RFC 9110, section 9.3.6.
//
// goproxy takes CONNECT for the explicit proxy. It is not used for these:
//
//   - The inside of a CONNECT tunnel goes to the listeners that serve transparent
//     connections. goproxy's own interception signs for the CONNECT's host instead of
//     the SNI, and serves HTTP/1.1 with fields sorted by name and without informational
//     responses, and HTTP/2 by golang.org/x/net without priorities (RFC 9218). A
//     tunnel that goproxy relays to us (ConnectAccept) would hide the socket, whose
//     unsent bytes package wire watches to order streams. One server for both kinds of
//     connections also means that runs through the proxy differ in the network alone.
//   - Plain http:// requests: net/http's server, below goproxy, refuses URLs that browsers
//     send, and keeps neither order nor case of fields; goproxy copies bodies without
//     flushing, which would lose the recorded times, and has no place for informational
//     responses.
//   - Proxy authentication: there is none, since only the device under test can reach
//     the proxy's port.
//
// [Upstream] is the other side: how a recorder reaches origins.
package proxy

import "net/http"

// Core answers requests.
type Core interface {
	// ServeHTTP answers a request whose URL is absolute and has no user info.
	http.Handler
	// Protocols returns the ALPN protocols to offer for a host name, or
	// host:port beyond port 443, best first; empty means http/1.1 alone.
	Protocols(host string) []string
	// HTTP3 tells whether to take a QUIC connection for a host name. It may
	// find out by asking the origin, which TCP handshakes must not wait for.
	HTTP3(host string) bool
}
