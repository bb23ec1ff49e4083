package replay

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/hop"
	"eidetic/netlab/inject"
)

// answer makes the response to a request from a recorded one.
func (s *Session) answer(o *output, en *entry) answer {
	h := o.r.Header
	b := s.variant(en, o.r)
	if b.coding != "" {
		b = s.coded(en, b, h.Get("Accept-Encoding"))
	} else if _, ok := dictionaryOf(en.Exchange); ok && en.Truncated == "" && en.Part == nil {
		b = s.undone(en, h)
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
	if !s.p.archive.IsSeeded() && !en.filled {
		a.letRead(en, h)
	}
	less, unmet := asksForLess(h), s.unmet(en, o, a.fields)
	switch {
	case unmet != "":
		a.becomePreconditionFailed()
		a.why = unmet
	case less && a.status == http.StatusOK && isNotModified(h, a.fields):
		a.becomeNotModified()
	case o.r.Method == http.MethodGet && (less || en.Part != nil || en.AskedRange != ""):
		a.cut(en, h)
	}
	if w, ok := o.w.(hop.OpenEnded); ok && b.stated != "" && o.conn.Protocol == "h2" && len(a.body) == len(b.bytes) {
		w.LeaveOpen()
		for i := range a.fields {
			if strings.EqualFold(a.fields[i].Name, "Content-Length") {
				a.fields[i].Value = b.stated
			}
		}
	}
	if a.status == en.Status {
		a.reason, a.interim = reasonOf(en.Exchange), s.o.Timing.interim(en.Interim, a.first)
	}
	for _, f := range en.Response.Trailer {
		a.fields = append(a.fields, lab.HeaderField{Name: http.TrailerPrefix + f.Name, Value: f.Value})
	}
	if s.o.Timing.Mode != TimingRecorded {
		a.chunks = nil
	}
	return a
}

// reasonOf is the reason of an answer as hop.FieldWriter takes it.
func reasonOf(e *lab.Exchange) string {
	if e.Reason == "" && strings.HasPrefix(e.Protocol, "http/1") {
		return hop.NoReason
	}
	return e.Reason
}

// variant is the body for this kind of request: a document that a script fetches is
// served as recorded, one that the browser navigates to has the script in it.
func (s *Session) variant(en *entry, r *http.Request) *body {
	if en.variants == nil {
		return en.body
	}
	if plan := s.p.script.Plan(en.Method, en.URL, messageOf(r), en.Status, en.Response.Header); plan != nil {
		return en.injected(plan)
	}
	return en.body
}

// variant is a document with the script in it, for one kind of use.
type variant struct {
	once    sync.Once
	decoded int64 // bytes that the body decoded to
	body    *body // nil for a body that turned out to be no document, or does not decode
}

// injected returns the body with the script in it, as the kind of use asks for it: made
// when the recording is loaded for the recorded kind, and for another, which is rare, once.
func (en *entry) injected(plan *inject.Plan) *body {
	v := &en.variants[plan.Kind()]
	v.once.Do(func() {
		if v.body, v.decoded, _ = injectBody(plan, en.body); v.body != nil { // what cannot be decoded is served as recorded
			v.body.prepare(en)
		}
	})
	if v.body == nil {
		return en.body
	}
	return v.body
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
	return shifter{recorded: en.Wall, delta: now.Sub(en.Wall), steady: s.steady(en)}
}

// steady is the time from the recording that an exchange belongs to until the session.
func (s *Session) steady(en *entry) time.Duration {
	if en.filled {
		return s.o.Wall.Sub(s.o.Fill.wall)
	}
	return s.o.Wall.Sub(s.p.archive.Options().Wall)
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
