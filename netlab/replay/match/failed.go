package match

import "eidetic/internal/lab"

// failing is what is known of an origin that may have answered nothing.
type failing struct {
	answers bool   // it has answered a request
	first   *Entry // that it has not
}

// unanswered finds what a request gets that differs from all that were recorded, if none of those had an answer: nobody
// has heard what it asks for. That is so of each request to an origin which cannot be reached, and of those to a path
// where the origin breaks the connection. Anything else is a miss.
func (x *Index) unanswered(p Policy, c *Client, bucket []*Entry, r *Request) Result {
	alike := filter(x.paths[r.pathKey()], func(en *Entry) bool {
		return en.request.origin == r.origin && en.request.method == r.method
	})
	m := Result{Stage: lab.StageFuzzy, Score: 0.9}
	switch dead := x.failed[r.origin].first; {
	case len(alike) > 0 && all(alike, func(en *Entry) bool { return en.IsFailed() }):
		m.Entry, _ = c.next(alike)
		m.Why = "no request like it had an answer when it was recorded"
	case dead != nil:
		m.Entry, m.Why = dead, "its origin answered no request when it was recorded"
	default:
		return x.missed(p, bucket, r)
	}
	m.Differs = differences(m.Entry.request, r)
	return m
}
