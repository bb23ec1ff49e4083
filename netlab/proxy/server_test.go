package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/hop"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

// fakeCore notes what it is asked and answers with serve, or the URL.
type fakeCore struct {
	protocols map[string][]string
	serve     http.HandlerFunc
	mu        sync.Mutex
	urls      []string
	conns     []hop.Conn
}

func (f *fakeCore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.urls = append(f.urls, r.Method+" "+r.URL.String())
	f.conns = append(f.conns, hop.ConnOf(r.Context()))
	f.mu.Unlock()
	if f.serve != nil {
		f.serve(w, r)
		return
	}
	_, _ = io.WriteString(w, r.URL.String())
}

func (f *fakeCore) Protocols(host string) []string { return f.protocols[host] }
func (f *fakeCore) HTTP3(host string) bool         { return slices.Contains(f.protocols[host], "h3") }

func (f *fakeCore) last() (string, hop.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.urls) == 0 {
		return "", hop.Conn{}
	}
	return f.urls[len(f.urls)-1], f.conns[len(f.conns)-1]
}

// box is a server on loopback with its authority.
type box struct {
	*Server
	ca                    *ca.Authority
	http, https, explicit string
	quic                  *net.UDPAddr
}

func serve(t testing.TB, core Core) *box {
	t.Helper()
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	b := &box{ca: authority}
	listen := func(addr *string) net.Listener {
		l, err := Listen(t.Context(), "127.0.0.1:0", "cubic")
		if err != nil {
			t.Fatal(err)
		}
		*addr = l.Addr().String()
		return l
	}
	quic, err := ListenQUIC(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.quic = quic.LocalAddr().(*net.UDPAddr)
	b.Server, err = Serve(
		Config{
			HTTP:         listen(&b.http),
			HTTPS:        listen(&b.https),
			Explicit:     listen(&b.explicit),
			QUIC:         quic,
			Certificates: authority,
			Core:         core,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// client is a device whose every name leads to the box.
func (b *box) client(t testing.TB, h2 bool) *http.Client {
	tr := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := b.http
			if strings.HasSuffix(addr, ":443") {
				to = b.https
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		},
		TLSClientConfig:   &tls.Config{RootCAs: b.ca.Pool(), ClientSessionCache: tls.NewLRUClientSessionCache(8)},
		ForceAttemptHTTP2: h2,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{
		Transport:     tr,
		Timeout:       testlab.Hang,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func get(t testing.TB, c *http.Client, u string) *http.Response {
	t.Helper()
	r, err := c.Get(u)
	if err != nil {
		t.Fatalf("GET %s: %v", u, err)
	}
	t.Cleanup(func() { r.Body.Close() })
	return r
}

func text(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTransparentRequestsAreAbsolute(t *testing.T) {
	core := &fakeCore{protocols: map[string][]string{"www.shop.test": {"h2", "http/1.1"}}}
	b := serve(t, core)
	dest := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	local := netip.MustParseAddr("127.0.0.1")
	for _, c := range []struct {
		url  string
		want string
		conn hop.Conn
	}{
		{"http://www.shop.test/a?b=c", "GET http://www.shop.test/a?b=c", hop.Conn{Client: local, Dest: dest(b.http), Protocol: "http/1.1"}},
		{"http://WWW.shop.test:80/%2F/x", "GET http://www.shop.test/%2F/x", hop.Conn{Client: local, Dest: dest(b.http), Protocol: "http/1.1"}},
		{"https://www.shop.test/", "GET https://www.shop.test/", hop.Conn{Client: local, Dest: dest(b.https), Protocol: "h2", TLS: "tls/1.3", QUIC: true}},
		{"https://old.shop.test/", "GET https://old.shop.test/", hop.Conn{Client: local, Dest: dest(b.https), Protocol: "http/1.1", TLS: "tls/1.3", QUIC: true}},
	} {
		if got := text(t, get(t, b.client(t, true), c.url)); "GET "+got != c.want {
			t.Errorf("%s: served as GET %s, want %s", c.url, got, c.want)
		}
		u, conn := core.last()
		if u != c.want || conn.Port == 0 {
			t.Errorf("%s: the core saw %s of port %d, want %s of one", c.url, u, conn.Port, c.want)
		}
		conn.Port = 0 // drawn by lot
		if d := cmp.Diff(c.conn, conn, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.url, d)
		}
	}
}

func TestOddRequests(t *testing.T) {
	b := serve(t, &fakeCore{})
	for request, want := range map[string]string{
		"GET /x HTTP/1.0\r\n\r\n":                                                                    "http://127.0.0.1:", // no Host: what was connected to
		"GET http://other.test/x HTTP/1.1\r\nHost: www.test\r\n\r\n":                                 "http://other.test/x",
		"CONNECT www.test:443 HTTP/1.1\r\nHost: www.test:443\r\n\r\n":                                "405 Method Not Allowed",
		"GET / HTTP/1.1\r\nHost: a b\r\n\r\n":                                                        "400 Bad Request",
		"GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n":                                                    "400 Bad Request",
		"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n":                                                   "http://[::1]/",
		"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n":                                                        "400 Bad Request",
		"\x16\x03\x01 this is not HTTP\r\n\r\n":                                                      "400 Bad Request",
		"GET / HTTP/1.1\r\nHost: www.test\r\nX: " + strings.Repeat("x", maxHeader+8192) + "\r\n\r\n": "431 ",
	} {
		c, err := net.Dial("tcp", b.http)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(testlab.Hang))
		go func() { _, _ = io.WriteString(c, request) }()
		r := bufio.NewReader(c)
		var got strings.Builder
		for range 12 {
			line, err := r.ReadString('\n')
			got.WriteString(line)
			if err != nil || strings.HasPrefix(line, "http://") {
				break
			}
			if line == "\r\n" {
				rest := make([]byte, 256)
				n, _ := r.Read(rest)
				got.Write(rest[:n])
				break
			}
		}
		if !strings.Contains(got.String(), want) {
			t.Errorf("%.60q: answered %.200q, want %q", request, got.String(), want)
		}
		c.Close()
	}
}

func TestTicketsResumeWithinAnArmOnly(t *testing.T) {
	core := &fakeCore{}
	b := serve(t, core)
	cache := tls.NewLRUClientSessionCache(8)
	resumed := func() bool {
		t.Helper()
		c, err := tls.Dial("tcp", b.https, &tls.Config{RootCAs: b.ca.Pool(), ServerName: "www.shop.test", ClientSessionCache: cache})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// The ticket comes behind the handshake: read an answer to have it.
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: www.shop.test\r\nConnection: close\r\n\r\n")
		if _, err := io.ReadAll(c); err != nil {
			t.Fatal(err)
		}
		return c.ConnectionState().DidResume
	}
	if resumed() {
		t.Error("the first connection resumed a session, want a full handshake")
	}
	if !resumed() {
		t.Error("the second connection made a full handshake; want a resumed session, as a returning visitor has it")
	}
	if err := b.SetCore(t.Context(), core); err != nil {
		t.Fatal(err)
	}
	if resumed() {
		t.Error("a ticket of the previous core resumed a session, want a full handshake")
	}
}

func TestSetCoreEndsWhatRuns(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	b := serve(t, &fakeCore{serve: func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
		ended <- r.Context().Err()
	}})
	failed := make(chan error, 1)
	client := b.client(t, true)
	go func() {
		r, err := client.Get("https://www.shop.test/slow")
		if err == nil {
			r.Body.Close()
			err = errors.New("it got an answer")
		} else {
			err = nil
		}
		failed <- err
	}()
	<-started
	if err := b.SetCore(t.Context(), &fakeCore{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	default:
		t.Error("SetCore returned while a request of the previous core was running; want it to wait")
	}
	if err := <-failed; err != nil {
		t.Errorf("the device's request to the previous core: %v, want an error on the device", err)
	}
	if got := text(t, get(t, client, "https://www.shop.test/new")); got != "https://www.shop.test/new" {
		t.Errorf("the new core answers %s, want the URL", got)
	}
}

// slowToAbort has connections whose end takes a while, as on a busy machine.
type slowToAbort struct{ net.Listener }

func (l slowToAbort) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return slowConn{c}, err
}

type slowConn struct{ net.Conn }

func (c slowConn) Abort() error {
	<-time.After(200 * time.Millisecond)
	return c.Close()
}

// TestSetCoreLetsNoAnswerOut: what a handler of the previous core writes when its request is
// cancelled reaches no device, which would take it for an answer.
func TestSetCoreLetsNoAnswerOut(t *testing.T) {
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	s, err := Serve(
		Config{HTTP: slowToAbort{l}, Certificates: authority, Core: &fakeCore{serve: func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(started)
			<-r.Context().Done()
		}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	failed := make(chan error, 1)
	go func() {
		r, err := (&http.Client{Transport: tr}).Post("http://"+l.Addr().String()+"/slow", "text/plain", strings.NewReader("a body"))
		if err == nil {
			r.Body.Close()
		}
		failed <- err
	}()
	<-started
	if err := s.SetCore(t.Context(), &fakeCore{}); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("a request of the previous core was answered, want an error")
	}
}

func TestExplicitProxy(t *testing.T) {
	core := &fakeCore{protocols: map[string][]string{"www.shop.test": {"h2"}}, serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Accept", r.Header.Get("Accept-Encoding"))
		w.Header().Set("Trailer", "X-End")
		_, _ = io.WriteString(w, "hello")
		w.Header().Set("X-End", "yes")
	}}
	b := serve(t, core)
	proxyURL, _ := url.Parse("http://" + b.explicit)
	tr := &http.Transport{
		Proxy:              http.ProxyURL(proxyURL),
		TLSClientConfig:    &tls.Config{RootCAs: b.ca.Pool()},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
	}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: testlab.Hang}
	for _, x := range []struct{ url, protocol, tls, dest string }{
		{"https://www.shop.test/a", "h2", "tls/1.3", "invalid AddrPort"},
		{"https://old.shop.test/a", "http/1.1", "tls/1.3", "invalid AddrPort"},
		{"https://192.0.2.8/a", "http/1.1", "tls/1.3", "192.0.2.8:443"},
		{"http://www.shop.test/a", "http/1.1", "", "invalid AddrPort"},
	} {
		req, _ := http.NewRequest("GET", x.url, nil)
		req.Header.Set("Accept-Encoding", "zstd, br")
		req.Header.Set("Proxy-Connection", "keep-alive")
		r, err := c.Do(req)
		if err != nil {
			t.Errorf("%s: %v", x.url, err)
			continue
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || string(body) != "hello" || r.Trailer.Get("X-End") != "yes" {
			t.Errorf("%s: read %q, %v with the trailer %v; want %q with X-End", x.url, body, err, r.Trailer, "hello")
		}
		if r.Header.Get("X-Accept") != "zstd, br" {
			t.Errorf("%s: the core saw Accept-Encoding %q, want %q", x.url, r.Header.Get("X-Accept"), "zstd, br")
		}
		u, conn := core.last()
		if u != "GET "+x.url || conn.Protocol != x.protocol || conn.TLS != x.tls || !conn.Explicit {
			t.Errorf("%s: the core saw %s by %+v; want GET, %s, %q, explicit", x.url, u, conn, x.protocol, x.tls)
		}
		if x.dest != "invalid AddrPort" && conn.Dest.String() != x.dest {
			t.Errorf("%s: destination %v, want %s", x.url, conn.Dest, x.dest)
		}
	}
	// A person types the proxy's address into the browser.
	if r := get(t, &http.Client{}, "http://"+b.explicit+"/"); r.StatusCode != 200 {
		t.Errorf("the proxy's own address answers %s, want 200", r.Status)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestUpgradeInATunnel(t *testing.T) {
	b := serve(t, &fakeCore{serve: func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(c, line)
	}})
	c, err := net.Dial("tcp", b.explicit)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testlab.Hang))
	// ws:// comes as a CONNECT to port 80 with plain HTTP inside.
	fmt.Fprint(c, "CONNECT ws.test:80 HTTP/1.1\r\nHost: ws.test:80\r\n\r\n")
	r := bufio.NewReader(c)
	if line, _ := r.ReadString('\n'); !strings.Contains(line, " 200 ") {
		t.Fatalf("CONNECT was answered with %q, want 200", line)
	}
	_, _ = r.ReadString('\n')
	fmt.Fprint(c, "GET /chat HTTP/1.1\r\nHost: ws.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nping\n")
	rest, err := io.ReadAll(r)
	if err != nil || !strings.HasSuffix(string(rest), "\r\n\r\nping\n") {
		t.Errorf("the upgraded connection gave %q, %v; want %q at the end", rest, err, "ping\n")
	}
}

func TestBadCONNECT(t *testing.T) {
	b := serve(t, &fakeCore{})
	for _, target := range []string{"www.test", "www.test:0", "www.test:99999", ":443"} {
		c, err := net.Dial("tcp", b.explicit)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(testlab.Hang))
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
		line, _ := bufio.NewReader(c).ReadString('\n')
		if !strings.Contains(line, " 400 ") {
			t.Errorf("CONNECT %s was answered with %q, want 400", target, line)
		}
		c.Close()
	}
}

func TestCongestionControlIsSetOnTheListener(t *testing.T) {
	for _, want := range []string{"cubic", "reno"} {
		l, err := Listen(t.Context(), "127.0.0.1:0", want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Congestion(l); err != nil || got != want {
			t.Errorf("congestion control %q (%v), want %s", got, err, want)
		}
		l.Close()
	}
	if l, err := Listen(t.Context(), "127.0.0.1:0", "warp"); err == nil {
		l.Close()
		t.Error("Listen with an unknown algorithm = nil error, want one")
	} else if !strings.Contains(err.Error(), "tcp_available_congestion_control") {
		t.Errorf("Listen: %v; want it to say where the known algorithms are listed", err)
	}
	l, err := Listen(t.Context(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Listen(t.Context(), l.Addr().String(), ""); err == nil || !strings.Contains(err.Error(), "ss -ltnp") {
		t.Errorf("Listen on a port in use: %v; want it to say how to find the other program", err)
	}
}

func TestUpstream(t *testing.T) {
	// The box serves as the origin: it has the certificates and the ALPN.
	core := &fakeCore{protocols: map[string][]string{"h2.test": {"h2"}}, serve: func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "/", http.StatusFound)
		default:
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "not really gzip")
		}
	}}
	b := serve(t, core)
	var dialled []string
	u := NewUpstream(UpstreamConfig{
		Roots: b.ca.Pool(),
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.9"), netip.MustParseAddr("127.0.0.1")}, nil
		},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled = append(dialled, addr)
			if strings.HasPrefix(addr, "127.0.0.9") {
				return nil, errors.New("nobody there")
			}
			if strings.HasSuffix(addr, ":80") {
				return net.Dial(network, b.http)
			}
			return net.Dial(network, b.https)
		},
	})
	defer u.Close()
	if got := u.Protocols("h2.test"); !slices.Equal(got, []string{"h2", "http/1.1"}) {
		t.Errorf("Protocols(h2.test) = %v, want [h2 http/1.1]", got)
	}
	if got := u.Protocols("h1.test:443"); !slices.Equal(got, []string{"http/1.1"}) {
		t.Errorf("Protocols(h1.test:443) = %v, want [http/1.1]", got)
	}
	for _, c := range []struct {
		url, proto string
		status     int
	}{
		{"https://h2.test/", "HTTP/2.0", 200},
		{"https://h1.test/", "HTTP/1.1", 200},
		{"http://h1.test/", "HTTP/1.1", 200},
		{"https://h2.test/away", "HTTP/2.0", 302},
	} {
		var remote string
		req, _ := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) { remote = i.Conn.RemoteAddr().String() },
		}), "GET", c.url, nil)
		r, err := u.RoundTrip(req)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != c.status || r.Proto != c.proto || (r.TLS != nil) != strings.HasPrefix(c.url, "https") {
			t.Errorf("%s: %s %s, TLS %v; want %s %d", c.url, r.Proto, r.Status, r.TLS != nil, c.proto, c.status)
		}
		if c.status == 200 && (string(body) != "not really gzip" || r.Header.Get("Content-Encoding") != "gzip") {
			t.Errorf("%s: read %q with the header %v; want the bytes as sent", c.url, body, r.Header)
		}
		if remote != b.http && remote != b.https {
			t.Errorf("%s: the trace reports the address %q, want %s or %s", c.url, remote, b.http, b.https)
		}
	}
	// 3 hosts and schemes with 2 addresses each: the probes' connections were used.
	if len(dialled) != 6 {
		t.Errorf("%d dials, want 6: %v", len(dialled), dialled)
	}
	strange := NewUpstream(UpstreamConfig{Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) { return net.Dial(network, b.https) }})
	defer strange.Close()
	req, _ := http.NewRequest("GET", "https://h2.test/", nil)
	if _, err := strange.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "h2.test") {
		t.Errorf("an origin with an unknown authority: %v; want an error that names it", err)
	}
}

func TestManyIdleConnectionsAreBounded(t *testing.T) {
	b := serve(t, &fakeCore{})
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range 200 { // a slow loris: each sends half a header
		c, err := net.Dial("tcp", b.http)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: ")
	}
	if got := text(t, get(t, b.client(t, true), "http://www.shop.test/")); got != "http://www.shop.test/" {
		t.Errorf("beside slow clients: answered %s, want the URL", got)
	}
}
