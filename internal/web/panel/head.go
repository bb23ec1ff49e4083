package panel

import (
	"context"
	"net/http"
)

// headKey marks a request that arrived as HEAD.
type headKey struct{}

// headAsGet makes HEAD work wherever GET does (RFC 9110, section 9.3.2): the router sees a
// GET, and net/http, which knows the original method, omits the body.
func headAsGet(r *http.Request) *http.Request {
	if r.Method != http.MethodHead {
		return r
	}
	get := r.WithContext(context.WithValue(r.Context(), headKey{}, true))
	get.Method = http.MethodGet
	return get
}

// isHead says whether the request arrived as HEAD. Then a stream must end at once, and a
// file need not be read.
func isHead(r *http.Request) bool { return r.Context().Value(headKey{}) != nil }

// restoreHead undoes headAsGet.
func restoreHead(r *http.Request) *http.Request {
	if !isHead(r) {
		return r
	}
	head := r.WithContext(r.Context())
	head.Method = http.MethodHead
	return head
}
