package replay

import (
	"net/http"
	"time"

	"eidetic/internal/lab"
)

// answer makes the response to a request from a recorded one.
func (s *Session) answer(o *output, en *entry) answer {
	h := o.r.Header
	b := s.variant(en, o.r)
	if b.coding != "" {
		b = s.coded(en, b, h.Get("Accept-Encoding"))
	}
	a := answer{
		status: en.Status, body: b.bytes, sum: b.sum, chunks: b.chunks, truncated: en.Truncated, first: s.o.Timing.firstByte(en.FirstByte),
		fields: s.fields(en, b, h, s.shifter(en, o.line.Time)),
	}
	if b.altSvc {
		if f, ok := altSvc(b.header, en.URL, o.conn.QUIC && s.HTTP3(o.r.URL.Host)); ok {
			a.fields = append(a.fields, f)
		}
	}
	less := asksForLess(h)
	switch {
	case less && a.status == http.StatusOK && isNotModified(h, a.fields):
		a.becomeNotModified()
	case b == en.body && (less || en.Part != nil || en.AskedRange != ""):
		a.cut(en, h)
	}
	if a.status == en.Status {
		a.reason, a.interim = en.Reason, s.o.Timing.interim(en.Interim, a.first)
	}
	for _, f := range en.Response.Trailer {
		a.fields = append(a.fields, lab.HeaderField{Name: http.TrailerPrefix + f.Name, Value: f.Value})
	}
	if s.o.Timing.Mode != TimingRecorded {
		a.chunks = nil
	}
	return a
}

// variant is the body for this kind of request: a document that a script fetches is
// served as recorded, one that the browser navigates to has the script in it.
func (s *Session) variant(en *entry, r *http.Request) *body {
	if !en.document {
		return en.body
	}
	plan := s.p.script.Plan(en.Method, en.URL, messageOf(r), en.Status, en.Response.Header)
	switch {
	case plan == nil:
		return en.body
	case en.injected != nil:
		return en.injected
	}
	// Recorded as a fetch and now a document: rare enough to be done here, once.
	en.once.Do(func() {
		if en.late, _, _ = injectBody(plan, en.body); en.late != nil {
			en.late.prepare(en)
		}
	})
	if en.late != nil {
		return en.late
	}
	return en.body
}

// messageOf lists the request's header for package inject.
func messageOf(r *http.Request) *lab.Message {
	m := &lab.Message{Header: make([]lab.HeaderField, 0, len(r.Header)+4)}
	for name, values := range r.Header {
		for _, v := range values {
			m.Header = append(m.Header, lab.HeaderField{Name: name, Value: v})
		}
	}
	return m
}

func (s *Session) shifter(en *entry, at lab.Time) shifter {
	now := s.now(at)
	if now.IsZero() || en.Wall.IsZero() {
		return shifter{}
	}
	return shifter{recorded: en.Wall, delta: now.Sub(en.Wall), steady: s.o.Wall.Sub(s.p.archive.Options().Wall)}
}

// firstByte returns when the header is due that was recorded at a time after its request.
func (t Timing) firstByte(recorded time.Duration) time.Duration {
	switch t.Mode {
	case TimingFixed:
		return t.Fixed
	case TimingNone:
		return 0
	}
	return recorded
}

// interim returns 1xx responses with the times at which they are due, at most first:
// under another timing than the recorded one they are due at once.
func (t Timing) interim(recorded []lab.Interim, first time.Duration) []lab.Interim {
	if len(recorded) == 0 {
		return nil
	}
	due := make([]lab.Interim, len(recorded))
	for i, r := range recorded {
		if r.At = min(r.At, first); t.Mode != TimingRecorded {
			r.At = 0
		}
		due[i] = r
	}
	return due
}
