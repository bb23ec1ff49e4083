package otlp

import (
	"cmp"
	"slices"

	"eidetic/internal/lab"
)

// Request is one that a back end may have served, by the box's clock.
type Request struct {
	Trace  TraceID
	Parent SpanID // the request's own
	Sent   int64  // ns since 1970, when the box sent it on
	Took   int64  // ns until the last byte of its answer had come
}

// Placed is a span of a request: it began between Earliest and Latest after the request was sent.
type Placed struct {
	Span
	Request          int // its place in the list
	Earliest, Latest int64
}

// Joiner joins spans to requests.
type Joiner struct {
	requests []Request
	byTrace  map[TraceID][]int
	spans    map[TraceID][]Span
	n        int
	// Others are spans of traces that no request has; More are those that there was no room for.
	Others, More int
}

// NewJoiner returns a joiner of requests.
func NewJoiner(requests []Request) *Joiner {
	j := &Joiner{requests: requests, byTrace: map[TraceID][]int{}, spans: map[TraceID][]Span{}}
	for i, r := range requests {
		if r.Sent <= 0 || r.Sent > latest || r.Took < 0 || r.Took > 86400e9 { // no time of a request
			continue
		}
		j.byTrace[r.Trace] = append(j.byTrace[r.Trace], i)
	}
	return j
}

// Add takes a span.
func (j *Joiner) Add(s Span) {
	switch {
	case j.byTrace[s.Trace] == nil:
		j.Others++
	case j.n == lab.MostRunAnnotations: // no more fit into a run
		j.More++
	default:
		j.n++
		j.spans[s.Trace] = append(j.spans[s.Trace], s)
	}
}

// interval is by how much the box's clock may be ahead of a service's.
type interval struct{ low, high int64 }

// and is what both say.
func (i interval) and(other interval) interval {
	return interval{max(i.low, other.low), min(i.high, other.high)}
}

// bounds are those of one service's clock by all requests, in whatever order they come: what they have in common, and
// what holds each of them.
type bounds struct{ common, hull interval }

func (b bounds) with(i interval) bounds {
	return bounds{b.common.and(i), interval{min(b.hull.low, i.low), max(b.hull.high, i.high)}}
}

// clock is how the service's clock lies. Requests that have nothing in common say that it was set between them.
func (b bounds) clock() interval {
	if b.common.high < b.common.low {
		return b.hull.and(interval{-latest, latest})
	}
	return b.common.and(interval{-latest, latest})
}

// Placed lists the spans of all requests. The clocks of the back end need not be the box's: a span that serves a request
// lies between its sending and the end of its answer, and one that another span asked for lies in that, as far as it is
// no longer. All requests together bound each service's clock.
func (j *Joiner) Placed() (out []Placed) {
	type served struct {
		Span
		request int
		parent  int // its place; −1 for the request itself
	}
	var all []served
	for trace, spans := range j.spans {
		for request, tree := range j.trees(trace, spans) {
			at := map[SpanID]int{}
			for _, s := range tree {
				one := served{Span: s, request: request, parent: -1}
				if p, ok := at[s.Parent]; ok {
					one.parent = p
				}
				at[s.ID] = len(all)
				all = append(all, one)
			}
		}
	}
	clocks := map[string]interval{}
	for range mostServices { // each turn joins the services that joined ones have asked
		found := map[string]bounds{}
		for _, s := range all {
			if _, known := clocks[s.Service]; known {
				continue
			}
			r := j.requests[s.request]
			within := interval{r.Sent, r.Sent + r.Took}
			if s.parent >= 0 {
				p := all[s.parent]
				clock, known := clocks[p.Service]
				if !known {
					continue
				}
				within = interval{p.Start + clock.low, p.End + clock.high}
			}
			one := interval{within.low - s.Start, within.high - s.End}
			if one.high < one.low { // it goes on after its answer: its beginning is bounded
				one.high = within.high - s.Start
			}
			if before, met := found[s.Service]; met {
				found[s.Service] = before.with(one)
			} else {
				found[s.Service] = bounds{one, one}
			}
		}
		if len(found) == 0 {
			break
		}
		for name, b := range found {
			clocks[name] = b.clock()
		}
	}
	for _, s := range all {
		clock, known := clocks[s.Service]
		if !known {
			continue
		}
		sent := j.requests[s.request].Sent
		p := Placed{s.Span, s.request, s.Start + clock.low - sent, s.Start + clock.high - sent}
		if s.parent < 0 { // never before its request
			p.Earliest = max(p.Earliest, 0)
			p.Latest = max(p.Latest, p.Earliest)
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Placed) int {
		return cmp.Or(cmp.Compare(a.Request, b.Request), cmp.Compare(a.Earliest, b.Earliest), cmp.Compare(b.End-b.Start, a.End-a.Start))
	})
	return out
}

// mostServices bounds how many services are asked one by the other.
const mostServices = 100

// trees tells which spans of a trace are of which of its requests: those below the request's own ID, parents first. What
// is below no request is of the trace's only one.
func (j *Joiner) trees(trace TraceID, spans []Span) map[int][]Span {
	children := map[SpanID][]Span{}
	isThere := map[SpanID]bool{}
	for _, s := range spans {
		if !isThere[s.ID] { // one that was told twice
			children[s.Parent] = append(children[s.Parent], s)
		}
		isThere[s.ID] = true
	}
	out := map[int][]Span{}
	taken := map[SpanID]bool{}
	below := func(request int, id SpanID) {
		for parents := []SpanID{id}; len(parents) > 0; parents = parents[1:] {
			for _, s := range children[parents[0]] {
				if !taken[s.ID] {
					taken[s.ID] = true
					out[request] = append(out[request], s)
					parents = append(parents, s.ID)
				}
			}
		}
	}
	requests := j.byTrace[trace]
	for _, i := range requests {
		below(i, j.requests[i].Parent)
	}
	if len(requests) == 1 {
		for _, s := range spans {
			if !isThere[s.Parent] && !taken[s.ID] {
				below(requests[0], s.Parent)
			}
		}
	}
	return out
}
