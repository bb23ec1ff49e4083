package samplesite

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// encoder is a content coding that can be flushed in the middle of a body.
type encoder interface {
	io.WriteCloser
	Flush() error
}

// newEncoder returns an encoder that writes to w, or nil for "identity".
func newEncoder(w io.Writer, coding string) (encoder, error) {
	switch coding {
	case "gzip":
		return gzip.NewWriter(w), nil
	case "br":
		return brotli.NewWriterLevel(w, 5), nil
	case "zstd":
		// Browsers accept windows up to 8 MB (RFC 9659); and needs no extra goroutine.
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	case "identity":
		return nil, nil
	}
	return nil, fmt.Errorf("unknown content coding %q", coding)
}

// negotiate chooses the preferred coding if the client accepts it, else the first other one
// that the client accepts, else "identity" (RFC 9110 §12.5.3).
func negotiate(accept, preferred string) string {
	allowed := map[string]bool{}
	for item := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(strings.ToLower(strings.TrimSpace(item)), ";")
		q := 1.0
		if v, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				continue
			}
			q = f
		}
		allowed[strings.TrimSpace(name)] = q > 0
	}
	for _, c := range []string{preferred, "br", "gzip", "zstd"} {
		if ok, named := allowed[c]; ok || (!named && allowed["*"]) {
			return c
		}
	}
	return "identity"
}

// encode returns body in the coding.
func encode(body []byte, coding string) ([]byte, error) {
	var out bytes.Buffer
	e, err := newEncoder(&out, coding)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return body, nil
	}
	if _, err := e.Write(body); err != nil {
		return nil, fmt.Errorf("encode as %s: %w", coding, err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("encode as %s: %w", coding, err)
	}
	return out.Bytes(), nil
}
