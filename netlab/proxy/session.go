package proxy

import (
	"encoding/json"
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
			out.Header.Set(name, own+"; "+f.Value.Reveal()) // RFC 6265, 5.4: one field
			continue
		}
		out.Header.Set(name, f.Value.Reveal())
	}
	return out
}

// Session are fields of requests by origin ("https://localhost:3000"), for UpstreamConfig.Send.
type Session map[string][]Field

// Field is one of them, which may log somebody in.
type Field struct {
	Name  string
	Value lab.Secret
}

// MarshalJSON implements json.Marshaler, with the value: so it gets to the process that sends it, by a descriptor.
func (f Field) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct{ Name, Value string }{f.Name, f.Value.Reveal()})
}
