package execute

import (
	"encoding/json"
	"math"
	"sync"
	"time"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
	"eidetic/netlab/replay"
)

// Bounds of what is kept to join the clocks of a trial's documents to the box's.
const (
	mostDocuments = 200
	mostArrivals  = 1000 // of one document's posts
	maxDocument   = 300  // bytes of its name
)

// post is what the scripts in pages send: reports or annotations, with the page's clock.
type post struct {
	Doc   string          `json:"doc"`
	Where string          `json:"where"`     // the frame or worker; "" for the page itself
	Began float64         `json:"origin_ms"` // of the page's clock, by the device's wall clock
	N     int             `json:"n"`
	Sent  float64         `json:"sent_ms"`
	Heard [][2]float64    `json:"heard"` // number of a post, and when its answer came
	List  json.RawMessage `json:"list"`
}

// pageClocks joins the clocks of documents to the box's. Whoever embeds it holds mu.
type pageClocks struct {
	local bool // the device is this machine
	mu    sync.Mutex
	of    map[string]*documentClock // by the document's name
}

type documentClock struct {
	trace.Clock
	arrivals map[int]lab.Time
	began    lab.Time // by the wall clock of this machine; 0 if the page runs on another
}

// bounds are what is known of the clock, with the wall clock's word last: it is checked against the others.
func (d *documentClock) bounds() trace.Clock {
	c := d.Clock
	if d.began != 0 {
		c.Began(d.began, wallSlack)
	}
	return c
}

// wallSlack is how far a browser's idea of the wall clock is from this machine's at most: it reads it once, at its
// start, and goes on by the monotonic clock.
const wallSlack = lab.Time(1e6)

// steps of a wall clock make a trial invalid, so one look at it is as good as another.
func monotonicOf(wallMS float64) lab.Time {
	return clock() - lab.Time(time.Now().UnixNano()) + lab.Time(wallMS*1e6)
}

// read reads a post and learns from it; false for what is none.
func (c *pageClocks) read(n replay.Annotation) (post, bool) {
	var p post
	if json.Unmarshal(n.Body, &p) != nil || len(p.Doc) > maxDocument || !isPageTime(p.Sent) {
		return p, false
	}
	d := c.of[p.Doc]
	if d == nil {
		if len(c.of) == mostDocuments {
			return p, true
		}
		d = &documentClock{Clock: trace.Unbounded(), arrivals: map[int]lab.Time{}}
		if c.local && p.Began > 0 && p.Began < 1e14 {
			d.began = monotonicOf(p.Began)
		}
		if c.of == nil {
			c.of = map[string]*documentClock{}
		}
		c.of[p.Doc] = d
	}
	d.Sent(p.Sent, n.Time)
	for _, h := range p.Heard {
		if arrived, ok := d.arrivals[int(min(max(h[0], 0), 1e9))]; ok && isPageTime(h[1]) {
			d.Heard(h[1], arrived)
		}
	}
	if len(d.arrivals) < mostArrivals {
		d.arrivals[p.N] = n.Time
	}
	return p, true
}

// at is where a page's instant was on the box's clock; false where that has no bounds.
func (c *pageClocks) at(doc string, pageMS float64) (earliest, latest lab.Time, ok bool) {
	d := c.of[doc]
	if d == nil {
		return 0, 0, false
	}
	known := d.bounds()
	if !known.Bounded() {
		return 0, 0, false
	}
	earliest, latest = known.At(pageMS)
	return earliest, latest, true
}

// isPageTime says whether a number can be of a page's clock, in ms.
func isPageTime(v float64) bool { return v >= 0 && v < 1e9 && !math.IsNaN(v) }
