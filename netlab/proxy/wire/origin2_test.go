package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// origin2 answers the first request on a connection with a header of frames, and a body.
func origin2(t *testing.T, write func(f *http2.Framer, id uint32)) *http.Transport {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve2(c, write)
		}
	}()
	tr := &http.Transport{MaxResponseHeaderBytes: 4 << 20, DisableCompression: true, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		return NewConn2(c), nil
	}}
	tr.Protocols = new(http.Protocols)
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = l.Close()
		<-done
	})
	return tr
}

func serve2(c net.Conn, write func(f *http2.Framer, id uint32)) {
	defer c.Close()
	if _, err := io.CopyN(io.Discard, c, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	_ = f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			write(f, frame.StreamID)
		}
	}
}

func blockOf(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return b.Bytes()
}

// What browsers read over HTTP/2 is read, and known as it was received.
func TestOriginsOverHTTP2(t *testing.T) {
	const body = "0123456789"
	head := func(f *http2.Framer, id uint32, pairs ...string) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: blockOf(append([]string{":status", "200"}, pairs...)...), EndHeaders: true})
	}
	data := func(f *http2.Framer, id uint32, pieces ...string) {
		for i, p := range pieces {
			_ = f.WriteData(id, i == len(pieces)-1, []byte(p))
		}
	}
	long := strings.Repeat("long ", 20<<10)
	for _, c := range []struct {
		name   string
		write  func(f *http2.Framer, id uint32)
		fields string
		length int64
	}{
		{"true length", func(f *http2.Framer, id uint32) { head(f, id, "content-length", "10"); data(f, id, body) }, "content-length: 10", 10},
		{"short length", func(f *http2.Framer, id uint32) { head(f, id, "content-length", "3"); data(f, id, body[:4], body[4:]) }, "content-length: 3", 3},
		{"long length", func(f *http2.Framer, id uint32) { head(f, id, "content-length", "300"); data(f, id, body) }, "content-length: 300", 300},
		{"two lengths", func(f *http2.Framer, id uint32) {
			head(f, id, "content-length", "3", "content-length", "4")
			data(f, id, body)
		}, "content-length: 3\ncontent-length: 4", -1},
		{"order", func(f *http2.Framer, id uint32) { head(f, id, "z", "1", "a", "2", "z", "3"); data(f, id, body) }, "z: 1\na: 2\nz: 3", -1},
		{"a control character", func(f *http2.Framer, id uint32) { head(f, id, "set-cookie", "a=b\x01c"); data(f, id, body) }, "set-cookie: a=b\x01c", -1},
		{"our own field", func(f *http2.Framer, id uint32) { head(f, id, receivedField, "!"); data(f, id, body) }, receivedField + ": !", -1},
		{"an end by a reset without an error", func(f *http2.Framer, id uint32) {
			head(f, id, "a", "1")
			_ = f.WriteData(id, false, []byte(body))
			_ = f.WriteRSTStream(id, http2.ErrCodeNo)
		}, "a: 1", -1},
		{"a reset without an error behind the end", func(f *http2.Framer, id uint32) {
			head(f, id, "a", "1")
			data(f, id, body)
			_ = f.WriteRSTStream(id, http2.ErrCodeNo)
		}, "a: 1", -1},
		{"padding, priority, continuations", func(f *http2.Framer, id uint32) {
			block := blockOf(":status", "200", "long", long, "last", "1")
			_ = f.WriteHeaders(http2.HeadersFrameParam{
				StreamID: id, BlockFragment: block[:7], PadLength: 9, Priority: http2.PriorityParam{StreamDep: 1 << 20, Weight: 3},
			})
			_ = f.WriteContinuation(id, false, block[7:9000])
			_ = f.WriteContinuation(id, false, nil)
			for block = block[9000:]; len(block) > 16000; block = block[16000:] {
				_ = f.WriteContinuation(id, false, block[:16000])
			}
			_ = f.WriteContinuation(id, true, block)
			data(f, id, body[:5], "", body[5:])
		}, "long: " + long + "\nlast: 1", -1},
		{"early hints and a trailer", func(f *http2.Framer, id uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: blockOf(":status", "103", "link", "</a>"), EndHeaders: true})
			head(f, id, "trailer", "sum")
			_ = f.WriteData(id, false, []byte(body))
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: blockOf("sum", "1"), EndHeaders: true, EndStream: true})
		}, "trailer: sum", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, err := origin2(t, c.write).RoundTrip(request2(t))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, ok := Received(resp)
			if want := fields(c.fields); !ok || !cmp.Equal(got, want) || resp.ContentLength != c.length {
				t.Errorf("received %.300v, %v, length %d; want %.300v, length %d", got, ok, resp.ContentLength, want, c.length)
			}
			if b, err := io.ReadAll(resp.Body); string(b) != body || err != nil {
				t.Errorf("body %q, %v; want %q", b, err, body)
			}
			if v, has := resp.Header[http.CanonicalHeaderKey(receivedField)]; has {
				t.Errorf("the header has %q of our own", v)
			}
			if c.name == "early hints and a trailer" && resp.Trailer.Get("Sum") != "1" {
				t.Errorf("trailer %v, want sum: 1", resp.Trailer)
			}
		})
	}
}

// What Chromium refuses over HTTP/2 fails, with a reason: an answer with these is none, and one that is reset is cut off.
func TestRefusedOverHTTP2(t *testing.T) {
	for want, pairs := range map[string][]string{
		`"transfer-encoding"`: {"transfer-encoding", "chunked"}, `"a"`: {"a", "1\n2"}, `"b"`: {"b", "1\r2"}, `"c"`: {"c", "1\x002"},
	} {
		write := func(f *http2.Framer, id uint32) {
			block := blockOf(append([]string{":status", "200"}, pairs...)...)
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: true})
		}
		resp, err := origin2(t, write).RoundTrip(request2(t))
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want an error that names the field", pairs, err)
		}
	}
	resp, err := origin2(t, func(f *http2.Framer, id uint32) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: blockOf(":status", "200"), EndHeaders: true})
		_ = f.WriteRSTStream(id, http2.ErrCodeCancel)
	}).RoundTrip(request2(t))
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	if err == nil {
		t.Error("an answer that is cancelled counts as whole; want an error")
	}
}

func request2(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://wire.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A head that is too large fails its own request, whatever a few bytes of it expand to.
func TestLargeHeadsOverHTTP2(t *testing.T) {
	tr := origin2(t, func(f *http2.Framer, id uint32) {
		var b bytes.Buffer
		e := hpack.NewEncoder(&b)
		_ = e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
		if id == 1 {
			_ = e.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("v", 4000)})
			first := b.Len()
			_ = e.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("v", 4000)}) // one byte
			b.Write(bytes.Repeat(b.Bytes()[first:], 10_000))
		}
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b.Bytes(), EndHeaders: true, EndStream: true})
	})
	if resp, err := tr.RoundTrip(request2(t)); err == nil {
		resp.Body.Close()
		t.Errorf("a head of 40 MB: status %d, want an error", resp.StatusCode)
	}
	resp, err := tr.RoundTrip(request2(t))
	if err != nil {
		t.Fatalf("the next request: %v", err)
	}
	resp.Body.Close()
	if got, ok := Received(resp); !ok || len(got) != 0 {
		t.Errorf("the next answer has %v, %v; want no fields", got, ok)
	}
}

func FuzzConn2(f *testing.F) {
	var b bytes.Buffer
	w := http2.NewFramer(&b, nil)
	_ = w.WriteSettings()
	_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: blockOf(":status", "200", "content-length", "5"), PadLength: 3})
	_ = w.WriteContinuation(1, true, blockOf("a", "b"))
	_ = w.WriteData(1, true, []byte("hello"))
	f.Add(b.Bytes())
	f.Add([]byte("\x00\x00\x01\x01\x0c\x00\x00\x00\x01\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer testlab.Input(t)()
		out, _ := io.ReadAll(newConn2From(bytes.NewReader(in)))
		r := http2.NewFramer(io.Discard, bytes.NewReader(out))
		r.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		r.SetMaxReadFrameSize(1 << 24)
		for {
			frame, err := r.ReadFrame()
			if err != nil {
				return
			}
			head, ok := frame.(*http2.MetaHeadersFrame)
			if !ok {
				continue
			}
			resp := &http.Response{Header: http.Header{}}
			for _, h := range head.RegularFields() {
				resp.Header.Add(h.Name, h.Value)
			}
			before := fmt.Sprint(resp.Header)
			if got, ok := Received(resp); ok && len(got) < len(head.RegularFields())-1 {
				t.Errorf("of %s, %v was received", before, got)
			}
		}
	})
}

// A body of another length than stated is sent over HTTP/2, which ends it by itself, and not over HTTP/1.1.
func TestAnotherLength(t *testing.T) {
	for _, length := range []string{"3", "30"} {
		for _, framed := range []bool{true, false} {
			var p noted
			w := &response{p: &p, framed: framed}
			w.WriteFields(200, "", []lab.HeaderField{{Name: "Content-Length", Value: length}})
			w.LeaveOpen()
			_, err := w.Write([]byte("ten bytes!"))
			if whole := w.end() && err == nil; whole != framed || framed && (string(p.body) != "ten bytes!" || p.last) {
				t.Errorf("stated %s of 10, framed %v: whole %v, sent %q, ended early %v", length, framed, whole, p.body, p.last)
			}
		}
	}
}

// noted is a protocol that notes what is sent.
type noted struct {
	protocol
	body []byte
	last bool
}

func (n *noted) head(int, string, []lab.HeaderField, int64, bool) error { return nil }

func (n *noted) finish([]lab.HeaderField) error { return nil }

func (n *noted) data(b []byte, last bool) error {
	n.body, n.last = append(n.body, b...), n.last || last
	return nil
}
