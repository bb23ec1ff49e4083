package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/proxy/wire"
)

// RecordOptions of a Recorder. Clock and Wall are required.
type RecordOptions struct {
	Clock  lab.Clock
	Wall   func() time.Time // wall clock, for the archive's dates
	Inject inject.Options
	// Log gets one line per request, stage "live". It must not block.
	Log func(lab.Served)
	// Annotate gets what pages tell the box, such as lab.done(). May be nil.
	Annotate func(Annotation)
	// Pages adds the documents that a browser says it navigates to
	// (Sec-Fetch-Dest) to the archive's pages.
	Pages bool
	// MaxBody bounds a recorded body in bytes; what is longer still reaches
	// the device and is recorded as truncated. Default 1 GiB.
	MaxBody int64
	// Finish is how long a body that the device gave up is fetched further,
	// so that the archive has it whole. Default 10 s; negative for not at all.
	Finish time.Duration
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
	added  func(*lab.Exchange) // told of each that is in the archive; may be nil

	mu      sync.Mutex
	stats   Stats
	order   int
	err     error // the first of the archive
	pending sync.WaitGroup
}

// NewRecorder records to w what rt fetches. rt must not follow redirects nor
// decompress (http.Transport with DisableCompression); where it connects to,
// and through which resolver, is its business. See [NewTransport].
func NewRecorder(w *archive.Writer, rt http.RoundTripper, o RecordOptions) *Recorder {
	o.MaxBody = cmp.Or(o.MaxBody, 1<<30)
	o.Finish = cmp.Or(o.Finish, 10*time.Second)
	if o.Log == nil {
		o.Log = func(lab.Served) {}
	}
	c := &Recorder{w: w, rt: rt, o: o, script: inject.NewScript(o.Inject), start: o.Clock()}
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

// Stats returns the counts so far.
func (c *Recorder) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Wait returns when every exchange that has begun has ended and is in the
// archive, with the first error of writing it. Call it before the archive is
// closed, after the device's connections were.
func (c *Recorder) Wait() error {
	c.pending.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// ServeHTTP fetches from the origin. r.URL must be absolute. The body goes to
// the device as it comes, with the script in documents; what is recorded is
// what the origin sent.
func (c *Recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := c.o.Clock()
	c.mu.Lock()
	order := c.order
	c.order++
	c.stats.Requests++
	c.stats.InFlight++
	c.stats.LastActivity = arrived
	c.mu.Unlock()
	c.pending.Add(1) // before the device can have an answer, after which somebody may Wait
	line := newServed(r, arrived)
	line.Stage = lab.StageLive
	out := &output{w: w, r: r, clock: c.o.Clock, line: line}
	f := &fetch{c: c, out: out, e: &lab.Exchange{Order: order}}
	defer f.done()
	if name, ok := strings.CutPrefix(r.URL.Path, inject.BoxPath); ok {
		(&Session{o: Options{Annotate: c.o.Annotate}}).annotation(out, name)
		return
	}
	f.run(r)
}

// fetch is one request on its way to the origin and back.
type fetch struct {
	c        *Recorder
	out      *output
	e        *lab.Exchange
	wire     wire.Exchange
	mu       sync.Mutex // guards over, and until then sent, e.Server and e.Interim: the transport calls from its own goroutines
	over     bool       // RoundTrip has returned
	sent     lab.Time   // when the request's header went out
	good     bool       // e is worth keeping
	archived bool       // and was kept
	abort    bool       // the device must see that the answer is not whole
}

// done logs and archives, off the device's path, unless what is archived is to
// answer the next request: then it must be there before the device has the end.
func (f *fetch) done() {
	c, line := f.c, f.out.line
	now := c.o.Clock()
	line.Duration = now.Sub(line.Time)
	c.mu.Lock()
	c.stats.InFlight--
	c.stats.Live++
	c.stats.LastActivity = now
	c.mu.Unlock()
	if c.added != nil {
		f.archive()
	}
	go func() {
		defer c.pending.Done()
		f.archive()
		c.o.Log(*line)
	}()
	if f.abort {
		panic(http.ErrAbortHandler)
	}
}

// archive writes the exchange, once.
func (f *fetch) archive() {
	c := f.c
	if f.archived || !f.good || c.w == nil {
		return
	}
	f.archived = true
	err := c.w.Add(f.e)
	if err == nil && c.o.Pages && f.e.Status/100 == 2 && f.e.Request.Get("Sec-Fetch-Dest") == "document" {
		err = c.w.AddPage(archive.Page{URL: f.e.URL, Wall: f.e.Wall})
	}
	if err != nil {
		f.out.line.Error = err.Error()
		c.mu.Lock()
		c.err = cmp.Or(c.err, err)
		c.mu.Unlock()
	}
	f.out.line.Exchange = f.e.ID
	if c.added != nil && f.e.Truncated == "" {
		c.added(f.e)
	}
}

func (f *fetch) fail(status int, err error) {
	f.out.line.Error = err.Error()
	f.out.plain(status, "The box could not fetch this: "+err.Error()+"\n")
}

func (f *fetch) run(r *http.Request) {
	if fields, ok := wire.HeadOf(r.Context()); ok && wire.SameFields(fields, r.Header) {
		f.wire.Request = fields
	}
	body, err := io.ReadAll(http.MaxBytesReader(f.out.w, r.Body, maxRequestBody))
	if err != nil {
		f.fail(http.StatusBadRequest, fmt.Errorf("read the request's body: %w", err))
		return
	}
	if len(body) > 0 {
		f.out.line.RequestSHA256 = hexSum(body)
	}
	// The device may give up; the recording should be whole all the same.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	stop := context.AfterFunc(r.Context(), func() {
		if f.c.o.Finish < 0 {
			cancel()
			return
		}
		t := time.AfterFunc(f.c.o.Finish, cancel)
		context.AfterFunc(ctx, func() { t.Stop() })
	})
	defer stop()

	request, err := f.request(ctx, r, body)
	if err != nil {
		f.fail(http.StatusBadRequest, err)
		return
	}
	resp, err := f.c.rt.RoundTrip(request)
	f.answered()
	if err != nil {
		f.fail(http.StatusBadGateway, err)
		return
	}
	defer resp.Body.Close()
	f.response(resp)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		f.socket(resp)
		return
	}
	f.relay(r, resp)
}

// begin locks for a call of the transport, which makes several at once and from
// goroutines of its own; false after RoundTrip has returned: a late one changes nothing more.
func (f *fetch) begin() bool {
	f.mu.Lock()
	if f.over {
		f.mu.Unlock()
		return false
	}
	return true
}

// answered says that RoundTrip has returned.
func (f *fetch) answered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

// request builds what goes to the origin and notes it in the exchange.
func (f *fetch) request(ctx context.Context, r *http.Request, body []byte) (*http.Request, error) {
	e := f.e
	e.Method, e.URL = r.Method, f.out.line.URL
	e.Request.Body = body
	e.Wall, f.sent = f.c.o.Wall(), f.c.o.Clock()
	e.Start = f.sent.Sub(f.c.start)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			if !f.begin() {
				return
			}
			defer f.mu.Unlock()
			if a, err := netip.ParseAddrPort(i.Conn.RemoteAddr().String()); err == nil {
				e.Server = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
			}
			// Connecting is the link's and the listener's part of a replay, so
			// times count from here, and again from the header when it is sent.
			f.sent = f.c.o.Clock()
		},
		Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
			if status == http.StatusContinue || !f.begin() {
				return nil
			}
			defer f.mu.Unlock()
			f.interim(status, header)
			return nil
		},
		WroteHeaders: func() {
			if !f.begin() {
				return
			}
			defer f.mu.Unlock()
			f.sent = f.c.o.Clock()
		},
	})
	var reader io.Reader
	if len(body) > 0 {
		reader = bytes.NewReader(body)
	}
	out, err := http.NewRequestWithContext(ctx, r.Method, e.URL, reader)
	if err != nil {
		return nil, err
	}
	out.Host = cmp.Or(r.Host, r.URL.Host)
	for _, field := range sent(r, f.wire.Request, out.Host) {
		if hopByHop(field.Name) || conditional(r, http.CanonicalHeaderKey(field.Name)) {
			continue
		}
		e.Request.Header = append(e.Request.Header, field)
		if !strings.EqualFold(field.Name, "Host") {
			out.Header.Add(field.Name, field.Value)
		}
	}
	out = out.WithContext(wire.WithExchange(out.Context(), &f.wire))
	if isSocket(r) { // hop by hop, and yet the origin's
		for _, name := range []string{"Connection", "Upgrade"} {
			out.Header.Set(name, r.Header.Get(name))
			e.Request.Header = append(e.Request.Header, lab.HeaderField{Name: name, Value: r.Header.Get(name)})
		}
	}
	if _, ok := r.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // else the transport names itself
	}
	return out, nil
}

// sent lists the fields of a request: raw ones as they are; of HTTP/2 and
// HTTP/3, whose order net/http does not keep, by name.
func sent(r *http.Request, raw []lab.HeaderField, host string) []lab.HeaderField {
	if raw != nil {
		return raw
	}
	var fields []lab.HeaderField
	if r.ProtoMajor < 2 {
		fields = append(fields, lab.HeaderField{Name: "Host", Value: host})
	}
	return append(fields, listed(r.Header, r.ProtoMajor)...)
}

// listed turns a header of net/http into fields, by name.
func listed(h http.Header, major int) []lab.HeaderField {
	var fields []lab.HeaderField
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			if major >= 2 {
				name = strings.ToLower(name)
			}
			fields = append(fields, lab.HeaderField{Name: name, Value: v})
		}
	}
	return fields
}

// interim keeps a 1xx response and passes it on.
func (f *fetch) interim(status int, header textproto.MIMEHeader) {
	const most = 16
	if len(f.e.Interim) >= most {
		return
	}
	i := lab.Interim{At: max(0, f.c.o.Clock().Sub(f.sent)), Status: status, Header: listed(http.Header(header), 1)}
	f.e.Interim = append(f.e.Interim, i)
	f.out.interim(i)
}

// conditional names fields that a warm cache sends. They are left out, so
// that the archive gets the whole answer, which the device takes as well.
func conditional(r *http.Request, name string) bool {
	if r.Header.Get("Range") != "" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	return name == "If-None-Match" || name == "If-Modified-Since"
}

// response notes the header of the answer.
func (f *fetch) response(resp *http.Response) {
	e := f.e
	e.FirstByte = max(0, f.c.o.Clock().Sub(f.sent))
	e.Status = resp.StatusCode
	_, e.Reason, _ = strings.Cut(resp.Status, " ")
	switch resp.ProtoMajor {
	case 3:
		e.Protocol, e.Reason = "h3", ""
	case 2:
		e.Protocol, e.Reason = "h2", ""
	default:
		e.Protocol = fmt.Sprintf("http/%d.%d", resp.ProtoMajor, resp.ProtoMinor)
	}
	if resp.TLS != nil {
		e.TLS = TLSName(resp.TLS.Version)
	}
	e.Response.Header = listed(resp.Header, resp.ProtoMajor)
	if raw := f.wire.Response; raw != nil {
		// The transfer coding was this connection's; the body is kept without.
		e.Response.Header = dropFields(raw, "Transfer-Encoding")
	}
}

// relay sends the body on as it comes and keeps it.
func (f *fetch) relay(r *http.Request, resp *http.Response) {
	for name := range resp.Trailer { // announced, so that the body's end is not the answer's
		f.out.w.Header()[http.TrailerPrefix+name] = nil
	}
	d := newDelivery(f, r)
	buf := make([]byte, 32<<10)
	var readErr error
	var got int64
	var last []byte // of a body whose end the device sees by its length, held back until it is archived
	for readErr == nil {
		var n int
		n, readErr = resp.Body.Read(buf)
		if n > 0 {
			at := max(f.e.FirstByte, f.c.o.Clock().Sub(f.sent))
			if got += int64(n); f.c.added != nil && got == resp.ContentLength {
				last = slices.Clone(buf[:n])
			} else {
				d.piece(buf[:n])
			}
			f.keep(buf[:n], at)
		}
	}
	if readErr != io.EOF {
		f.e.Truncated = "disconnect"
		if errors.Is(readErr, context.Canceled) {
			f.e.Truncated = "time"
		} else {
			f.out.line.Error = "the origin cut the body off: " + readErr.Error()
		}
	}
	for name, values := range resp.Trailer {
		for _, v := range values {
			f.e.Response.Trailer = append(f.e.Response.Trailer, lab.HeaderField{Name: name, Value: v})
		}
	}
	f.good = true
	if last != nil {
		f.archive()
		d.piece(last)
	}
	d.finish(readErr == io.EOF)
}

// keep appends a piece to the recorded body.
func (f *fetch) keep(piece []byte, at time.Duration) {
	e := f.e
	if e.Truncated == "length" {
		return
	}
	if int64(len(e.Response.Body)+len(piece)) > f.c.o.MaxBody {
		e.Truncated = "length"
		return
	}
	e.Response.Body = append(e.Response.Body, piece...)
	// Pieces that came together are one chunk.
	const together = 500 * time.Microsecond
	if n := len(e.Chunks); n > 0 && at-e.Chunks[n-1].At < together {
		e.Chunks[n-1].Bytes += len(piece)
		return
	}
	e.Chunks = append(e.Chunks, lab.Chunk{At: at, Bytes: len(piece)})
}
