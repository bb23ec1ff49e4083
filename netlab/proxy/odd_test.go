package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/hop"
	"eidetic/netlab/message"
)

// oddTargets are request targets that RFC 3986 does not allow, or that net/url writes in another way.
var oddTargets = []string{"/9%", "/a%zz/b?c=%&d=5%25%", "/x|y^z", "/caf\xc3\xa9/\xe9", "//two//slashes", "//two/%q", "/%7e%2f?", "/{a}?'b'"}

// rawOrigin answers each request with its request line and Cookie, and odd fields.
func rawOrigin(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					h, err := message.ReadHead(r, 1<<20)
					if err != nil {
						return
					}
					text := h.Start + "|" + strings.Join(h.Values("Cookie"), ",")
					fmt.Fprintf(c, "HTTP/1.1 200\n: nameless\nno colon\nX-Odd: \x01\nContent-Length: %d, %d\n\n%s", len(text), len(text), text)
				}
			}()
		}
	}()
	return l
}

// forward answers requests from an origin, with the bytes that the device sent.
func forward(t *testing.T, origin net.Listener) (*fakeCore, *Upstream) {
	u := NewUpstream(UpstreamConfig{Hosts: map[string][]netip.Addr{"odd.test": {netip.MustParseAddr("127.0.0.1")}}})
	t.Cleanup(u.Close)
	core := &fakeCore{protocols: map[string][]string{"odd.test": {"h2", "http/1.1"}}}
	core.serve = func(w http.ResponseWriter, r *http.Request) {
		headers := hop.Headers{}
		headers.Request, _ = hop.Fields(r.Context())
		out := r.Clone(hop.WithHeaders(r.Context(), &headers))
		out.URL, out.RequestURI = lab.ParseURL("http://"+origin.Addr().String()+r.RequestURI).Net(), ""
		resp, err := u.RoundTrip(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		if slices.Contains(headers.Response, lab.HeaderField{Name: "X-Odd", Value: "\x01"}) {
			w.Header().Set("X-Kept", "yes")
		}
		_, _ = io.Copy(w, resp.Body)
	}
	return core, u
}

// TestWhatIsForwardedIsWhatWasReceived: targets and fields reach the origin with the bytes of the device, by each way.
func TestWhatIsForwardedIsWhatWasReceived(t *testing.T) {
	origin := rawOrigin(t)
	core, _ := forward(t, origin)
	b := serve(t, core)
	for name, dial := range map[string]func() (net.Conn, string){
		"transparent": func() (net.Conn, string) { return dialTCP(t, b.http), "" },
		"proxy":       func() (net.Conn, string) { return dialTCP(t, b.explicit), "http://odd.test" },
		"tunnel": func() (net.Conn, string) {
			c := dialTCP(t, b.explicit)
			fmt.Fprint(c, "CONNECT odd.test:80 HTTP/1.1\r\nHost: odd.test:80\r\n\r\n")
			if h, err := message.ReadHead(bufio.NewReaderSize(c, 16), 4096); err != nil || !strings.Contains(h.Start, " 200 ") {
				t.Fatalf("CONNECT: %+v, %v", h, err)
			}
			return c, ""
		},
		"TLS": func() (net.Conn, string) {
			return tls.Client(dialTCP(t, b.https), &tls.Config{ServerName: "odd.test", RootCAs: b.ca.Pool()}), ""
		},
	} {
		c, prefix := dial()
		r := bufio.NewReader(c)
		for _, target := range append(slices.Clone(oddTargets), "/with blank/x") {
			fmt.Fprintf(c, "GET %s%s HTTP/1.1\r\nHost: odd.test\r\ncookie: a=\x02b; c=\xe9\r\n\r\n", prefix, target)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, target, err)
			}
			got, err := io.ReadAll(resp.Body)
			if want := "GET " + target + " HTTP/1.1|a=\x02b; c=\xe9"; string(got) != want || err != nil {
				t.Errorf("%s: the origin got %q, %v; want %q", name, got, err, want)
			}
			if resp.Header.Get("X-Kept") == "" {
				t.Errorf("%s, %s: the answer's odd field was not given as received", name, target)
			}
		}
	}
}

func dialTCP(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(testlab.Hang))
	return c
}

// TestTargetsOverHTTP2 is the same for a path in a frame.
func TestTargetsOverHTTP2(t *testing.T) {
	origin := rawOrigin(t)
	core, _ := forward(t, origin)
	b := serve(t, core)
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: b.ca.Pool()}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, b.https)
		},
	}
	defer tr.CloseIdleConnections()
	for _, target := range oddTargets {
		resp, err := tr.RoundTrip(&http.Request{Method: "GET", URL: lab.ParseURL("https://odd.test" + target).Net(), Header: http.Header{}})
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := "GET " + target + " HTTP/1.1|"; string(got) != want || err != nil || resp.ProtoMajor != 2 {
			t.Errorf("the origin got %q over HTTP/%d, %v; want %q over HTTP/2", got, resp.ProtoMajor, err, want)
		}
	}
}

// TestProtocolsAreAskedByPort: origins on several ports of one host choose for themselves, once.
func TestProtocolsAreAskedByPort(t *testing.T) {
	core := &fakeCore{protocols: map[string][]string{"dev.test:3000": {"h2"}, "dev.test": {}}}
	b := serve(t, core)
	for target, want := range map[string]string{"dev.test:3000": "h2", "dev.test:443": "http/1.1", "dev.test:4000": "http/1.1"} {
		c := dialTCP(t, b.explicit)
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", target)
		if _, err := message.ReadHead(bufio.NewReaderSize(c, 16), 4096); err != nil {
			t.Fatal(err)
		}
		secure := tls.Client(c, &tls.Config{ServerName: "dev.test", RootCAs: b.ca.Pool(), NextProtos: []string{"h2", "http/1.1"}})
		if err := secure.Handshake(); err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		if got := secure.ConnectionState().NegotiatedProtocol; got != want {
			t.Errorf("%s: the device is offered %q, want %q", target, got, want)
		}
	}
}

// TestRefusedRequestsReachTheCore: the core, which keeps the log, learns why.
func TestRefusedRequestsReachTheCore(t *testing.T) {
	reasons := make(chan string, 1)
	b := serve(t, &fakeCore{serve: func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		reasons <- fmt.Sprint(err)
		http.Error(w, "refused", http.StatusBadRequest)
	}})
	for fields, want := range map[string]string{
		"Content-Length: 1\r\nContent-Length: 2":               "two lengths that differ, 1 and 2",
		"Content-Length: 1\r\nTransfer-Encoding: chunked":      "both a Content-Length and a Transfer-Encoding",
		"Transfer-Encoding: chunked, identity\r\nX-Other: yes": "chunked, identity",
	} {
		c := dialTCP(t, b.http)
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\nGET /second HTTP/1.1\r\nHost: a.test\r\n\r\n", fields)
		answer, _ := io.ReadAll(c)
		if got := <-reasons; !strings.Contains(got, want) {
			t.Errorf("%q is refused for %q, want one that says %q", fields, got, want)
		}
		if n := strings.Count(string(answer), "HTTP/1.1 "); n != 1 {
			t.Errorf("%q got %d answers, want one: %q", fields, n, answer)
		}
	}
}

// TestServersOfOneAddress: behind one address one server speaks HTTP/2 and the next does not; each is asked as it
// speaks.
func TestServersOfOneAddress(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the origin got %q, and %v; want the whole body", body, err)
		}
		fmt.Fprintf(w, "%s %s", r.Proto, body)
	}))
	var connections atomic.Int64
	origin.EnableHTTP2 = true
	origin.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		own := origin.TLS.Clone()
		if own.GetConfigForClient = nil; connections.Add(1) > 1 {
			own.NextProtos = []string{"http/1.1"}
		}
		return own, nil
	}}
	origin.StartTLS()
	defer origin.Close()
	u := NewUpstream(UpstreamConfig{AnyCertificate: true})
	defer u.Close()
	_, port, _ := net.SplitHostPort(origin.Listener.Addr().String())
	for i, want := range []string{"HTTP/2.0 order 1", "HTTP/1.1 order 2", "HTTP/1.1 order 3"} {
		body := strings.NewReader(fmt.Sprint("order ", i+1))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://127.0.0.1:"+port+"/", body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.RoundTrip(r)
		if err != nil {
			t.Fatalf("request %d: %v; want an answer over %s", i+1, err, want)
		}
		got, err := io.ReadAll(resp.Body)
		if string(got) != want || err != nil {
			t.Errorf("request %d: %s, %v; want %s", i+1, got, err, want)
		}
		_ = resp.Body.Close()
		u.two.CloseIdleConnections()
	}
}

// TestHTTP2WithoutTLS: a device that speaks HTTP/2 without TLS, as programs with gRPC do, is understood by each way, and its
// origin is spoken to likewise.
func TestHTTP2WithoutTLS(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "%s %s", r.Proto, body)
		w.Header().Set("X-Sum", "9")
	}))
	origin.Config.Protocols = new(http.Protocols)
	origin.Config.Protocols.SetUnencryptedHTTP2(true)
	origin.Start()
	defer origin.Close()
	core, _ := forward(t, origin.Listener)
	b := serve(t, core)
	for name, dial := range map[string]func() net.Conn{
		"transparent": func() net.Conn { return dialTCP(t, b.http) },
		"tunnel": func() net.Conn {
			c := dialTCP(t, b.explicit)
			fmt.Fprint(c, "CONNECT odd.test:80 HTTP/1.1\r\nHost: odd.test:80\r\n\r\n")
			if _, err := message.ReadHead(bufio.NewReaderSize(c, 16), 4096); err != nil {
				t.Fatal(err)
			}
			return c
		},
	} {
		device := func(context.Context, string, string) (net.Conn, error) { return dial(), nil }
		tr := &http.Transport{Protocols: new(http.Protocols), DialContext: device}
		tr.Protocols.SetUnencryptedHTTP2(true)
		resp, err := tr.RoundTrip(&http.Request{
			Method: "POST", URL: lab.ParseURL("http://odd.test/pkg.Svc/Call").Net(), Header: http.Header{},
			Body: io.NopCloser(strings.NewReader("said")), ContentLength: -1,
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := io.ReadAll(resp.Body)
		if string(got) != "HTTP/2.0 said" || err != nil || resp.ProtoMajor != 2 {
			t.Errorf("%s: the answer is %q over HTTP/%d, %v; want HTTP/2.0 at both sides", name, got, resp.ProtoMajor, err)
		}
		_ = resp.Body.Close()
		tr.CloseIdleConnections()
		if url, conn := core.last(); url != "POST http://odd.test/pkg.Svc/Call" || conn.Protocol != "h2" || conn.TLS != "" {
			t.Errorf("%s: the core was asked %s over %q, TLS %q; want HTTP/2 without TLS", name, url, conn.Protocol, conn.TLS)
		}
	}
	// A method that begins alike is a method.
	c := dialTCP(t, b.http)
	fmt.Fprint(c, "PRINT / HTTP/1.1\r\nHost: odd.test\r\nConnection: close\r\n\r\n")
	if h, err := message.ReadHead(bufio.NewReader(c), 4096); err != nil || !strings.HasPrefix(h.Start, "HTTP/1.1 ") {
		t.Errorf("PRINT gets %+v, %v; want an answer over HTTP/1.1", h, err)
	}
}

// TestStatusThatIsNone: an answer whose status HTTP does not have is an error and no answer, for no archive can hold it.
func TestStatusThatIsNone(t *testing.T) {
	for status, taken := range map[string]bool{"099": false, "000": false, "2000": false, "100000": false, "999": true, "299": true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			if _, err := message.ReadHead(bufio.NewReader(c), 1<<20); err == nil {
				fmt.Fprintf(c, "HTTP/1.1 %s Odd\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi", status)
			}
		}()
		u := NewUpstream(UpstreamConfig{})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.RoundTrip(r)
		if (err == nil) != taken {
			t.Errorf("the status %s: %+v, %v; taken: want %v", status, resp, err, taken)
		}
		if err == nil {
			resp.Body.Close()
		}
		u.Close()
		_ = l.Close()
	}
}
