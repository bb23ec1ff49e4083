package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// codingOf is the content coding of a body that has one, else "".
func codingOf(m *lab.Message) string {
	if len(m.Body) == 0 {
		return ""
	}
	return inject.ContentCoding(m.Header)
}

// Decoded returns a body without its content coding.
func Decoded(m *lab.Message) ([]byte, error) { return decodeWithin(m, 1<<30) }

// decodeWithin decodes a body to at most n bytes. It is decoded twice, so that memory is taken once
// and for its own size alone.
func decodeWithin(m *lab.Message, n int64) ([]byte, error) {
	if codingOf(m) == "" {
		return m.Body, nil
	}
	size, err := decodeTo(io.Discard, m, n)
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	if _, err := decodeTo(b, m, size); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// decodeTo writes the decoded body, of at most n bytes and no more than its ratio allows, to w.
func decodeTo(w io.Writer, m *lab.Message, n int64) (size int64, err error) {
	r, err := decoder(m, n)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	size, err = io.Copy(w, r)
	if err != nil {
		return size, fmt.Errorf("decode %s: %w", codingOf(m), err)
	}
	return size, nil
}

// decoder reads a body without its content coding. Reading fails beyond n bytes, and beyond the ratio
// of real bodies.
func decoder(m *lab.Message, n int64) (io.ReadCloser, error) {
	coding := codingOf(m)
	r, err := inject.NewDecoder(coding, bytes.NewReader(m.Body))
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", coding, err)
	}
	if coding == "" {
		return r, nil
	}
	most := inject.MaxDecoded(int64(len(m.Body)))
	if n < most {
		return closing{&boundedReader{r: r, left: n, most: n}, r}, nil
	}
	return closing{&boundedReader{r: r, left: most, err: inject.ErrExpands}, r}, nil
}

// closing is a reader with the Close of another.
type closing struct {
	io.Reader
	io.Closer
}

// boundedReader is a reader of what must not be longer than most bytes.
type boundedReader struct {
	r          io.Reader
	left, most int64
	err        error // nil says the number
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		if b.err == nil {
			b.err = fmt.Errorf("more than %d bytes: %w", b.most, errLimit)
		}
		return 0, b.err
	}
	return n, err
}

// DecodeLimit bounds what all bodies of an archive may decode to together, for whoever decodes them
// one after another: that each is within its own bound says nothing of ten thousand of them.
type DecodeLimit struct{ left int64 }

// NewDecodeLimit is the limit for the bodies of a.
func NewDecodeLimit(a *Archive) *DecodeLimit {
	return &DecodeLimit{left: 128<<20 + 64*a.info.BodyBytes}
}

// check returns why a body cannot be decoded, or may not be any more.
func (l *DecodeLimit) check(m *lab.Message) error {
	if codingOf(m) == "" {
		return nil
	}
	if l.left < 0 {
		return l.Take(0)
	}
	n, err := decodeTo(io.Discard, m, 1<<30)
	return errors.Join(err, l.Take(n))
}

// Take counts n bytes. A nil limit is none.
func (l *DecodeLimit) Take(n int64) error {
	if l == nil {
		return nil
	}
	if l.left -= n; l.left < 0 {
		return errors.New("the bodies of the archive together decode to far more than those of real pages (64 MiB and 64 times their size)")
	}
	return nil
}
