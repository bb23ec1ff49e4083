package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"eidetic/netlab/ca"
	"eidetic/netlab/hop"
)

// client3 is a device that speaks HTTP/3 alone and whose every name leads to addr.
func client3(t testing.TB, roots *tls.Config, addr *net.UDPAddr) *http.Client {
	t.Helper()
	pc, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	socket := &quic.Transport{Conn: pc}
	tr := &http3.Transport{
		TLSClientConfig: roots, DisableCompression: true,
		Dial: func(ctx context.Context, _ string, tc *tls.Config, qc *quic.Config) (*quic.Conn, error) {
			return socket.DialEarly(ctx, addr, tc, qc)
		},
	}
	t.Cleanup(func() {
		_ = tr.Close()
		_ = socket.Close()
		_ = pc.Close()
	})
	return &http.Client{Transport: tr, Timeout: 2 * time.Minute}
}

func TestHTTP3IsServedWhereTheCoreSaysSo(t *testing.T) {
	core := &fakeCore{protocols: map[string][]string{"www.shop.test": {"h3", "h2", "http/1.1"}, "old.shop.test": {"h2"}}}
	b := serve(t, core)
	c := client3(t, &tls.Config{RootCAs: b.ca.Pool()}, b.quic)
	r := get(t, c, "https://www.shop.test/a?b=c")
	if got := text(t, r); got != "https://www.shop.test/a?b=c" || r.Proto != "HTTP/3.0" {
		t.Errorf("answered %q by %s, want the URL by HTTP/3.0", got, r.Proto)
	}
	want := hop.Conn{Client: netip.MustParseAddr("127.0.0.1"), Dest: b.quic.AddrPort(), Protocol: "h3", TLS: "tls/1.3", QUIC: true}
	if _, got := core.last(); got != want {
		t.Errorf("the core is told %+v, want %+v", got, want)
	}
	if r, err := c.Get("https://old.shop.test/"); err == nil {
		r.Body.Close()
		t.Errorf("a host without HTTP/3 answers by %s, want an error", r.Proto)
	}
	_ = text(t, get(t, b.client(t, true), "https://www.shop.test/")) // by TCP
	if _, got := core.last(); !got.QUIC || got.Protocol != "h2" {
		t.Errorf("a TCP connection is %+v; want h2, with QUIC", got)
	}
}

func TestSetCoreEndsQUICConnections(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	b := serve(t, &fakeCore{protocols: map[string][]string{"a.test": {"h3"}}, serve: func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(left)
	}})
	c := client3(t, &tls.Config{RootCAs: b.ca.Pool()}, b.quic)
	failed := make(chan error, 1)
	go func() {
		r, err := c.Get("https://a.test/")
		if err == nil {
			r.Body.Close()
		}
		failed <- err
	}()
	<-entered
	if err := b.SetCore(t.Context(), &fakeCore{protocols: map[string][]string{"a.test": {"h3"}}}); err != nil {
		t.Fatal(err)
	}
	<-left
	if err := <-failed; err == nil {
		t.Error("a request of the previous core was answered, want an error")
	}
	if got := text(t, get(t, c, "https://a.test/new")); got != "https://a.test/new" {
		t.Errorf("the new core answers %q, want the URL", got)
	}
}

// origin3 serves HTTP/3 and HTTP/2 as an origin that Alt-Svc leads from.
func serveOrigin3(t *testing.T, authority *ca.Authority, h http.Handler) *net.UDPAddr {
	t.Helper()
	pc, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s := &http3.Server{Handler: h, TLSConfig: http3.ConfigureTLSConfig(&tls.Config{GetCertificate: authority.GetCertificate})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(pc) }()
	t.Cleanup(func() { _ = s.Close(); _ = pc.Close(); <-done })
	return pc.LocalAddr().(*net.UDPAddr)
}

// TestUpstreamSpeaksHTTP3ForThoseWhoDo by one socket, or by one for each connection.
func TestUpstreamSpeaksHTTP3ForThoseWhoDo(t *testing.T) {
	t.Run("one socket", func(t *testing.T) { testUpstreamQUIC(t, nil) })
	t.Run("connected sockets", func(t *testing.T) {
		testUpstreamQUIC(t, func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "udp", addr)
		})
	})
}

func testUpstreamQUIC(t *testing.T, dialPacket func(context.Context, string) (net.Conn, error)) {
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Proto+" "+r.Method+" "+string(b))
	})
	udp := serveOrigin3(t, authority, handler)
	tcp, err := Listen(t.Context(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	altSvc := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", `h3-29=":1", h3="alt.test:`+portText(udp.Port)+`"; ma=60`)
		handler(w, r)
	})
	srv := &http.Server{
		Handler:   altSvc,
		TLSConfig: &tls.Config{GetCertificate: authority.GetCertificate, NextProtos: []string{"h2", "http/1.1"}},
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.ServeTLS(tcp, "", "") }()
	t.Cleanup(func() { _ = srv.Close(); <-done })

	u := NewUpstream(UpstreamConfig{
		Roots: authority.Pool(),
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		DialPacket: dialPacket,
	})
	t.Cleanup(u.Close)
	base := "https://shop.test:" + portText(tcp.Addr().(*net.TCPAddr).Port)
	ask := func(protocol, body string) string {
		ctx := hop.WithConn(t.Context(), hop.Conn{Protocol: protocol})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return text(t, resp)
	}
	// Before Alt-Svc was seen, QUIC is tried at the origin's own port, where none is served.
	if got := ask("h3", "x"); got != "HTTP/2.0 POST x" {
		t.Errorf("without a QUIC origin: %q, want a fall back to HTTP/2 with the body", got)
	}
	host := strings.TrimPrefix(base, "https://")
	if !u.HTTP3(host) {
		t.Errorf("HTTP3(%s) = false after its Alt-Svc, want true", host)
	}
	if got := ask("h3", "y"); got != "HTTP/3.0 POST y" {
		t.Errorf("a device on HTTP/3 got %q, want HTTP/3.0 POST y", got)
	}
	if got := ask("h2", "z"); got != "HTTP/2.0 POST z" {
		t.Errorf("a device on HTTP/2 got %q, want HTTP/2.0 POST z", got)
	}
	if got := u.Protocols(host); !slices.Equal(got, []string{"h2", "http/1.1"}) {
		t.Errorf("Protocols(%s) = %v, want [h2 http/1.1]", host, got)
	}
}

// TestAnswersThatAreLate: an origin that was too slow once is asked again, and
// one that never answers is not asked for ever.
func TestAnswersThatAreLate(t *testing.T) {
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	origin := serveOrigin3(t, authority, http.NotFoundHandler())
	silent, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var dials atomic.Int32
	upstream := func(lost int32) *Upstream {
		dials.Store(0)
		u := NewUpstream(UpstreamConfig{
			Roots: authority.Pool(),
			Lookup: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			},
			DialPacket: func(ctx context.Context, _ string) (net.Conn, error) {
				to := origin
				if dials.Add(1) <= lost {
					to = silent.LocalAddr().(*net.UDPAddr)
				}
				return new(net.Dialer).DialContext(ctx, "udp", to.String())
			},
		})
		t.Cleanup(u.Close)
		return u
	}
	u := upstream(1)
	if u.HTTP3("shop.test") {
		t.Error("HTTP3 of an origin that did not answer = true, want false")
	}
	for range maxLate - 1 { // this machine may be late as well
		if u.HTTP3("shop.test") {
			break
		}
	}
	if !u.HTTP3("shop.test") {
		t.Error("HTTP3 after one timeout = false for good, want another attempt")
	}
	u = upstream(maxLate)
	for range maxLate + 2 {
		if u.HTTP3("shop.test") {
			t.Error("HTTP3 of an origin that never answers = true, want false")
		}
	}
	if n := dials.Load(); n != maxLate {
		t.Errorf("an origin that never answers was asked %d times, want %d", n, maxLate)
	}
}

func portText(n int) string {
	return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(n)).String()[len("0.0.0.0:"):]
}

// TestManyNamesOverQUIC: a device that asks for hosts without end takes no memory for them.
func TestManyNamesOverQUIC(t *testing.T) {
	u := NewUpstream(UpstreamConfig{Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }})
	defer u.Close()
	for i := range maxChoices + 100 {
		if u.HTTP3(fmt.Sprint("host-", i, ".test")) {
			t.Fatalf("host-%d.test, which does not exist, speaks HTTP/3", i)
		}
	}
	if n := len(u.quic.known); n > maxChoices {
		t.Errorf("%d hosts are remembered, want at most %d", n, maxChoices)
	}
}
