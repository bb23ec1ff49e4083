package wire

import (
	"bytes"
	"context"
	"io"
	"strings"

	"eidetic/internal/lab"
)

// heard remembers the first bytes of each request as they came, so that its
// header can be told in its own order and case.
type heard struct {
	r    io.Reader
	seen []byte
}

// maxHeard bounds it: longer headers are told by name.
const maxHeard = 32 << 10

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.seen = append(h.seen, p[:min(n, max(0, maxHeard-len(h.seen)))]...)
	return n, err
}

// forget is called between requests; buffered is what came of the next one.
func (h *heard) forget(buffered []byte) {
	if cap(h.seen) > 8<<10 {
		h.seen = nil // after an upload
	}
	h.seen = append(h.seen[:0], buffered...)
}

type headKey struct{}

// HeadOf returns the fields of an HTTP/1.1 request in the order and case in
// which they came. ok is false on other protocols and for a head that is too
// long. It is to be called by the request's handler, before it reads the body.
func HeadOf(ctx context.Context) (fields []lab.HeaderField, ok bool) {
	h, _ := ctx.Value(headKey{}).(*heard)
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
