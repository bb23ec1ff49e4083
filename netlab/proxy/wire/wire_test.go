package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/hop"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

// patience bounds what does not end by itself, on a machine that stalls.
const patience = 2 * time.Minute

// stand is a server on the loopback that speaks the given protocol.
type stand struct {
	addr   string
	config *tls.Config // of its clients
	server *Server
}

func newStand(t testing.TB, protocol string, h http.HandlerFunc, change ...func(*Server)) *stand {
	t.Helper()
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{
		addr:   l.Addr().String(),
		config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, ServerName: "wire.test"},
	}
	s.server = &Server{
		Handler: h, MaxHeader: 64 << 10, HeaderTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second,
		Context: func(net.Conn) context.Context { return context.Background() },
		Log:     slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(s.server)
	}
	var conns sync.WaitGroup
	open := sync.Map{}
	conns.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(nc, true)
			conns.Go(func() {
				s.server.Serve(tls.Server(nc, &tls.Config{GetCertificate: authority.GetCertificate, NextProtos: []string{protocol}}))
				open.Delete(nc)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		open.Range(func(nc, _ any) bool { _ = nc.(net.Conn).Close(); return true })
		conns.Wait()
	})
	return s
}

func (s *stand) dial(t testing.TB) *tls.Conn {
	t.Helper()
	c, err := s.connect(t)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *stand) connect(t testing.TB) (*tls.Conn, error) {
	c, err := tls.Dial("tcp", s.addr, s.config)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c, nil
}

func (s *stand) client(t testing.TB) *http.Client {
	tr := &http.Transport{
		TLSClientConfig: s.config.Clone(), DisableCompression: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.addr)
		},
		ForceAttemptHTTP2: s.config.NextProtos[0] == "h2",
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// both runs a test for each protocol.
func both(t *testing.T, f func(t *testing.T, protocol string)) {
	for _, p := range []string{"http/1.1", "h2"} {
		t.Run(p, func(t *testing.T) { f(t, p) })
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b) // never fails
	return b
}

// TestAnswers: whatever a handler writes comes whole to net/http's client.
func TestAnswers(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		body := noise(n)
		w.Header().Set("X-Path", r.URL.Path)
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", strconv.Itoa(n))
			_, _ = w.Write(body)
		case "/fields":
			w.(hop.FieldWriter).WriteFields(
				200,
				"",
				[]lab.HeaderField{{Name: "x-path", Value: r.URL.Path}, {Name: "Content-Length", Value: strconv.Itoa(n)}},
			)
			_, _ = w.Write(body)
		case "/pieces":
			for len(body) > 0 {
				k := min(len(body), 1+len(body)/3)
				_, _ = w.Write(body[:k])
				w.(http.Flusher).Flush()
				body = body[k:]
			}
		case "/trailer":
			_, _ = w.Write(body)
			w.Header().Set(http.TrailerPrefix+"X-End", "yes")
		case "/echo":
			_, _ = io.Copy(w, r.Body)
		case "/nocontent":
			w.WriteHeader(http.StatusNoContent)
			if _, err := w.Write(body); n > 0 && err == nil && r.Method != http.MethodHead {
				panic("a body was taken with 204")
			}
		default:
			_, _ = w.Write(body)
		}
	}
	both(t, func(t *testing.T, protocol string) {
		c := newStand(t, protocol, handler).client(t)
		for _, n := range []int{0, 1, 10_000, 16 << 10, 70_000, 3 << 20} {
			for _, path := range []string{"/plain", "/length", "/fields", "/pieces", "/trailer", "/echo", "/nocontent"} {
				for _, method := range []string{"GET", "HEAD", "POST"} {
					want := noise(n)
					var send io.Reader
					if path == "/echo" || method == "POST" {
						if method != "POST" {
							continue
						}
						send = bytes.NewReader(want)
					}
					if method == "HEAD" || path == "/nocontent" {
						want = nil
					}
					r, err := http.NewRequest(method, "https://wire.test"+path+"?n="+strconv.Itoa(n), send)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := c.Do(r)
					if err != nil {
						t.Fatalf("%s %s of %d bytes: %v", method, path, n, err)
					}
					got, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if err != nil || !bytes.Equal(got, want) || resp.Header.Get("X-Path") != path {
						t.Errorf("%s %s: read %d bytes, %v with the header %v; want %d bytes",
							method, path, len(got), err, resp.Header, len(want))
					}
					if path == "/trailer" && method == "GET" && resp.Trailer.Get("X-End") != "yes" {
						t.Errorf("%s of %d bytes: trailer %v, want X-End", path, n, resp.Trailer)
					}
					if path == "/length" && method == "HEAD" && resp.ContentLength != int64(n) {
						t.Errorf("HEAD: Content-Length %d, want %d", resp.ContentLength, n)
					}
				}
			}
		}
	})
}

// TestStreamsTakeTurns: many large answers and bodies at once on one connection.
func TestStreamsTakeTurns(t *testing.T) {
	c := newStand(t, "h2", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }).client(t)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			want := noise(300_000 + i)
			resp, err := c.Post("https://wire.test/", "", bytes.NewReader(want))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, want) {
				t.Errorf("stream %d: read %d bytes, %v; want %d, nil", i, len(got), err, len(want))
			}
		})
	}
	wg.Wait()
}

// TestFieldsStayAsTheyAre: order, case, repetition, reason.
func TestFieldsStayAsTheyAre(t *testing.T) {
	s := newStand(t, "http/1.1", func(w http.ResponseWriter, _ *http.Request) {
		fw := w.(hop.FieldWriter)
		fw.WriteFields(103, "", []lab.HeaderField{{Name: "link", Value: "</a.css>; rel=preload"}})
		fw.WriteFields(200, "Fine", []lab.HeaderField{
			{Name: "sErVeR", Value: "x"}, {Name: "Set-Cookie", Value: "b=2"}, {Name: "A", Value: "1"}, {Name: "Set-Cookie", Value: "a=1"},
			{Name: "broken name", Value: "left out"}, {Name: "Split", Value: "a\r\nInjected: b"}, {Name: "content-length", Value: "2"},
		})
		_, _ = io.WriteString(w, "ok")
	})
	c := s.dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: wire.test\r\nConnection: close\r\n\r\n")
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	want := "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n" +
		"HTTP/1.1 200 Fine\r\nsErVeR: x\r\nSet-Cookie: b=2\r\nA: 1\r\nSet-Cookie: a=1\r\nSplit: a  Injected: b\r\ncontent-length: 2\r\nConnection: close\r\n\r\nok"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestInformational: a 103 comes before the answer is known.
func TestInformational(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		seen := make(chan struct{})
		c := newStand(t, protocol, func(w http.ResponseWriter, _ *http.Request) {
			w.(hop.FieldWriter).WriteFields(103, "", []lab.HeaderField{{Name: "link", Value: "</a.css>"}})
			<-seen
			_, _ = io.WriteString(w, "done")
		}).client(t)
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code != 103 || h.Get("Link") != "</a.css>" {
				t.Errorf("informational response %d %v, want 103 with a Link", code, h)
			}
			close(seen)
			return nil
		}})
		r, _ := http.NewRequestWithContext(ctx, "GET", "https://wire.test/", nil)
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if b, _ := io.ReadAll(resp.Body); string(b) != "done" {
			t.Errorf("read %q, want %q", b, "done")
		}
	})
}

// TestAnswersThatAreCutOff reach the client as such: a panic, or fewer bytes than said.
func TestAnswersThatAreCutOff(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		c := newStand(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/short" {
				w.Header().Set("Content-Length", "10")
			}
			_, _ = io.WriteString(w, "begin")
			w.(http.Flusher).Flush()
			if r.URL.Path == "/panic" {
				panic(http.ErrAbortHandler)
			}
		}).client(t)
		for _, path := range []string{"/panic", "/short"} {
			resp, err := c.Get("https://wire.test" + path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil || string(b) != "begin" {
				t.Errorf("%s: read %q, %v; want %q and an error", path, b, err, "begin")
			}
		}
	})
}

// TestHandlersNoticeThatTheDeviceIsGone, whether they wait or read.
func TestHandlersNoticeThatTheDeviceIsGone(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		begun, ended := make(chan struct{}, 1), make(chan error, 1)
		s := newStand(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			begun <- struct{}{}
			if err == nil {
				<-r.Context().Done()
				err = r.Context().Err()
			}
			ended <- err
		})
		for _, body := range []io.Reader{nil, strings.NewReader("a body")} {
			ctx, cancel := context.WithCancel(t.Context())
			r, _ := http.NewRequestWithContext(ctx, "POST", "https://wire.test/", body)
			answered := make(chan error, 1)
			go func() {
				_, err := s.client(t).Do(r)
				answered <- err
			}()
			<-begun
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the handler's context ended with %v, want context.Canceled", err)
			}
			<-answered
		}
	})
}

func TestPipelining(t *testing.T) {
	s := newStand(t, "http/1.1", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.URL.Path, string(b))
	})
	c := s.dial(t)
	go func() {
		_, _ = io.WriteString(
			c,
			"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
		)
	}()
	r := bufio.NewReader(c)
	for _, want := range []string{"/1", "/2abc", "/3"} {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != want {
			t.Errorf("%q, want %q", b, want)
		}
	}
}

// TestAnswersDoNotWait: for the next request's, however early that came, nor
// for a body that nobody reads.
func TestAnswersDoNotWait(t *testing.T) {
	wait, release := context.WithCancel(t.Context())
	defer release()
	s := newStand(t, "http/1.1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/waits" {
			<-wait.Done()
		}
		fmt.Fprint(w, r.URL.Path)
	})
	c := s.dial(t)
	r := bufio.NewReader(c)
	for _, x := range []struct{ send, path, then string }{
		{"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /waits HTTP/1.1\r\nHost: a\r\n\r\n", "/1", ""},
		{"", "/waits", ""},
		{"POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", "/2", "hi"},
		{"GET /3 HTTP/1.1\r\nHost: a\r\n\r\n", "/3", ""},
	} {
		if _, err := io.WriteString(c, x.send); err != nil {
			t.Fatal(err)
		}
		if x.path == "/waits" {
			release()
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: %v", x.path, err)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != x.path || err != nil {
			t.Errorf("%q, %v, want %q", b, err, x.path)
		}
		if _, err := io.WriteString(c, x.then); err != nil {
			t.Fatal(err)
		}
	}
}

func TestContinue(t *testing.T) {
	s := newStand(t, "http/1.1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	})
	for path, want := range map[string]string{"/yes": "HTTP/1.1 100 Continue", "/no": "HTTP/1.1 403 Forbidden"} {
		c := s.dial(t)
		_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || strings.TrimSpace(line) != want {
			t.Errorf("%s: read %q, %v; want %q", path, line, err, want)
		}
	}
}

// TestRefusals: what is no request, is too large or too slow gets an answer or
// the end, and nothing waits for ever.
func TestRefusals(t *testing.T) {
	stand := func(timeout time.Duration) *stand {
		return newStand(t, "http/1.1", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "served") },
			func(s *Server) { s.HeaderTimeout, s.IdleTimeout = timeout, timeout })
	}
	patient, impatient := stand(5*time.Second), stand(300*time.Millisecond)
	for _, c := range []struct{ send, want string }{
		{"nonsense\r\n\r\n", "HTTP/1.1 400"},
		{"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 400"},
		{"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", "HTTP/1.1 431"},
		{"\x00\x1d\x12\x34\x01", "HTTP/1.1 400"}, // a query for a name, as of DNS over TLS: the end is not waited for
		{"GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200"},
		{"GET / HTTP/1.1\r\nHost: a\r\n", ""},                 // slow loris
		{"", ""},                                              // idle
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200"}, // then idle
	} {
		s := patient // with a request that is slow because the machine is
		if c.want == "" {
			s = impatient
		}
		nc, err := s.connect(t)
		for range 20 { // the impatient one gives a handshake no more time than a header
			if err == nil {
				break
			}
			nc, err = s.connect(t)
		}
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(nc, c.send) }()
		got, err := io.ReadAll(nc)
		if !strings.HasPrefix(string(got), c.want) || c.want == "" && len(got) > 0 {
			t.Errorf("%.40q: answered %.60q, %v; want %q", c.send, got, err, c.want)
		}
	}
}

func TestHijack(t *testing.T) {
	s := newStand(t, "http/1.1", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context()) // makes the server look out for the device's end
		defer cancel()
		nc, rw, err := http.NewResponseController(w).Hijack()
		if err != nil || ctx.Err() != nil {
			t.Errorf("Hijack() = %v, the context's error %v; want nil, nil", err, ctx.Err())
			return
		}
		defer nc.Close()
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(nc, "got "+line)
	})
	c := s.dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\nhello\n")
	if got, err := io.ReadAll(c); string(got) != "got hello\n" {
		t.Errorf("read %q, %v; want %q", got, err, "got hello\n")
	}
}
