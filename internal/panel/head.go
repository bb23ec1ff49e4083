package panel

import (
	"context"
	"net/http"
)

// headKey marks a request that came as HEAD.
type headKey struct{}

// asked makes HEAD work wherever GET does (RFC 9110, section 9.3.2): the router
// sees a GET, and the server, which knows better, leaves the body out.
func asked(r *http.Request) *http.Request {
	if r.Method != http.MethodHead {
		return r
	}
	get := r.WithContext(context.WithValue(r.Context(), headKey{}, true))
	get.Method = http.MethodGet
	return get
}

// isHead says whether nobody wants the body: a stream would not end, and a
// file would be read for nothing.
func isHead(r *http.Request) bool { return r.Context().Value(headKey{}) != nil }

// asCame undoes asked.
func asCame(r *http.Request) *http.Request {
	if !isHead(r) {
		return r
	}
	head := r.WithContext(r.Context())
	head.Method = http.MethodHead
	return head
}
