package replay

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
)

// RecordOptions of a Recorder. Clock and Wall are required.
type RecordOptions struct {
	Clock  lab.Clock
	Wall   func() time.Time // wall clock, for the archive's dates
	Inject inject.Options
	// Log gets one line per request, stage "live". It must not block.
	Log func(lab.Served)
	// Traceparent gives each request that has none a field traceparent (W3C Trace Context), so that the spans of a back
	// end can be joined to the request that they served.
	Traceparent bool
	// Annotate gets what pages tell the box, such as lab.done(). May be nil.
	Annotate func(Annotation)
	// Pages adds the documents that a browser says it navigates to
	// (Sec-Fetch-Dest) to the archive's pages.
	Pages bool
	// MaxBody bounds a recorded body in bytes; a longer one still reaches the
	// device and is recorded as truncated. Default 1 GiB.
	MaxBody int64
	// Memory is the budget of the recording, in bytes: what all its exchanges together may take. What is beyond it
	// reaches the device and is recorded as truncated. Default is what a reader of the archive may take, half of this
	// machine's memory.
	Memory int64
	// Finish bounds how long a request goes on that the device has given up, so
	// that the archive has the complete body. Default 10 s; negative for not at all.
	Finish time.Duration
	// Plain tells whether a host takes connections without TLS at port 80; nil: none does.
	Plain func(ctx context.Context, host string) bool
	// Protocols answers Recorder.Protocols; nil offers h2 and http/1.1 to all.
	Protocols func(host string) []string
}

// Recorder forwards requests to their origins and records the exchanges.
type Recorder struct {
	w      *archive.Writer
	rt     http.RoundTripper
	o      RecordOptions
	script *inject.Script
	start  lab.Time
	// added, which may be nil, is called with each exchange that is in the archive.
	added  func(*lab.Exchange)
	budget *budget
	// large is held while a long socket is archived, whose pieces become one text.
	large sync.Mutex

	mu      sync.Mutex
	active  map[*fetch]bool
	stats   Stats
	order   int
	err     error // the first error of writing the archive
	pending sync.WaitGroup
}

// NewRecorder records to w what rt fetches. rt must not follow redirects nor
// decompress (http.Transport with DisableCompression); where it connects to,
// and through which resolver, is its business. netlab/proxy's Upstream is one.
func NewRecorder(w *archive.Writer, rt http.RoundTripper, o RecordOptions) *Recorder {
	o.MaxBody = cmp.Or(o.MaxBody, 1<<30)
	o.Finish = cmp.Or(o.Finish, 10*time.Second)
	if o.Log == nil {
		o.Log = func(lab.Served) {}
	}
	c := &Recorder{w: w, rt: rt, o: o, script: inject.NewScript(o.Inject), start: o.Clock(), active: map[*fetch]bool{},
		budget: newBudget(memoryFor(o))}
	c.stats.LastActivity = c.start
	return c
}

// Protocols returns the ALPN protocols to offer to the device for host.
func (c *Recorder) Protocols(host string) []string {
	if c.o.Protocols == nil {
		return []string{"h2", "http/1.1"}
	}
	return c.o.Protocols(host)
}

// silentAfter is how long an origin may send nothing until a request counts as a long
// poll, which does not keep a page from being at rest.
const silentAfter = 10 * time.Second

// Stats returns the counts so far. WebSockets, streams and long polls are not in flight.
func (c *Recorder) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.InFlight = len(c.active) - c.restingLocked()
	return s
}

// resting returns how many of the requests that have begun keep no page from being at rest.
func (c *Recorder) resting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restingLocked()
}

func (c *Recorder) restingLocked() (n int) {
	now := c.o.Clock()
	for f := range c.active {
		if f.isEndless(now) || now.Sub(lab.Time(f.heard.Load())) >= silentAfter {
			n++
		}
	}
	return n
}

// Waits lists the requests that wait for their origins, without WebSockets and streams: by
// their order, when the last byte came from the origin, or the request if none has.
func (c *Recorder) Waits() map[int]lab.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	waits, now := map[int]lab.Time{}, c.o.Clock()
	for f := range c.active {
		if !f.isEndless(now) {
			waits[f.e.Order] = lab.Time(f.heard.Load())
		}
	}
	return waits
}

// Since returns the time from the recording's start, as [lab.Exchange.Start] has it.
func (c *Recorder) Since(at lab.Time) time.Duration { return at.Sub(c.start) }

// Wait returns when every exchange that has begun has ended and is in the
// archive, with the first error of writing it. Call it before the archive is
// closed, after the device's connections were.
func (c *Recorder) Wait() error {
	c.pending.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// ServeHTTP fetches from the origin. r.URL must be absolute. The body goes to the
// device as it comes, with the script in documents; the body as the origin sent it
// is recorded.
func (c *Recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := c.begin(w, r)
	defer f.done()
	f.out.deliver(f.outcome())
}

// begin counts an arrival.
func (c *Recorder) begin(w http.ResponseWriter, r *http.Request) *fetch {
	out := newOutput(w, r, c.o.Clock)
	c.pending.Add(1) // before the device can have an answer, after which Wait may be called
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &fetch{c: c, out: out, e: &lab.Exchange{Order: c.order}}
	f.heard.Store(int64(out.line.Time))
	c.active[f] = true
	c.order++
	c.stats.Requests++
	c.stats.noteWorker(r)
	c.stats.LastActivity = out.line.Time
	return f
}

// end counts a request whose outcome was delivered.
func (c *Recorder) end(f *fetch, at lab.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.active, f)
	c.stats.Live++
	c.stats.LastActivity = at
	if archive.Navigates(f.e) {
		c.stats.Unseen = archive.IsUnseen(f.e)
	}
}

// archive writes an exchange and its page.
func (c *Recorder) archive(e *lab.Exchange) error {
	if len(e.Socket) > 10_000 {
		c.large.Lock()
		defer c.large.Unlock()
	}
	err := c.w.Add(e)
	if err == nil && c.o.Pages && e.Status/100 == 2 && !archive.IsUnseen(e) && e.Request.Get("Sec-Fetch-Dest") == "document" {
		err = c.w.AddPage(archive.Page{URL: e.URL, Wall: e.Wall})
	}
	if err != nil {
		c.mu.Lock()
		c.err = cmp.Or(c.err, err)
		c.mu.Unlock()
	}
	if c.added != nil && (e.Truncated == "" || e.IsOpen()) {
		c.added(e)
	}
	return err
}
