package proxy

import (
	"net/http"

	"eidetic/internal/lab"
)

// withSession returns the request with the fields that a person wants sent to its origin,
// such as a session's cookie. They are added after the request was recorded, so that no
// recording holds them.
func (u *Upstream) withSession(r *http.Request) *http.Request {
	fields := u.c.Send[r.URL.Scheme+"://"+r.URL.Host]
	if len(fields) == 0 {
		return r
	}
	out := r.Clone(r.Context())
	for _, f := range fields {
		name := http.CanonicalHeaderKey(f.Name)
		if own := out.Header.Get(name); name == "Cookie" && own != "" {
			out.Header.Set(name, own+"; "+f.Value) // RFC 6265, 5.4: one field
			continue
		}
		out.Header.Set(name, f.Value)
	}
	return out
}

// Session are fields of requests by origin ("https://localhost:3000"), for UpstreamConfig.Send.
type Session map[string][]lab.HeaderField
