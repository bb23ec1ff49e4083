package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"eidetic/internal/rigs/testlab"
)

// peer writes frames by hand.
type peer struct {
	t testing.TB
	*http2.Framer
	nc net.Conn
}

func newPeer(t testing.TB, s *stand, settings ...http2.Setting) *peer {
	nc := s.dial(t)
	p := &peer{t, http2.NewFramer(nc, nc), nc}
	_, _ = io.WriteString(nc, http2.ClientPreface)
	p.must(p.WriteSettings(settings...))
	return p
}

func (p *peer) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) get(id uint32, end bool, fields ...string) {
	p.t.Helper()
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	all := append([]string{":method", "GET", ":scheme", "https", ":authority", "wire.test", ":path", "/"}, fields...)
	for i := 0; i < len(all); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]})
	}
	p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b.Bytes(), EndStream: end, EndHeaders: true}))
}

// until reads frames until one pleases.
func (p *peer) until(pleases func(http2.Frame) bool) error {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return err
		}
		if pleases(f) {
			return nil
		}
	}
}

// TestSmallWindows: a device that takes a byte at a time, or that opens its
// window late, gets all.
func TestSmallWindows(t *testing.T) {
	want := noise(50)
	s := newStand(t, "h2", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(want) })
	p := newPeer(t, s, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	p.get(1, true)
	p.must(p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 7}))
	var got []byte
	err := p.until(func(f http2.Frame) bool {
		d, ok := f.(*http2.DataFrame)
		if !ok {
			return false
		}
		if n := len(d.Data()); n > 7 {
			t.Errorf("a frame of %d bytes, want at most the window of 7", n)
		}
		got = append(got, d.Data()...)
		for range d.Data() {
			p.must(p.WriteWindowUpdate(1, 1))
		}
		return d.StreamEnded()
	})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v; want %d, nil", len(got), err, len(want))
	}
}

// TestBrokenProtocol: each offence ends the stream or the connection with the
// code that RFC 9113 asks for, and the server lives on.
func TestBrokenProtocol(t *testing.T) {
	s := newStand(t, "h2", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	for name, c := range map[string]struct {
		do     func(p *peer)
		stream bool // only that ends
		want   http2.ErrCode
	}{
		"even stream":           {func(p *peer) { p.get(2, true) }, false, http2.ErrCodeProtocol},
		"stream used again":     {func(p *peer) { p.get(3, true); p.get(1, true) }, false, http2.ErrCodeProtocol},
		"data without a stream": {func(p *peer) { p.must(p.WriteData(1, true, nil)) }, false, http2.ErrCodeProtocol},
		"reset of no stream":    {func(p *peer) { p.must(p.WriteRSTStream(1, 0)) }, false, http2.ErrCodeProtocol},
		"window of no stream":   {func(p *peer) { p.must(p.WriteWindowUpdate(1, 1)) }, false, http2.ErrCodeProtocol},
		"connection window":     {func(p *peer) { p.must(p.WriteWindowUpdate(0, 1<<31-1)) }, false, http2.ErrCodeFlowControl},
		"stream window":         {func(p *peer) { p.get(1, false); p.must(p.WriteWindowUpdate(1, 1<<31-1)) }, true, http2.ErrCodeFlowControl},
		"push": {func(p *peer) {
			p.must(p.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true}))
		}, false, http2.ErrCodeProtocol},
		"bad header block": {func(p *peer) {
			p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true}))
		}, false, http2.ErrCodeCompression},
		"connection field":  {func(p *peer) { p.get(1, true, "connection", "close") }, true, http2.ErrCodeProtocol},
		"upper case":        {func(p *peer) { p.get(1, true, "X-Up", "1") }, true, http2.ErrCodeProtocol},
		"length over":       {func(p *peer) { p.get(1, false, "content-length", "1"); p.must(p.WriteData(1, false, []byte("ab"))) }, true, http2.ErrCodeProtocol},
		"length under":      {func(p *peer) { p.get(1, false, "content-length", "2"); p.must(p.WriteData(1, true, []byte("a"))) }, true, http2.ErrCodeProtocol},
		"too large a frame": {func(p *peer) { p.must(p.WriteRawFrame(http2.FramePing, 0, 0, make([]byte, 20_000))) }, false, http2.ErrCodeFrameSize},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, s)
			p.t = t
			c.do(p)
			got, over := http2.ErrCode(0), false
			err := p.until(func(f http2.Frame) bool {
				switch f := f.(type) {
				case *http2.RSTStreamFrame:
					got, over = f.ErrCode, c.stream
				case *http2.GoAwayFrame:
					got, over = f.ErrCode, !c.stream
				}
				return over
			})
			if !over || got != c.want {
				t.Errorf("%v (%v), want %v", got, err, c.want)
			}
		})
	}
	if resp, err := s.client(t).Get("https://wire.test/"); err != nil {
		t.Error(err)
	} else {
		resp.Body.Close()
	}
}

// TestRapidResetIsBounded (CVE-2023-44487): streams reset as soon as they are
// begun do not start handlers without end.
func TestRapidResetIsBounded(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	s := newStand(t, "h2", func(http.ResponseWriter, *http.Request) { <-stop })
	p := newPeer(t, s)
	go func() {
		var b bytes.Buffer
		e := hpack.NewEncoder(&b)
		for i, all := 0, []string{":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/"}; i < len(all); i += 2 {
			_ = e.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1], Sensitive: true})
		}
		block := bytes.Clone(b.Bytes())
		for id := uint32(1); id < 4*maxStreams*2; id += 2 {
			if p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true}) != nil ||
				p.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
				return // the server had enough
			}
		}
	}()
	code := http2.ErrCode(0)
	err := p.until(func(f http2.Frame) bool {
		g, ok := f.(*http2.GoAwayFrame)
		if ok {
			code = g.ErrCode
		}
		return ok
	})
	if code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("the connection ended with %v, %v; want ENHANCE_YOUR_CALM", code, err)
	}
}

func TestPingIsAnswered(t *testing.T) {
	p := newPeer(t, newStand(t, "h2", func(http.ResponseWriter, *http.Request) {}))
	p.must(p.WritePing(false, [8]byte{1, 2, 3}))
	if err := p.until(func(f http2.Frame) bool {
		ping, ok := f.(*http2.PingFrame)
		return ok && ping.IsAck() && ping.Data == [8]byte{1, 2, 3}
	}); err != nil {
		t.Error(err)
	}
}

// TestIdleConnectionsAreSentAway with a GOAWAY.
func TestIdleConnectionsAreSentAway(t *testing.T) {
	s := newStand(t, "h2", func(http.ResponseWriter, *http.Request) {}, func(s *Server) { s.IdleTimeout = time.Second })
	p := newPeer(t, s)
	if err := p.until(func(f http2.Frame) bool { _, ok := f.(*http2.GoAwayFrame); return ok }); err != nil {
		t.Error(err)
	}
	if err := p.until(func(http2.Frame) bool { return false }); !errors.Is(err, io.EOF) {
		t.Errorf("the connection ended with %v, want EOF", err)
	}
}

// fuzzConn feeds bytes to a connection and takes what it says.
func fuzzConn(t *testing.T, data []byte, serve func(connection)) {
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, theirs)
	}()
	go func() {
		_, _ = theirs.Write(data)
		_ = theirs.Close()
	}()
	s := &Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
			w.Header().Set(http.TrailerPrefix+"X", r.URL.Path)
		}),
		MaxHeader: 4 << 10, HeaderTimeout: time.Second, IdleTimeout: time.Second,
		Log: slog.New(slog.DiscardHandler),
	}
	serve(connection{s: s, nc: ours, base: context.Background()})
	_ = ours.Close()
	<-done
}

// TestPaddingIsGivenBack: a body whose frames are mostly padding does not use
// up its stream's window.
func TestPaddingIsGivenBack(t *testing.T) {
	got := make(chan int, 1)
	s := newStand(t, "h2", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- len(b)
	})
	p := newPeer(t, s)
	p.get(1, false)
	room := map[uint32]int{0: 65535, 1: 65535} // what we may send; settings and updates change it
	take := func() bool {
		f, err := p.ReadFrame()
		if err != nil {
			t.Errorf("with the window %v: %v, want a frame", room, err)
			return false
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
				room[1] += int(v) - 65535
			}
		case *http2.WindowUpdateFrame:
			room[f.StreamID] += int(f.Increment)
		}
		return true
	}
	const frames, size = 10_000, 1 + 1 + 255 // in all twice a window
	for i := range frames {
		for room[0] < size || room[1] < size {
			if !take() {
				return
			}
		}
		room[0], room[1] = room[0]-size, room[1]-size
		p.must(p.WriteDataPadded(1, i == frames-1, []byte("x"), make([]byte, 255)))
	}
	if n := <-got; n != frames {
		t.Errorf("the handler read %d bytes, want %d", n, frames)
	}
}

// TestBodiesThatNeverCome end the connection when nothing else goes on there;
// a handler that works, or answers, is left alone.
func TestBodiesThatNeverCome(t *testing.T) {
	read := make(chan error, 10)
	s := newStand(t, "h2", func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("What") {
		case "read":
			_, err := io.ReadAll(r.Body)
			read <- err
		case "work":
			<-time.After(3 * time.Second) // several timeouts later
			_, _ = io.WriteString(w, "done")
		case "answer":
			w.(http.Flusher).Flush()
			_, _ = io.ReadAll(r.Body)
		}
	}, func(s *Server) { s.IdleTimeout = time.Second })
	p := newPeer(t, s)
	p.get(1, false, "what", "read")
	if err := p.until(func(http2.Frame) bool { return false }); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the connection ended with %v, want EOF", err)
	}
	_ = p.nc.Close()
	if err := <-read; err == nil {
		t.Error("the handler read a complete body that the device did not send, want an error")
	}
	atWork := func() error {
		p := newPeer(t, s)
		defer p.nc.Close()
		var all bytes.Buffer
		together := peer{t, http2.NewFramer(&all, nil), nil}
		together.get(1, false, "what", "answer")
		together.get(3, false, "what", "read")
		together.get(5, true, "what", "work")
		if _, err := p.nc.Write(all.Bytes()); err != nil {
			return err
		}
		return p.until(func(f http2.Frame) bool {
			return f.Header().StreamID == 5 && f.Header().Flags.Has(http2.FlagDataEndStream)
		})
	}
	err := atWork()
	for range 2 { // a machine that stalls before the requests makes the connection one without work
		if err == nil {
			break
		}
		err = atWork()
	}
	if err != nil {
		t.Errorf("a stream whose handler runs: %v, want it to go on", err)
	}
}

func FuzzHTTP2(f *testing.F) {
	var b bytes.Buffer
	fr := http2.NewFramer(&b, nil)
	_ = fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "a"}, {":path", "/"}, {"trailer", "x"}} {
		_ = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	_ = fr.WriteData(1, false, []byte("body"))
	_ = fr.WriteWindowUpdate(1, 10)
	_ = fr.WritePing(false, [8]byte{})
	_ = fr.WriteData(1, true, nil)
	_ = fr.WriteRSTStream(1, 0)
	_ = fr.WriteGoAway(0, 0, nil)
	f.Add(b.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		defer testlab.Input(t)()
		fuzzConn(t, append([]byte(http2.ClientPreface), data...), func(c connection) { newConn2(c, bufio.NewReader(c.nc)).serve() })
	})
}

func FuzzHTTP1(f *testing.F) {
	f.Add(
		[]byte(
			"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n",
		),
	)
	f.Add([]byte("POST / HTTP/1.0\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nabcd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer testlab.Input(t)()
		fuzzConn(t, data, func(c connection) { newConn1(c).serve() })
	})
}

// TestEmptyContinuations: a header block of more frames than any needs ends the
// connection, also when they are empty and cost the device nothing.
func TestEmptyContinuations(t *testing.T) {
	s := newStand(t, "h2", func(http.ResponseWriter, *http.Request) {})
	flood := func(n int) error {
		p := newPeer(t, s)
		defer p.nc.Close()
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "wire.test"}, {":path", "/"}} {
			_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		var all bytes.Buffer
		together := http2.NewFramer(&all, nil)
		p.must(together.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true}))
		for i := range n {
			p.must(together.WriteContinuation(1, i == n-1, nil))
		}
		if _, err := p.nc.Write(all.Bytes()); err != nil {
			return err
		}
		return p.until(func(f http2.Frame) bool { _, ok := f.(*http2.HeadersFrame); return ok })
	}
	if err := flood(maxContinuations); err != nil {
		t.Errorf("a block of %d frames: %v, want an answer", maxContinuations, err)
	}
	if err := flood(maxContinuations + 1); err == nil {
		t.Errorf("a block of %d empty frames was answered, want the connection closed", maxContinuations+1)
	}
}

// TestZeroWindow: a device that asks for answers and gives them no window does not keep the
// handlers for ever, though it pings.
func TestZeroWindow(t *testing.T) {
	ended := make(chan error, 10)
	s := newStand(t, "h2", func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, 256<<10))
		ended <- err
	}, func(s *Server) { s.IdleTimeout = time.Second })
	p := newPeer(t, s, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	defer p.nc.Close()
	p.get(1, true)
	p.must(p.WritePing(false, [8]byte{}))
	err := p.until(func(f http2.Frame) bool {
		if _, ok := f.(*http2.PingFrame); ok {
			_ = p.WritePing(false, [8]byte{}) // the connection is not idle
		}
		r, ok := f.(*http2.RSTStreamFrame)
		return ok && r.StreamID == 1
	})
	if err != nil {
		t.Errorf("a stream without a window: %v, want it reset", err)
	}
	if err := <-ended; err == nil {
		t.Error("the handler of a stream without a window ended without an error")
	}
}

// TestContinuationsAreFollowed however the frames are cut.
func TestContinuationsAreFollowed(t *testing.T) {
	var all bytes.Buffer
	f := http2.NewFramer(&all, nil)
	for range maxContinuations + 1 {
		_ = f.WriteData(1, false, []byte("payload \x00\x00\x00\x09\x04\x00\x00\x00\x01"))
		_ = f.WriteContinuation(1, true, []byte{1, 2, 3}) // the framer refuses one after DATA, and this does not
	}
	for _, size := range []int{1, 2, 8, 9, 10, 100, 1 << 20} {
		c := &continuations{}
		b := all.Bytes()
		for len(b) > 0 {
			n := min(size, len(b))
			if !c.follow(b[:n]) {
				t.Fatalf("in pieces of %d bytes: single CONTINUATION frames were counted as a row", size)
			}
			b = b[n:]
		}
		if c.have != 0 || c.skip != 0 {
			t.Errorf("in pieces of %d bytes: %d and %d bytes are left, want 0", size, c.have, c.skip)
		}
	}
}
