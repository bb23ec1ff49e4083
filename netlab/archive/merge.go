package archive

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"eidetic/internal/lab"
)

// Merge joins recordings one after another: the orders and starts of each follow those of the
// recording before, so that sequences stay sequences. An exchange that is in several recordings
// is taken once, and the matching rules of all of them apply. Title, seed and page date are those
// of the first; what was said of each of them, and what it had lost, is kept.
func Merge(list ...*Archive) *Archive {
	var o CreateOptions
	if len(list) > 0 {
		o = list[0].options
		o.Rules, o.Imported, o.Lost = nil, nil, 0
	}
	m := merger{known: map[knownAs][]*lab.Exchange{}, ids: map[string]int{}}
	var dns []DNS
	var pages []Page
	for _, a := range list {
		m.add(a.exchanges)
		dns, pages = append(dns, a.dns...), append(pages, a.pages...)
		carried := a.carried()
		o.Lost += carried.Lost
		for _, line := range carried.Imported {
			o.addImported(line)
		}
		for _, r := range a.options.Rules {
			if !slices.ContainsFunc(o.Rules, r.equal) {
				o.Rules = append(o.Rules, r)
			}
		}
	}
	return New(m.exchanges, dns, pages, o)
}

// merger joins the exchanges of recordings.
type merger struct {
	exchanges []*lab.Exchange
	known     map[knownAs][]*lab.Exchange
	ids       map[string]int // those in use, and how many others have got one made of them
	order     int            // of the next recording's first
	start     time.Duration
}

// knownAs is what two recordings of one exchange have in common besides their bodies; the ID is that in its recording.
type knownAs struct {
	id, method, url string
	wall            int64
	body            int
}

// add takes the exchanges of one recording.
func (m *merger) add(list []*lab.Exchange) {
	order, start := m.order, m.start
	for _, e := range list {
		moved := *e
		moved.Order, moved.Start = order+e.Order, start+e.Start
		m.order, m.start = max(m.order, moved.Order+1), max(m.start, end(&moved))
		as := knownAs{e.ID, e.Method, e.URL, e.Wall.UnixNano(), len(e.Response.Body)}
		if slices.ContainsFunc(m.known[as], func(o *lab.Exchange) bool { return sameExchange(o, e) }) {
			continue
		}
		m.known[as] = append(m.known[as], e)
		for m.ids[moved.ID] > 0 { // another exchange of that name
			moved.ID = uuid(fmt.Appendf(nil, "%s\n%d", e.ID, m.ids[e.ID]-1))
			m.ids[e.ID]++
		}
		m.ids[moved.ID] = 1
		m.exchanges = append(m.exchanges, &moved)
	}
}

// end returns when the last exchange ended, since the recording began.
func end(e *lab.Exchange) time.Duration {
	last := e.FirstByte
	if n := len(e.Chunks); n > 0 {
		last = max(last, e.Chunks[n-1].At)
	}
	return e.Start + last
}

// sameExchange tells whether two recordings hold the same exchange.
func sameExchange(a, b *lab.Exchange) bool {
	return a.Method == b.Method && a.URL == b.URL && a.Wall.Equal(b.Wall) &&
		bytes.Equal(a.Request.Body, b.Request.Body) && bytes.Equal(a.Response.Body, b.Response.Body)
}

// uuid makes a UUID of version 8 (RFC 9562) from a text that identifies the exchange.
func uuid(of []byte) string {
	h := sha256.Sum256(of)
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
