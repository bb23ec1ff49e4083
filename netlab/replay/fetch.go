package replay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
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
	"sync/atomic"
	"syscall"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/hop"
	"eidetic/netlab/inject"
	"eidetic/netlab/message"
	"eidetic/netlab/replay/match"
)

// fetch is one request of a Recorder on its way to the origin and back.
type fetch struct {
	c       *Recorder
	out     *output
	e       *lab.Exchange
	headers hop.Headers
	upload  *upload // nil for a body that was read before the origin was asked
	release func()  // ends the request to the origin; nil before it began
	// gaveUp is not nil once we have ended the request to the origin. The origin learns of it a moment
	// before our side is closed, and may then end its answer as if that were its end.
	gaveUp func() error

	// mu guards returned and, until that is set, sentAt, e.Server and e.Interim: the
	// transport calls from its own goroutines.
	mu       sync.Mutex
	returned bool     // RoundTrip has returned
	sentAt   lab.Time // when the request's header was sent

	heard    atomic.Int64 // lab.Time of the last byte from the origin, or of the arrival
	isStream atomic.Bool  // a WebSocket or an event stream
	// unsized is the lab.Time of the header of an answer that states no length, 0 for others; got are bytes of its body.
	unsized, got atomic.Int64
	isMedia      atomic.Bool // what a player plays

	complete bool // e may be archived
	archived bool

	held     atomic.Int64 // of the recorder's budget
	exceeded atomic.Bool  // a part was not recorded, for want of budget
}

// outcome sends a request to the origin and leaves the rest of the answer to a stream.
func (f *fetch) outcome() outcome {
	r := f.out.r
	if name, ok := annotationName(r); ok {
		return annotation(f.out, name, f.c.o.Annotate)
	}
	if fields, ok := hop.Fields(r.Context()); ok && hop.SameFields(fields, r.Header) {
		f.headers.Request = fields
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = budgeted{r.Body, f}
	}
	var body []byte
	var err error
	if isUpload(r) {
		f.upload = &upload{from: r.Body, clock: f.c.o.Clock, take: f.take, heard: -1}
	} else if body, err = f.out.readBody(); err != nil {
		return failure(http.StatusBadRequest, err)
	}
	request, err := f.request(r, body)
	if err != nil {
		return failure(http.StatusBadRequest, err)
	}
	resp, err := f.c.rt.RoundTrip(request)
	f.setReturned()
	if err != nil && strings.Contains(err.Error(), "tls: certificate required") { // crypto/tls has no type for it
		err = fmt.Errorf("%w: the origin asks its visitors for a certificate, and the box has none", err)
	}
	if err == nil && f.gaveUp() != nil {
		_ = resp.Body.Close()
		err = f.gaveUp()
	}
	if err != nil {
		if r.Context().Err() != nil && request.Context().Err() != nil {
			// The device left before the answer began: a long poll, for instance.
			f.e.Truncated, f.complete = "time", true
		} else if isBroken(err) && (!archive.Navigates(f.e) || f.isTriedFirst(request, err)) {
			// A person who opens a page is told by the box; a page sees a network error, not an answer of the box.
			f.e.Truncated, f.complete, f.e.FirstByte = lab.Disconnected, true, f.c.o.Clock().Sub(f.out.line.Time)
			return outcome{Result: fromOrigin(), problem: err.Error(), breaks: true}
		}
		return failure(http.StatusBadGateway, err)
	}
	f.response(resp)
	f.upload.hear(0)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return f.socket(resp)
	}
	return outcome{Result: fromOrigin(), stream: func(*output) { f.relay(resp) }}
}

// fromOrigin says that the origin answered.
func fromOrigin() match.Result { return match.Result{Stage: lab.StageLive} }

// failure is the outcome of a request that got no answer from the origin.
func failure(status int, err error) outcome {
	return outcome{Result: fromOrigin(), problem: err.Error(), answer: page(status, "The box could not fetch this: "+err.Error()+"\n")}
}

// isBroken says whether there was no answer because of the origin: it could not be reached, it refused or broke the
// connection, its certificate is not trusted, or it spoke no HTTP. A browser gives a page a network error then. Where
// the box itself does not connect, somebody can change that.
func isBroken(err error) bool {
	var own interface{ ByBox() bool }
	return !errors.As(err, &own) || !own.ByBox()
}

// isTriedFirst tells a navigation that a browser may have made by itself, before it asks for the same page without TLS:
// it does so if the connection breaks, and not if the box answers (Chromium's HTTPS-Upgrades).
func (f *fetch) isTriedFirst(r *http.Request, err error) bool {
	var noTLS tls.RecordHeaderError
	return f.c.o.Plain != nil && r.Method == http.MethodGet && r.URL.Scheme == "https" && r.URL.Port() == "" &&
		(errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &noTLS)) && f.c.o.Plain(r.Context(), r.URL.Hostname())
}

// done logs and archives, and the device need not wait for that. But under MissFill
// the exchange is to answer the next request, so that it must be in the archive
// before the device has the end of the answer.
func (f *fetch) done() {
	c, line := f.c, &f.out.line
	if f.release != nil {
		f.release()
	}
	now := c.o.Clock()
	line.Duration = now.Sub(line.Time)
	f.keepUpload()
	c.end(f, now)
	if c.added != nil {
		f.archive()
	}
	go func() {
		defer c.pending.Done()
		f.archive()
		f.give()
		c.o.Log(*line)
	}()
	if f.out.incomplete {
		panic(http.ErrAbortHandler) // the server then closes the connection or resets the stream
	}
}

// archive writes the exchange, once.
func (f *fetch) archive() {
	if f.archived || !f.complete || f.c.w == nil {
		return
	}
	f.archived = true
	f.keepUpload()
	if err := f.c.archive(f.e); err != nil {
		f.out.line.Error = err.Error()
	}
	if f.exceeded.Load() {
		f.out.line.Error = cmp.Or(f.out.line.Error, errBudget.Error())
	}
	f.out.line.Exchange = f.e.ID
}

// lifetime returns a context for the request to the origin. The context outlives the
// device's request, which the device may give up while the recording should be
// complete all the same; it ends with release, or RecordOptions.Finish after that.
func (f *fetch) lifetime(device context.Context) context.Context {
	ctx, cancel := context.WithCancel(context.WithoutCancel(device))
	stop := context.AfterFunc(device, func() {
		if f.c.o.Finish < 0 || f.isSilent() {
			cancel()
			return
		}
		t := time.AfterFunc(f.c.o.Finish, cancel)
		context.AfterFunc(ctx, func() { t.Stop() })
	})
	f.gaveUp = ctx.Err
	f.release = func() {
		stop()
		cancel()
	}
	return ctx
}

// isSilent tells that the origin has sent nothing for so long that nothing is lost by ending
// the request with the device's.
func (f *fetch) isSilent() bool {
	const silent = 2 * time.Second
	now := f.c.o.Clock()
	return f.isEndless(now) || now.Sub(lab.Time(f.heard.Load())) >= silent
}

// trickle bounds the rate of an answer that nobody waits for the end of, in bytes a second: lines of a feed, signs of
// life.
const trickle = 16 << 10

// isEndless tells an answer for whose end no page waits: a stream, and one without a length that has come for so long
// as a request may be silent, and plays or comes slowly. A document is waited for.
func (f *fetch) isEndless(now lab.Time) bool {
	begun := lab.Time(f.unsized.Load())
	if f.isStream.Load() || begun == 0 {
		return f.isStream.Load()
	}
	since := now.Sub(begun)
	return since >= silentAfter && (f.isMedia.Load() || float64(f.got.Load()) < trickle*since.Seconds())
}

// lock locks for a call of the transport, which makes several at once and from
// goroutines of its own. It returns false after RoundTrip has returned: a late call
// changes nothing more.
func (f *fetch) lock() bool {
	f.mu.Lock()
	if f.returned {
		f.mu.Unlock()
		return false
	}
	return true
}

// setReturned notes that RoundTrip has returned.
func (f *fetch) setReturned() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.returned = true
}

// trace lets the transport note the origin's address, the time of sending and 1xx
// responses.
func (f *fetch) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			if !f.lock() {
				return
			}
			defer f.mu.Unlock()
			if a, err := netip.ParseAddrPort(i.Conn.RemoteAddr().String()); err == nil {
				f.e.Server = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
			}
			// Connecting is the link's and the listener's part of a replay, so times
			// count from here, and again from when the header is sent.
			f.sentAt = f.c.o.Clock()
		},
		Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
			if status == http.StatusContinue || !f.lock() {
				return nil
			}
			defer f.mu.Unlock()
			f.interim(status, header)
			return nil
		},
		WroteHeaders: func() {
			if !f.lock() {
				return
			}
			defer f.mu.Unlock()
			f.sentAt = f.c.o.Clock()
		},
	}
}

// interim records a 1xx response and sends it to the device.
func (f *fetch) interim(status int, header textproto.MIMEHeader) {
	const most = 16
	if len(f.e.Interim) >= most {
		return
	}
	i := lab.Interim{At: max(0, f.c.o.Clock().Sub(f.sentAt)), Status: status, Header: fieldsOf(http.Header(header), 1)}
	f.e.Interim = append(f.e.Interim, i)
	f.out.interim(i)
}

// request makes the request to the origin and notes it in the exchange.
func (f *fetch) request(r *http.Request, body []byte) (*http.Request, error) {
	e := f.e
	e.Method, e.URL = r.Method, f.out.line.URL
	e.Request.Body = body
	e.Wall, f.sentAt = f.c.o.Wall(), f.c.o.Clock()
	e.Start = f.sentAt.Sub(f.c.start)
	var reader io.Reader
	switch {
	case f.upload != nil:
		reader = f.upload
	case len(body) > 0:
		reader = bytes.NewReader(body)
	}
	ctx := hop.WithHeaders(httptrace.WithClientTrace(f.lifetime(r.Context()), f.trace()), &f.headers)
	out, err := http.NewRequestWithContext(ctx, r.Method, r.URL.Scheme+"://"+r.URL.Host, reader)
	if err != nil {
		return nil, err
	}
	out.URL = lab.ParseURL(e.URL).Net()
	out.Host = cmp.Or(r.Host, r.URL.Host)
	isForScript := inject.Concerned(messageOf(r))
	fields := requestFields(r, f.headers.Request, out.Host)
	isOfOne := isOfConnection(fields)
	for _, field := range fields {
		if isOfOne(field.Name) && !takesTrailers(r, field) || isConditional(r, http.CanonicalHeaderKey(field.Name)) {
			continue
		}
		if isForScript && strings.EqualFold(field.Name, "Accept-Encoding") {
			field.Value = withoutDictionaries(field.Value)
		}
		e.Request.Header = append(e.Request.Header, field)
		if !strings.EqualFold(field.Name, "Host") {
			out.Header.Add(field.Name, field.Value)
		}
	}
	if f.c.o.Traceparent && out.Header.Get(Traceparent) == "" {
		parent := newTraceparent()
		out.Header.Set(Traceparent, parent)
		e.Request.Header = append(e.Request.Header, lab.HeaderField{Name: Traceparent, Value: parent})
	}
	if isSocket(r) { // these are hop-by-hop, but the origin needs them
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

// takesTrailers tells the one field of a connection that HTTP/2 has (RFC 9113, 8.2.2): servers of gRPC refuse calls
// without it.
func takesTrailers(r *http.Request, f lab.HeaderField) bool {
	return r.ProtoMajor == 2 && strings.EqualFold(f.Name, "Te") && strings.EqualFold(f.Value, "trailers")
}

// withoutDictionaries leaves the codings out of a list in which an answer says how it differs from another one (RFC
// 9842): the script cannot be put into such an answer.
func withoutDictionaries(acceptEncoding string) string {
	list := strings.Split(acceptEncoding, ",")
	list = slices.DeleteFunc(list, func(one string) bool {
		name, _, _ := strings.Cut(one, ";")
		return inject.IsDictionary(strings.ToLower(strings.TrimSpace(name)))
	})
	return strings.Join(list, ",")
}

// Traceparent is the field that says to which trace a request belongs (W3C Trace Context, 3.2).
const Traceparent = "traceparent"

// newTraceparent is the field of a trace of its own, which is to be kept.
func newTraceparent() string {
	var ids [24]byte
	_, _ = rand.Read(ids[:]) // never fails
	return fmt.Sprintf("00-%x-%x-01", ids[:16], ids[16:])
}

// requestFields lists the fields of a request: as received, if that is known; those
// of HTTP/2 and HTTP/3, whose order net/http does not keep, by name.
func requestFields(r *http.Request, received []lab.HeaderField, host string) []lab.HeaderField {
	if received != nil {
		return received
	}
	var fields []lab.HeaderField
	if r.ProtoMajor < 2 {
		fields = append(fields, lab.HeaderField{Name: "Host", Value: host})
	}
	return append(fields, fieldsOf(r.Header, r.ProtoMajor)...)
}

// fieldsOf turns a header of net/http into fields, sorted by name.
func fieldsOf(h http.Header, major int) []lab.HeaderField {
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

// isConditional tells fields that a browser with a warm cache sends, and scripts. They are left
// out, so that the archive gets the complete answer.
func isConditional(r *http.Request, name string) bool {
	if r.Header.Get("Range") != "" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	return name == "If-None-Match" || name == "If-Modified-Since"
}

// isUnchanged tells that the device has asked only for what has changed, and that the complete answer, which the archive
// gets, has not.
func (f *fetch) isUnchanged() bool {
	r := f.out.r
	return f.e.Status == http.StatusOK && isConditional(r, "If-None-Match") && isNotModified(r.Header, f.e.Response.Header)
}

// response notes the header of the answer.
func (f *fetch) response(resp *http.Response) {
	e := f.e
	now := f.c.o.Clock()
	f.heard.Store(int64(now))
	kind := resp.Header.Get("Content-Type")
	f.isStream.Store(lab.IsStream(kind))
	if resp.ContentLength < 0 && !inject.Concerned(&e.Request) && !archive.Navigates(e) {
		f.isMedia.Store(strings.HasPrefix(strings.ToLower(kind), "audio/") || strings.HasPrefix(strings.ToLower(kind), "video/"))
		f.unsized.Store(int64(now))
	}
	e.FirstByte = max(0, now.Sub(f.sentAt))
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
		e.TLS = tlsName(resp.TLS.Version)
	}
	e.Response.Header = fieldsOf(resp.Header, resp.ProtoMajor)
	if received := f.headers.Response; received != nil {
		// The transfer coding belonged to this connection; the body is kept without it.
		isChunked := resp.ContentLength < 0 && (&message.Head{Fields: received}).IsChunked()
		if e.Response.Header = dropFields(received, "Transfer-Encoding"); isChunked {
			e.Response.Header = dropFields(e.Response.Header, "Content-Length") // the chunks override it
		}
	}
}

// tlsName renders a version as lab.Exchange keeps it: "tls/1.3".
func tlsName(version uint16) string {
	switch version {
	case tls.VersionTLS13:
		return "tls/1.3"
	case tls.VersionTLS12:
		return "tls/1.2"
	case tls.VersionTLS11:
		return "tls/1.1"
	case tls.VersionTLS10:
		return "tls/1.0"
	}
	return ""
}
