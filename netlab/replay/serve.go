package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
	"eidetic/netlab/proxy/wire"
)

// maxRequestBody bounds what a device may send in one request.
const maxRequestBody = 256 << 20

// ServeHTTP answers from the archive. r.URL must be absolute.
func (s *Session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := s.o.Clock()
	s.begin(arrived)
	line := newServed(r, arrived)
	defer s.end(line)
	out := &output{w: w, r: r, clock: s.o.Clock, line: line}
	if name, ok := strings.CutPrefix(r.URL.Path, inject.BoxPath); ok {
		s.annotation(out, name)
		return
	}
	var sent []byte
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		if sent, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBody)); err != nil {
			line.Stage, line.Error = lab.StageMiss, "read the request's body: "+err.Error()
			out.plain(http.StatusBadRequest, "The request's body could not be read.\n")
			return
		}
		line.RequestSHA256 = sumOf(sent)
	}
	from := ConnFrom(r.Context()).Client
	m := s.exact(from, r.Method, line.URL, line.RequestSHA256, r.Header)
	if m.entry == nil { // now it is worth taking it apart
		sh, err := newShape(r.Method, line.URL, messageOf(r), sent)
		if err != nil {
			line.Stage, line.Error = lab.StageMiss, err.Error()
			out.plain(http.StatusBadRequest, "The URL could not be read.\n")
			return
		}
		m = s.find(from, sh, r.Header)
	}
	if m.entry == nil || m.stage == lab.StageFuzzy {
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			s.preflight(out)
			return
		}
	}
	if m.entry == nil && s.live != nil {
		line.Stage = lab.StageLive
		r.Body = io.NopCloser(bytes.NewReader(sent))
		s.live.ServeHTTP(w, r)
		return
	}
	line.Stage, line.Score, line.Differs, line.RunnerUp = m.stage, m.score, m.differs, m.runnerUp
	if m.entry == nil {
		line.Score = 0
		out.plain(http.StatusNotFound, "This request is not in the archive.\n")
		return
	}
	line.Exchange = m.entry.ID
	if m.entry.Status == http.StatusSwitchingProtocols {
		s.socket(out, m.entry)
		return
	}
	s.answer(out, m.entry)
}

// newServed starts the log line of a request.
func newServed(r *http.Request, at lab.Time) *lab.Served {
	c := ConnFrom(r.Context())
	line := &lab.Served{Time: at, Method: r.Method, URL: urlOf(r), Protocol: c.Protocol}
	if c.Client.IsValid() {
		line.Client = c.Client.String()
	}
	return line
}

// messageOf lists the request's header, for those who compare it.
func messageOf(r *http.Request) *lab.Message {
	m := &lab.Message{Header: make([]lab.HeaderField, 0, len(r.Header)+4)}
	for name, values := range r.Header {
		for _, v := range values {
			m.Header = append(m.Header, lab.HeaderField{Name: name, Value: v})
		}
	}
	return m
}

// annotation takes what a page tells the box.
func (s *Session) annotation(out *output, name string) {
	const most = 64 << 10
	text, err := io.ReadAll(http.MaxBytesReader(out.w, out.r.Body, most))
	out.line.Stage, out.line.Score = lab.StageBox, 1
	if err != nil {
		out.line.Error = err.Error()
		out.plain(http.StatusRequestEntityTooLarge, "An annotation has at most 64 KiB.\n")
		return
	}
	if s.o.Annotate != nil {
		s.o.Annotate(Annotation{Time: out.line.Time, Client: ConnFrom(out.r.Context()).Client, URL: out.line.URL, Name: name, Body: text})
	}
	out.header(http.StatusNoContent, []lab.HeaderField{{Name: "Cache-Control", Value: "no-store"}})
}

// preflight answers a CORS preflight that was not recorded (browsers cache
// them, so a recording may lack them) with what it asks for.
func (s *Session) preflight(out *output) {
	h := out.r.Header
	out.line.Stage, out.line.Score = lab.StageBox, 1
	fields := []lab.HeaderField{
		{Name: "Access-Control-Allow-Origin", Value: h.Get("Origin")},
		{Name: "Access-Control-Allow-Methods", Value: h.Get("Access-Control-Request-Method")},
		{Name: "Access-Control-Allow-Credentials", Value: "true"},
		{Name: "Vary", Value: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"},
	}
	if v := h.Get("Access-Control-Request-Headers"); v != "" {
		fields = append(fields, lab.HeaderField{Name: "Access-Control-Allow-Headers", Value: v})
	}
	if h.Get("Access-Control-Request-Private-Network") != "" {
		fields = append(fields, lab.HeaderField{Name: "Access-Control-Allow-Private-Network", Value: "true"})
	}
	out.header(http.StatusNoContent, fields)
}

// answer writes an exchange's response.
func (s *Session) answer(out *output, en *entry) {
	var request lab.Message // its header, for those who compare it
	less := asksForLess(out.r.Header)
	if less || en.span != nil || en.reqRange != "" || en.document {
		request = *messageOf(out.r)
	}
	b := s.variant(en, &request)
	if b.coding != "" {
		b = s.coded(en, b, out.r.Header.Get("Accept-Encoding"))
	}
	status, text, chunks := en.Status, b.bytes, b.chunks
	fields := s.fields(en, b, out.r.Header, s.shifter(en, out.line.Time))
	if b.altSvc {
		if f, ok := altSvc(b.header, en.URL, ConnFrom(out.r.Context()).QUIC && s.HTTP3(out.r.URL.Host)); ok {
			fields = append(fields, f)
		}
	}
	switch {
	case less && status == http.StatusOK && notModified(&request, fields):
		status, text, chunks = http.StatusNotModified, nil, nil
		fields = keepFields(fields, "cache-control", "content-location", "date", "etag", "expires", "vary", "last-modified", "set-cookie", "access-control-allow-origin", "access-control-allow-credentials")
	case b == en.body && (less || en.span != nil || en.reqRange != ""):
		status, text, chunks, fields = cut(en, &request, fields, text, chunks)
	}
	t := s.o.Timing
	first := en.FirstByte
	switch t.Mode {
	case TimingFixed:
		first = t.Fixed
	case TimingNone:
		first = 0
	}
	ctx := out.r.Context()
	if status == en.Status {
		out.reason = en.Reason
		for _, i := range en.Interim {
			at := min(i.At, first) // under another timing they come before all else
			if t.Mode != TimingRecorded {
				at = 0
			}
			if err := waitUntil(ctx, s.o.Clock, out.line.Time.Add(at)); err != nil {
				out.aborted(err)
				return
			}
			out.interim(i)
		}
	}
	if err := waitUntil(ctx, s.o.Clock, out.line.Time.Add(first)); err != nil {
		out.aborted(err)
		return
	}
	for _, f := range en.Response.Trailer {
		fields = append(fields, lab.HeaderField{Name: http.TrailerPrefix + f.Name, Value: f.Value})
	}
	out.header(status, fields)
	if out.r.Method == http.MethodHead || !bodyAllowed(status) {
		return
	}
	if len(text) > 0 && !contentLength(fields) {
		out.flush() // else net/http counts a short body and says its length
	}
	if t.Mode == TimingRecorded && len(chunks) > 0 {
		out.timed(ctx, text, chunks)
	} else {
		out.body(text)
	}
	if len(text) == len(b.bytes) && out.line.Bytes == int64(len(text)) {
		out.line.BodySHA256 = b.sum
	} else {
		out.line.BodySHA256 = hexSum(text[:out.line.Bytes])
	}
	if en.Truncated != "" && !out.line.Aborted {
		// It was cut off when it was recorded, and nothing better is there.
		out.line.Error = "the recorded body was cut off (" + en.Truncated + ")"
		panic(http.ErrAbortHandler)
	}
}

// variant is the body for this kind of request: a document that is fetched by
// a script gets no script of ours, and the other way round.
func (s *Session) variant(en *entry, request *lab.Message) *body {
	if !en.document {
		return en.body
	}
	plan := s.p.script.Plan(en.Method, en.URL, request, en.Status, en.Response.Header)
	switch {
	case plan == nil:
		return en.body
	case en.injected != nil:
		return en.injected
	}
	// Recorded as a fetch and now a document: rare enough to be done here, once.
	en.once.Do(func() {
		if en.late, _ = injectBody(plan, en.body); en.late != nil {
			en.late.ready(en)
		}
	})
	if en.late != nil {
		return en.late
	}
	return en.body
}

func (s *Session) shifter(en *entry, at lab.Time) shifter {
	now := s.now(at)
	if now.IsZero() || en.Wall.IsZero() {
		return shifter{}
	}
	return shifter{recorded: en.Wall, delta: now.Sub(en.Wall), steady: s.o.Wall.Sub(s.p.archive.Options().Wall)}
}

// notModified answers If-None-Match and If-Modified-Since (RFC 9110, 13).
func notModified(request *lab.Message, fields []lab.HeaderField) bool {
	response := lab.Message{Header: fields}
	if want := request.Get("If-None-Match"); want != "" {
		tag := strings.TrimPrefix(response.Get("ETag"), "W/")
		if tag == "" {
			return false
		}
		for _, one := range strings.Split(want, ",") {
			if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(request.Get("If-Modified-Since"))
	if err != nil {
		return false
	}
	changed, err := http.ParseTime(response.Get("Last-Modified"))
	return err == nil && !changed.After(since)
}

func keepFields(fields []lab.HeaderField, names ...string) []lab.HeaderField {
	out := fields[:0]
	for _, f := range fields {
		for _, name := range names {
			if strings.EqualFold(f.Name, name) {
				out = append(out, f)
				break
			}
		}
	}
	return out
}

func dropFields(fields []lab.HeaderField, names ...string) []lab.HeaderField {
	out := fields[:0]
	for _, f := range fields {
		drop := false
		for _, name := range names {
			drop = drop || strings.EqualFold(f.Name, name)
		}
		if !drop {
			out = append(out, f)
		}
	}
	return out
}

// cut answers a Range from a whole body, or a whole request from a 206 that
// holds everything.
func cut(en *entry, request *lab.Message, fields []lab.HeaderField, body []byte, chunks []lab.Chunk) (int, []byte, []lab.Chunk, []lab.HeaderField) {
	field := request.Get("Range")
	if field == en.reqRange || en.Status != 200 && en.span == nil {
		return en.Status, body, chunks, fields
	}
	if field == "" || !ifRange(request, fields) {
		if en.span != nil {
			fields = setLength(dropFields(fields, "Content-Range", "Content-Length"), len(body))
			return http.StatusOK, body, chunks, fields
		}
		return en.Status, body, chunks, fields
	}
	base, total := 0, len(body)
	if en.span != nil {
		base, total = en.span.first, en.span.total
	}
	first, last, state := parseRange(field, total)
	switch {
	case state == rangeUnsatisfiable:
		fields = append(dropFields(fields, "Content-Range", "Content-Length"), lab.HeaderField{Name: "Content-Range", Value: fmt.Sprintf("bytes */%d", total)})
		return http.StatusRequestedRangeNotSatisfiable, nil, nil, setLength(fields, 0)
	case state == rangeIgnored || first < base || last >= base+len(body):
		return en.Status, body, chunks, fields
	}
	part := body[first-base : last-base+1]
	fields = append(dropFields(fields, "Content-Range", "Content-Length"), lab.HeaderField{Name: "Content-Range", Value: fmt.Sprintf("bytes %d-%d/%d", first, last, total)})
	return http.StatusPartialContent, part, cutChunks(chunks, first-base, len(part)), setLength(fields, len(part))
}

// ifRange: a part is only for who has the same representation (RFC 9110, 13.1.5).
func ifRange(request *lab.Message, fields []lab.HeaderField) bool {
	want := request.Get("If-Range")
	response := lab.Message{Header: fields}
	return want == "" || want == response.Get("ETag") && !strings.HasPrefix(want, "W/") || want == response.Get("Last-Modified")
}

func setLength(fields []lab.HeaderField, n int) []lab.HeaderField {
	return append(fields, lab.HeaderField{Name: "Content-Length", Value: strconv.Itoa(n)})
}

// cutChunks returns the chunks of n bytes from an offset, starting as soon as
// the first byte would have: a server seeks, it does not send what is skipped.
func cutChunks(chunks []lab.Chunk, from, n int) []lab.Chunk {
	var out []lab.Chunk
	var begin time.Duration
	for _, c := range chunks {
		skip := min(from, c.Bytes)
		from -= skip
		size := min(c.Bytes-skip, n)
		if size <= 0 {
			continue
		}
		if out == nil {
			begin = c.At - chunks[0].At
		}
		out = append(out, lab.Chunk{At: c.At - begin, Bytes: size})
		n -= size
	}
	return out
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// hopByHop names fields that belong to one connection, and Alt-Svc, of which
// altSvc leaves what we serve.
func hopByHop(name string) bool {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Alt-Svc", "Http2-Settings":
		return true
	}
	return false
}

// output writes one answer and keeps its log line.
type output struct {
	w     http.ResponseWriter
	r     *http.Request
	clock lab.Clock
	line  *lab.Served
	// reason is the recorded phrase of an HTTP/1.1 status line, "" for the usual one.
	reason string
}

// header writes the status and fields, and nothing that net/http would add.
func (o *output) header(status int, fields []lab.HeaderField) {
	o.line.Status = status
	o.line.FirstByte = o.clock().Sub(o.line.Time)
	if w, ok := o.w.(wire.FieldWriter); ok {
		n := len(fields) // trailers come last
		for ; n > 0 && strings.HasPrefix(fields[n-1].Name, http.TrailerPrefix); n-- {
			f, h := fields[n-1], o.w.Header()
			h[f.Name] = append([]string{f.Value}, h[f.Name]...)
		}
		w.WriteFields(status, o.reason, fields[:n])
		return
	}
	h := o.w.Header()
	h["Date"], h["Content-Type"] = nil, nil
	for _, f := range fields {
		name := f.Name
		if !strings.HasPrefix(name, http.TrailerPrefix) {
			name = textproto.CanonicalMIMEHeaderKey(name)
		}
		h[name] = append(h[name], f.Value)
	}
	o.w.WriteHeader(status)
}

// interim writes a 1xx response.
func (o *output) interim(i lab.Interim) {
	if !o.r.ProtoAtLeast(1, 1) {
		return
	}
	if w, ok := o.w.(wire.FieldWriter); ok {
		w.WriteFields(i.Status, "", i.Header)
		return
	}
	h := o.w.Header()
	for _, f := range i.Header {
		h.Add(f.Name, f.Value)
	}
	o.w.WriteHeader(i.Status)
	clear(h)
}

// plain is an answer of the box itself.
func (o *output) plain(status int, text string) {
	o.header(status, []lab.HeaderField{{Name: "Content-Type", Value: "text/plain; charset=utf-8"}, {Name: "Cache-Control", Value: "no-store"}})
	o.body([]byte(text))
	o.line.BodySHA256 = hexSum([]byte(text)[:o.line.Bytes])
}

func (o *output) body(b []byte) {
	if o.r.Method == http.MethodHead || len(b) == 0 {
		return
	}
	n, err := o.w.Write(b)
	o.line.Bytes += int64(n)
	if err != nil {
		o.aborted(err)
	}
}

// flush sends what was written.
func (o *output) flush() {
	if err := http.NewResponseController(o.w).Flush(); err != nil {
		o.aborted(err)
	}
}

// timed writes the pieces of a body each at its time since the request.
func (o *output) timed(ctx context.Context, b []byte, chunks []lab.Chunk) {
	if chunks[0].At > o.clock().Sub(o.line.Time) {
		o.flush()
	}
	for i, c := range chunks {
		if err := waitUntil(ctx, o.clock, o.line.Time.Add(c.At)); err != nil {
			o.aborted(err)
			return
		}
		o.body(b[:c.Bytes])
		b = b[c.Bytes:]
		if o.line.Aborted {
			return
		}
		// The last piece goes out with the end of the message.
		if i < len(chunks)-1 && chunks[i+1].At > o.clock().Sub(o.line.Time) {
			o.flush()
		}
	}
}

// aborted notes that the device went away.
func (o *output) aborted(err error) {
	o.line.Aborted = true
	if !errors.Is(err, context.Canceled) {
		o.line.Error = err.Error()
	}
}
