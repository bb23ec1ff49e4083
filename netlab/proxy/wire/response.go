package wire

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/hop"
	"eidetic/netlab/message"
)

// response is the http.ResponseWriter of a request.
type response struct {
	p      protocol
	header http.Header
	head   bool // the request's method is HEAD
	// framed says that the protocol tells the end of a body by itself. The stated length may be another, as browsers
	// take it.
	framed  bool
	open    bool // the stated length may be wrong
	status  int
	fields  []lab.HeaderField // what WriteHeader was called with, until it is sent
	sent    bool
	plain   bool // no body may follow
	length  int64
	written int64
	trailer []string // names that a Trailer field announced
	failed  error
}

var ( // handlers find these by a type assertion alone
	_ hop.FieldWriter = (*response)(nil)
	_ hop.OpenEnded   = (*response)(nil)
)

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter. It adds Date as net/http does; the other fields
// follow when the body begins or is known to be empty.
func (w *response) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	fields := w.list()
	if informational(status) {
		w.failed = w.p.head(status, "", fields, -1, true)
		return
	}
	w.status = status
	if _, ok := w.header["Date"]; !ok {
		fields = append(fields, lab.HeaderField{Name: "Date", Value: time.Now().UTC().Format(http.TimeFormat)})
	}
	w.fields = fields
}

// list returns the fields of Header() by their names.
func (w *response) list() []lab.HeaderField {
	var out []lab.HeaderField
	for _, name := range slices.Sorted(maps.Keys(w.header)) {
		if strings.HasPrefix(name, http.TrailerPrefix) || name == "Transfer-Encoding" {
			continue
		}
		for _, v := range w.header[name] {
			out = append(out, lab.HeaderField{Name: name, Value: v})
		}
	}
	return out
}

// WriteFields implements hop.FieldWriter.
func (w *response) WriteFields(status int, reason string, fields []lab.HeaderField) {
	if w.status != 0 {
		return
	}
	if informational(status) {
		w.failed = w.p.head(status, reason, fields, -1, true)
		return
	}
	w.status = status
	w.send(reason, fields)
}

// LeaveOpen implements hop.OpenEnded.
func (w *response) LeaveOpen() { w.open = w.framed }

func informational(status int) bool { return status >= 100 && status < 200 && status != 101 }

// send starts the answer.
func (w *response) send(reason string, fields []lab.HeaderField) {
	w.sent, w.length, w.fields = true, -1, nil
	for _, f := range fields {
		if len(f.Name) == len("Content-Length") && strings.EqualFold(f.Name, "Content-Length") {
			w.length, _ = message.Length([]string{f.Value}) // of two lengths, neither
		}
		if len(f.Name) == len("Trailer") && strings.EqualFold(f.Name, "Trailer") {
			for name := range strings.SplitSeq(f.Value, ",") {
				w.trailer = append(w.trailer, http.CanonicalHeaderKey(strings.TrimSpace(name)))
			}
		}
	}
	w.plain = w.head || w.status < 200 || w.status == http.StatusNoContent || w.status == http.StatusNotModified
	w.failed = w.p.head(w.status, reason, fields, w.length, w.plain)
}

// begin starts an answer after WriteHeader; first is the start of its body.
func (w *response) begin(first []byte) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.sent {
		return
	}
	if _, ok := w.header["Content-Type"]; !ok && len(first) > 0 && w.header.Get("Content-Encoding") == "" {
		w.fields = append(w.fields, lab.HeaderField{Name: "Content-Type", Value: http.DetectContentType(first)})
	}
	w.send("", w.fields)
}

// Write implements http.ResponseWriter.
func (w *response) Write(b []byte) (int, error) {
	w.begin(b)
	switch {
	case w.failed != nil:
		return 0, w.failed
	case w.head:
		return len(b), nil
	case w.plain:
		return 0, http.ErrBodyNotAllowed
	case !w.framed && w.length >= 0 && w.written+int64(len(b)) > w.length:
		return 0, http.ErrContentLength
	case len(b) == 0:
		return 0, nil
	}
	w.written += int64(len(b))
	if w.failed = w.p.data(b, w.written == w.length && !w.open && !w.trails()); w.failed != nil {
		return 0, w.failed
	}
	return len(b), nil
}

// trails tells whether trailers were announced, or set already.
func (w *response) trails() bool {
	if len(w.trailer) > 0 {
		return true
	}
	for name := range w.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// FlushError is what http.ResponseController calls.
func (w *response) FlushError() error {
	w.begin(nil)
	if w.failed == nil {
		w.failed = w.p.flush()
	}
	return w.failed
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// Hijack implements http.Hijacker.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.p.hijack() }

// end ends the answer and tells whether it is complete.
func (w *response) end() bool {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.sent {
		hasBody := w.status >= 200 && w.status != http.StatusNoContent && w.status != http.StatusNotModified && !w.head
		if hasBody && w.header.Get("Content-Length") == "" {
			w.fields = append(w.fields, lab.HeaderField{Name: "Content-Length", Value: "0"})
		}
		w.send("", w.fields)
	}
	if w.failed != nil || !w.framed && !w.plain && w.length >= 0 && w.written < w.length {
		return false
	}
	var trailer []lab.HeaderField
	for name, values := range w.header {
		bare, ok := strings.CutPrefix(name, http.TrailerPrefix)
		if name = bare; ok || slices.Contains(w.trailer, name) {
			for _, v := range values {
				trailer = append(trailer, lab.HeaderField{Name: name, Value: v})
			}
		}
	}
	if len(trailer) > 1 {
		slices.SortStableFunc(trailer, func(a, b lab.HeaderField) int { return strings.Compare(a.Name, b.Name) })
	}
	return w.p.finish(trailer) == nil
}
