package wire

import (
	"bytes"
	"io"
	"strings"

	"eidetic/internal/lab"
	"eidetic/netlab/hop"
)

// heard remembers the first bytes of each request as they came, so that the fields of
// its header can be returned in their own order and case.
type heard struct {
	r    io.Reader
	seen []byte
}

var _ hop.FieldSource = (*heard)(nil) // package hop finds it by its context key alone

// maxHeard bounds what is remembered: of longer headers only net/http's form is known.
const maxHeard = 32 << 10

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.seen = append(h.seen, p[:min(n, max(0, maxHeard-len(h.seen)))]...)
	return n, err
}

// forget is called between requests; buffered is what was already read of the next one.
func (h *heard) forget(buffered []byte) {
	if cap(h.seen) > 8<<10 {
		h.seen = nil // after an upload
	}
	h.seen = append(h.seen[:0], buffered...)
}

// Fields implements hop.FieldSource: the fields of an HTTP/1.1 request in the
// order and case in which they came. ok is false on HTTP/2, where h is nil, and
// for a header that is too long.
func (h *heard) Fields() (fields []lab.HeaderField, ok bool) {
	if h == nil {
		return nil, false
	}
	head := bytes.TrimLeft(h.seen, "\r\n")
	end := bytes.Index(head, []byte("\r\n\r\n"))
	if end < 0 {
		return nil, false
	}
	start, fields, ok := parseHead(head[:end])
	return fields, ok && strings.Contains(start, " HTTP/1.")
}
