package conformance

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
)

// rawCase is an exchange byte for byte: what the test's client sends and what its origin answers, with
// everything that net/http would normalise.
type rawCase struct {
	name, request, response string
}

func rawCases() []rawCase {
	const request = "GET /a HTTP/1.1\r\nHost: shop.test\r\nx-lower: 1\r\nX-UPPER: 2\r\nAccept: */*\r\nuser-agent: nobody\r\n\r\n"
	return []rawCase{
		{name: "order and case of fields", request: request,
			response: "HTTP/1.1 200 OK\r\nserver: me\r\nX-b: 1\r\nDATE: Mon, 02 Jan 2006 15:04:05 GMT\r\nx-A: 2\r\nX-b: 3\r\nContent-Length: 2\r\nETag: \"x\"\r\n\r\nhi"},
		{name: "a reason of its own", request: request, response: "HTTP/1.1 418 Short And Stout\r\nContent-Length: 0\r\n\r\n"},
		{name: "cookies keep their order", request: request,
			response: "HTTP/1.1 200 OK\r\nset-cookie: z=1\r\nContent-length: 0\r\nset-cookie: a=2\r\n\r\n"},
		{name: "early hints", request: request,
			response: "HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload; as=style\r\n\r\nHTTP/1.1 200 OK\r\nb: 1\r\nA: 2\r\nContent-Length: 0\r\n\r\n"},
		{name: "trailers", request: request,
			response: "HTTP/1.1 200 OK\r\nz: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 9\r\n\r\n"},
		{
			name:     "a form",
			request:  "POST /form HTTP/1.1\r\ncontent-length: 3\r\nHost: shop.test\r\nContent-Type: application/x-www-form-urlencoded\r\norigin: http://shop.test\r\nUser-Agent: nobody\r\n\r\na=b",
			response: "HTTP/1.1 303 Go There\r\nLocation: /done\r\ncontent-length: 0\r\n\r\n",
		},
	}
}

// rawOrigin answers one request with a response and returns the request. A connection without a
// request was made to find out the origin's protocol, and given up because a stalled machine could
// not use it in time.
func rawOrigin(t *testing.T, l net.Listener, response string) <-chan string {
	asked := make(chan string, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(asked)
				return
			}
			var head bytes.Buffer
			r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &head)))
			if err != nil && head.Len() == 0 {
				_ = c.Close()
				continue
			}
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
			}
			if err == nil {
				_, err = io.WriteString(c, response)
			}
			if err != nil {
				t.Errorf("the origin: %v", err)
			}
			asked <- head.String()
			_ = c.Close()
			return
		}
	}()
	return asked
}

// exchange sends a request and returns the heads of the answer, the final and the interim ones, and
// the body with its trailers as net/http reads them.
func exchange(t *testing.T, c net.Conn, request string) (head, body string) {
	t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	reader := bufio.NewReader(io.TeeReader(c, &raw))
	for {
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%v, after %q", err, raw.String())
		}
		if resp.StatusCode < 200 {
			continue
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return heads(raw.String()), string(b) + " " + resp.Trailer.Get("X-Sum")
	}
}

// heads returns the final head of an answer, with the interim ones before it.
func heads(answer string) string {
	n := 1 + strings.Count(answer, "HTTP/1.1 1")
	return strings.Join(strings.Split(answer, "\r\n\r\n")[:n], "\r\n\r\n")
}

// TestWire: HTTP/1.1 is on the device's wire as it was on the origin's, and the origin sees the
// device's request as it was, with and without TLS.
func TestWire(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		for _, k := range rawCases() {
			t.Run(scheme+" "+k.name, func(t *testing.T) { k.run(t, scheme == "https") })
		}
	}
}

func (k *rawCase) run(t *testing.T, secure bool) {
	origin, err := ca.New(time.Now)
	check(t, err)
	box, err := ca.New(time.Now)
	check(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	at := l
	if secure {
		at = tls.NewListener(l, &tls.Config{GetCertificate: origin.GetCertificate})
	}
	n, err := netlab.Start(t.Context(), netlab.Config{
		Gateway: netip.MustParseAddr("192.168.77.1"), HTTPAddr: "127.0.0.1:0", HTTPSAddr: "127.0.0.1:0", CA: box, Clock: lab.Monotonic,
		Upstream: &proxy.UpstreamConfig{
			Roots:    origin.Pool(),
			Resolver: netip.MustParseAddrPort("127.0.0.1:9"),
			Lookup: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
			},
		},
	})
	check(t, err)
	defer func() { check(t, n.Close()) }()
	device := func() net.Conn {
		var c net.Conn
		var err error
		if secure {
			c, err = tls.Dial("tcp", n.Addrs().HTTPS.String(), &tls.Config{RootCAs: box.Pool(), ServerName: "shop.test"})
		} else {
			c, err = net.Dial("tcp", n.Addrs().HTTP.String())
		}
		check(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	path := filepath.Join(t.TempDir(), "wire.wacz")
	w, err := archive.Create(path, archive.CreateOptions{Software: "conformance", Wall: time.Now()})
	check(t, err)
	defer func() { _ = w.Discard() }()
	_, err = n.Record(t.Context(), w, replay.RecordOptions{Wall: time.Now})
	check(t, err)
	asked := rawOrigin(t, at, k.response)
	liveHead, liveBody := exchange(t, device(), k.request)
	n.Disarm()
	check(t, w.Close())
	if got, want := <-asked, strings.SplitAfter(k.request, "\r\n\r\n")[0]; strings.SplitAfter(got, "\r\n\r\n")[0] != want {
		t.Errorf("the origin was asked (-want +got):\n%s", cmp.Diff(want, got))
	}
	a, err := archive.Open(path)
	check(t, err)
	s, err := n.Replay(t.Context(), a, replay.Options{Timing: replay.Timing{Mode: replay.TimingNone}})
	check(t, err)
	head, body := exchange(t, device(), k.request)
	if want := heads(k.response); liveHead != want {
		t.Errorf("live (-want +got):\n%s", cmp.Diff(want, liveHead))
	}
	if head != liveHead || body != liveBody {
		t.Errorf("replayed %q %q, live was %q %q", head, body, liveHead, liveBody)
	}
	if st := s.Stats(); st.Misses != 0 {
		t.Errorf("%d misses", st.Misses)
	}
}
