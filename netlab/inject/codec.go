package inject

import (
	"bufio"
	"bytes"
	stdflate "compress/flate"
	stdgzip "compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"eidetic/internal/lab"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// ErrExpands marks a body that decodes to too much.
var ErrExpands = errors.New("the body decodes to far more than real ones do (16 MiB and 64 times its size, at most 256 MiB)")

// MaxDecoded is how many bytes a body of so many coded bytes may decode to. Text compresses to a
// tenth; in some codings, a few bytes can stand for gigabytes.
func MaxDecoded(coded int64) int64 { return min(256<<20, 16<<20+64*coded) }

// maxCodings bounds how many content codings one body may have been given.
const maxCodings = 4

// isMixed tells a response with several codings, one of which browsers read in different ways: Chromium leaves such a
// body as it is, Firefox undoes the codings that it knows (tried in 2026).
func isMixed(header []lab.HeaderField) bool {
	several, odd := 0, false
	for _, f := range header {
		if !strings.EqualFold(f.Name, "Content-Encoding") {
			continue
		}
		for one := range strings.SplitSeq(f.Value, ",") {
			names := codings(one)
			several, odd = several+1, odd || len(names) == 0 || !isKnown(names[0])
		}
	}
	return several > 1 && odd
}

// ContentCoding returns the content codings of a response that browsers undo, in the order in which they were applied:
// "", "gzip", "gzip, br". Names are in lower case, and identity, which changes nothing, is left out. With a name that
// browsers do not know ("utf-8", "none") they take the body as it is.
func ContentCoding(header []lab.HeaderField) string {
	var list []string
	for _, f := range header {
		if strings.EqualFold(f.Name, "Content-Encoding") {
			list = append(list, codings(f.Value)...)
		}
	}
	if slices.ContainsFunc(list, func(one string) bool { return !isKnown(one) }) {
		return ""
	}
	return strings.Join(list, ", ")
}

// IsDictionary tells the content codings that say what differs from another answer, which the browser has (RFC 9842).
func IsDictionary(coding string) bool { return coding == "dcb" || coding == "dcz" }

// hasDictionary tells a response whose body is of no use without another one.
func hasDictionary(header []lab.HeaderField) bool {
	return slices.ContainsFunc(header, func(f lab.HeaderField) bool {
		return strings.EqualFold(f.Name, "Content-Encoding") && slices.ContainsFunc(codings(f.Value), IsDictionary)
	})
}

// codings lists the codings of a field.
func codings(field string) (list []string) {
	for name := range strings.SplitSeq(field, ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "", "identity":
		case "x-gzip":
			list = append(list, "gzip")
		default:
			list = append(list, name)
		}
	}
	return list
}

// NewDecoder returns a reader of what r holds in content codings, in the order in which they were
// applied, such as "gzip" or "gzip, br": gzip, br, zstd, deflate (zlib or, as some servers send it, raw).
func NewDecoder(coding string, r io.Reader) (io.ReadCloser, error) {
	return chainOf(coding, r, newDecoder)
}

// NewServerDecoder reads as servers do what a script has coded: all members of gzip, and with an error what is cut off.
func NewServerDecoder(coding string, r io.Reader) (io.ReadCloser, error) {
	return chainOf(coding, r, func(one string, r io.Reader) (io.ReadCloser, error) { return newStrictDecoder(one, r, true) })
}

func chainOf(coding string, r io.Reader, decode func(string, io.Reader) (io.ReadCloser, error)) (io.ReadCloser, error) {
	list := codings(coding)
	if len(list) > maxCodings {
		return nil, fmt.Errorf("%d content codings, one on the other; at most %d", len(list), maxCodings)
	}
	d := &decoder{Reader: r}
	for i := len(list) - 1; i >= 0; i-- {
		next, err := decode(list[i], d.Reader)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.Reader, d.open = next, append(d.open, next)
	}
	return d, nil
}

// decoder undoes content codings, the last one first.
type decoder struct {
	io.Reader
	open []io.Closer // in the order of the reading
}

// Close closes all decoders; the reader that they read from stays open.
func (d *decoder) Close() error {
	var errs []error
	for i := len(d.open) - 1; i >= 0; i-- {
		errs = append(errs, d.open[i].Close())
	}
	d.open = nil
	return errors.Join(errs...)
}

// newDecoder undoes one coding as browsers do (tried in Chromium and Firefox, 2026): a body that ends too early is what
// there is of it, of gzip the first member counts, without its checksum, and what follows an end is no part of the
// body.
func newDecoder(coding string, r io.Reader) (io.ReadCloser, error) {
	d, err := newStrictDecoder(coding, r, false)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return io.NopCloser(strings.NewReader("")), nil
	}
	if err != nil {
		return nil, err
	}
	return lenientDecoder{d}, nil
}

// excessive is what the decoder of br says of bytes behind the end; it has no name for that error.
const excessive = "brotli: excessive input"

// lenientDecoder ends where a decoder says that the body has ended too early.
type lenientDecoder struct{ io.ReadCloser }

// Read implements io.Reader.
func (d lenientDecoder) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if err != nil && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || err.Error() == excessive) {
		err = io.EOF
	}
	return n, err
}

// newStrictDecoder undoes deflate with the standard library: of a body that is cut off it gives what zlib gives, but
// for a symbol, of which klauspost's decoder keeps back up to 258 bytes.
func newStrictDecoder(coding string, r io.Reader, members bool) (io.ReadCloser, error) {
	switch coding {
	case "gzip":
		b := bufio.NewReader(r)
		if head, _ := b.Peek(2); !strings.HasPrefix("\x1f\x8b", string(head)) {
			return nil, gzip.ErrHeader
		}
		z, err := stdgzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		z.Multistream(members)
		return z, nil
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
			return zlib.NewReader(b)
		}
		return stdflate.NewReader(b), nil
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

// newEncoder applies content codings in their order.
func newEncoder(coding string, w io.Writer) (flusher, error) {
	list := codings(coding)
	chain := make(encoder, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		e, err := newOneEncoder(list[i], w)
		if err != nil {
			return nil, err
		}
		chain[i], w = e, e
	}
	switch len(chain) {
	case 0:
		return plainWriter{w}, nil
	case 1:
		return chain[0], nil
	}
	return chain, nil
}

// encoder is a chain of compressors, each of which writes to the next.
type encoder []flusher

func (e encoder) Write(b []byte) (int, error) { return e[0].Write(b) }

func (e encoder) Flush() error {
	for _, one := range e {
		if err := one.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (e encoder) Close() error {
	var errs []error
	for _, one := range e {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// newOneEncoder compresses at the levels that servers commonly use, so that
// sizes on the link stay near the recorded ones.
func newOneEncoder(coding string, w io.Writer) (flusher, error) {
	switch coding {
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
	isOver  bool // no more comes
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
		if p.isOver { // a decoder may ask again
			return 0, io.EOF
		}
		p.starved <- struct{}{}
		next, ok := <-p.input
		if !ok {
			p.isOver = true
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
