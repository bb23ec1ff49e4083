package replay

import (
	"strings"
	"sync"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// View is one recorded view of the back end: what MissFill fetched, for all sessions that are
// given it. Sessions of one run share it, so that both arms of a comparison and all trials get
// the same answers.
type View struct {
	w    *archive.Writer
	wall time.Time // when it was begun, from which dates of its exchanges move

	mu        sync.Mutex
	begun     lab.Time // of the first session
	hasBegun  bool
	order     int // of the next exchange
	exchanges []*lab.Exchange
	dns       []archive.DNS
	fetching  map[string]chan struct{} // by URL; closed when the answer is there or failed
}

// NewView returns an empty view whose exchanges go into w, which was created at a time. The caller
// closes w, after the Wait of the last session.
func NewView(w *archive.Writer, wall time.Time) *View {
	return &View{w: w, wall: wall, fetching: map[string]chan struct{}{}}
}

// Count returns how many exchanges the view has.
func (v *View) Count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.exchanges)
}

// AddDNS records an answer of the resolver that was needed for a fetch.
func (v *View) AddDNS(d archive.DNS) error {
	v.mu.Lock()
	v.dns = append(v.dns, d)
	v.mu.Unlock()
	return v.w.AddDNS(d)
}

// DNS returns the recorded answers of the resolver.
func (v *View) DNS() []archive.DNS {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dns[:len(v.dns):len(v.dns)]
}

// join returns the number of a session's first exchange, and when the view began, if the session
// begins at a time: exchanges of one archive are counted and timed from one beginning.
func (v *View) join(at lab.Time) (order int, begun lab.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.hasBegun {
		v.begun, v.hasBegun = at, true
	}
	return v.order, v.begun
}

// add adds an exchange that is in the archive.
func (v *View) add(e *lab.Exchange) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.exchanges = append(v.exchanges, e)
	v.order = max(v.order, e.Order+1)
}

// prepareInto adds to p what the view has gained since the last time.
func (v *View) prepareInto(p *Prepared) {
	v.mu.Lock()
	gained := v.exchanges[p.filled:len(v.exchanges):len(v.exchanges)]
	v.mu.Unlock()
	p.filled += len(gained)
	for _, e := range gained {
		en, err := newEntry(p.archive, p.script, e, nil)
		if err != nil {
			continue // a URL that cannot be read was not fetched
		}
		en.filled = true
		p.add(en)
	}
}

// protocols returns what to offer to the device for a host that the view has exchanges with.
func (v *View) protocols(host string) (list []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.exchanges {
		u := lab.ParseURL(e.URL)
		if u.Scheme != "https" || !strings.EqualFold(u.Host, host) && !strings.EqualFold(u.Hostname(), bareHost(host)) {
			continue
		}
		if e.Protocol == "h2" || e.Protocol == "h3" {
			return []string{"h2", "http/1.1"}
		}
		list = []string{"http/1.1"}
	}
	return list
}

// begin notes that a URL is being fetched, until end is called. If it is being fetched already,
// first is closed when that has ended; end then does nothing.
func (v *View) begin(url string) (end func(), first <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.fetching[url]; c != nil {
		return func() {}, c
	}
	c := make(chan struct{})
	v.fetching[url] = c
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.fetching, url)
		close(c)
	}, nil
}
