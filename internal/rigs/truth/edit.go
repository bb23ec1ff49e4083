package truth

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/netlab/archive"
)

// place is a point at which a script is made to work.
type place struct{ url, before, work, after string }

// samplePlaces returns two points of the sample page, neither of which overlaps with waiting for the network.
// The document's first script blocks the parser behind the style sheets, so it delays
// the first picture of the page by the time that it works. The hero's
// script shows the largest and last picture, which has arrived before. Changes in between,
// which are pictures shown on arrival, are not delayed.
func samplePlaces(page string) []place {
	return []place{
		{page, "window.shop = {", "%s\n", "window.shop = {"},
		{strings.TrimSuffix(page, "/") + "/js/app.js", "const show = () => hero.classList.add('shown');",
			"const show = () => { %s hero.classList.add('shown'); };", ""},
	}
}

// headPlaces is the begin of another page, of which nothing is shown or asked for before.
func headPlaces(page string) []place {
	return []place{{page, "<head>", "<head><script>%s</script>", ""}}
}

// WithDelay returns a copy of a recording of a page in which scripts keep the main thread busy for ms milliseconds
// each: one before the first picture, and in the sample page the one that shows the last. Copies for different delays,
// including 0, have decoded bodies of equal length, in equal pieces at equal times.
func WithDelay(a *archive.Archive, page string, ms int) (*archive.Archive, error) {
	if ms < 0 || ms > 99 {
		return nil, fmt.Errorf("a delay of %d ms: want 0 to 99", ms)
	}
	work := fmt.Sprintf("{ const t = performance.now(); while (performance.now() - t < %2d); }", ms)
	list := append([]*lab.Exchange(nil), a.Exchanges()...)
	places := headPlaces(page)
	if page == samplesite.Home {
		places = samplePlaces(page)
	}
	for _, p := range places {
		found := false
		for i, e := range list {
			if e.Method != "GET" || e.URL != p.url || found {
				continue
			}
			edited, err := rewrite(e, p.before, fmt.Sprintf(p.work, work)+p.after)
			if err != nil {
				return nil, fmt.Errorf("putting a delay into %s: %w", e.URL, err)
			}
			list[i], found = edited, true
		}
		if !found {
			return nil, fmt.Errorf("putting a delay into %s: the recording has no such answer", p.url)
		}
	}
	return a.With(list), nil
}

// rewrite replaces the only occurrence of old in a body. The body keeps its
// content coding, and its pieces their times.
func rewrite(e *lab.Exchange, old, now string) (*lab.Exchange, error) {
	coding := e.Response.Get("Content-Encoding")
	text, ends, err := pieces(e, coding)
	if err != nil {
		return nil, err
	}
	at := bytes.Index(text, []byte(old))
	if at < 0 || bytes.Count(text, []byte(old)) > 1 {
		return nil, fmt.Errorf("%q does not occur exactly once: is this another page?", old)
	}
	text = bytes.Join([][]byte{text[:at], text[at+len(old):]}, []byte(now))
	for i, end := range ends {
		if end > at {
			ends[i] += len(now) - len(old)
		}
	}
	var body bytes.Buffer
	w, err := encoder(&body, coding)
	if err != nil {
		return nil, err
	}
	out := *e
	out.Chunks = append([]lab.Chunk(nil), e.Chunks...)
	from, coded := 0, 0
	for i, end := range ends {
		if _, err := w.Write(text[from:end]); err != nil {
			return nil, err
		}
		flush := w.Flush
		if i == len(ends)-1 {
			flush = w.Close
		}
		if err := flush(); err != nil {
			return nil, err
		}
		out.Chunks[i].Bytes = body.Len() - coded
		from, coded = end, body.Len()
	}
	out.Response.Body = body.Bytes()
	out.Response.Header = append([]lab.HeaderField(nil), e.Response.Header...)
	for i, f := range out.Response.Header {
		if strings.EqualFold(f.Name, "Content-Length") {
			out.Response.Header[i].Value = strconv.Itoa(body.Len())
		}
	}
	return &out, nil
}

// pieces decodes a body, and returns the offset in the text at which each piece ends.
func pieces(e *lab.Exchange, coding string) (text []byte, ends []int, err error) {
	if len(e.Chunks) == 0 {
		return nil, nil, errors.New("the answer has no body")
	}
	coded := 0
	for i, c := range e.Chunks {
		coded += c.Bytes
		text, err = decode(e.Response.Body[:coded], coding)
		if last := i == len(e.Chunks)-1; err != nil && (last || !errors.Is(err, io.ErrUnexpectedEOF)) {
			return nil, nil, err
		}
		ends = append(ends, len(text))
	}
	return text, ends, nil
}

// decode decodes a body; if the body is truncated, it returns the decoded part and io.ErrUnexpectedEOF.
func decode(body []byte, coding string) ([]byte, error) {
	var r io.Reader = bytes.NewReader(body)
	switch coding {
	case "", "identity":
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		z, err := zstd.NewReader(r)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	default:
		return nil, fmt.Errorf("unknown content coding %q", coding)
	}
	return io.ReadAll(r)
}

// flusher is a content coding that can be flushed in the middle of a body.
type flusher interface {
	io.WriteCloser
	Flush() error
}

type plain struct{ io.Writer }

func (plain) Flush() error { return nil }
func (plain) Close() error { return nil }

func encoder(w io.Writer, coding string) (flusher, error) {
	switch coding {
	case "br":
		return brotli.NewWriterLevel(w, 5), nil
	case "zstd":
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	case "gzip":
		return gzip.NewWriter(w), nil
	}
	return plain{w}, nil
}
