package inject

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	kzlib "github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// ErrExpands marks a body that decodes to too much.
var ErrExpands = errors.New("the body decodes to far more than real ones do (16 MiB and 64 times its size, at most 256 MiB)")

// MaxDecoded is how many bytes a body of so many coded bytes may decode to. Text compresses to a
// tenth; in some codings, a few bytes can stand for gigabytes.
func MaxDecoded(coded int64) int64 { return min(256<<20, 16<<20+64*coded) }

// NewDecoder returns a reader of what r holds in a content coding: "",
// "gzip", "br", "zstd" or "deflate" (zlib or, as some servers send it, raw).
func NewDecoder(coding string, r io.Reader) (io.ReadCloser, error) {
	switch coding {
	case "", "identity":
		return io.NopCloser(r), nil
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "br":
		return io.NopCloser(brotli.NewReader(r)), nil
	case "zstd":
		// RFC 9659: a window of at most 8 MiB in HTTP; allow what decoders commonly do.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(32<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case "deflate":
		b := bufio.NewReader(r)
		head, err := b.Peek(2)
		if err != nil {
			return nil, err
		}
		if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
			return kzlib.NewReader(b)
		}
		return flate.NewReader(b), nil
	}
	return nil, fmt.Errorf("content coding %q is not known", coding)
}

// flusher is a compressor that can make everything that it was given readable.
type flusher interface {
	io.WriteCloser
	Flush() error
}

type plainWriter struct{ io.Writer }

func (plainWriter) Flush() error { return nil }
func (plainWriter) Close() error { return nil }

// newEncoder compresses at the levels that servers commonly use, so that
// sizes on the link stay near the recorded ones.
func newEncoder(coding string, w io.Writer) (flusher, error) {
	switch coding {
	case "":
		return plainWriter{w}, nil
	case "gzip":
		return gzip.NewWriterLevel(w, 6)
	case "br":
		return brotli.NewWriterLevel(w, 5), nil
	case "zstd":
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(1<<20))
	case "deflate":
		return zlib.NewWriterLevel(w, 6)
	}
	return nil, fmt.Errorf("content coding %q is not known", coding)
}

// pusher turns a decoder, which pulls its input, into one that is fed: feed returns when the
// decoder has used its input and asks for more.
type pusher struct {
	input   chan []byte
	starved chan struct{}
	ended   chan struct{}

	// Owned by the decoder's goroutine between input and starved.
	current []byte
	out     bytes.Buffer
	fed     int64 // bytes so far
	total   int64 // bytes that they decoded to
	err     error
}

func newPusher(coding string) *pusher {
	p := &pusher{input: make(chan []byte), starved: make(chan struct{}), ended: make(chan struct{})}
	go p.run(coding)
	p.wait()
	return p
}

func (p *pusher) run(coding string) {
	defer close(p.ended)
	r, err := NewDecoder(coding, p)
	if err != nil {
		p.err = err
		return
	}
	defer r.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		p.out.Write(buf[:n])
		if p.total += int64(n); p.total > MaxDecoded(p.fed) {
			p.err = ErrExpands
			return
		}
		if err != nil {
			if err != io.EOF {
				p.err = err
			}
			return
		}
	}
}

// Read gives the decoder what was fed.
func (p *pusher) Read(b []byte) (int, error) {
	for len(p.current) == 0 {
		p.starved <- struct{}{}
		next, ok := <-p.input
		if !ok {
			return 0, io.EOF
		}
		p.current = next
	}
	n := copy(b, p.current)
	p.current = p.current[n:]
	return n, nil
}

func (p *pusher) wait() (over bool) {
	select {
	case <-p.starved:
		return false
	case <-p.ended:
		return true
	}
}

// feed decodes b and returns what came out, valid until the next call.
func (p *pusher) feed(b []byte) ([]byte, error) {
	p.out.Reset()
	p.fed += int64(len(b))
	select {
	case <-p.ended: // bytes after the end are no part of the body
		return nil, p.err
	case p.input <- b:
	}
	if p.wait() {
		return p.out.Bytes(), p.err
	}
	return p.out.Bytes(), nil
}

// finish says that no more comes and returns the rest. It must be called once.
func (p *pusher) finish() ([]byte, error) {
	p.out.Reset()
	close(p.input)
	<-p.ended
	return p.out.Bytes(), p.err
}
