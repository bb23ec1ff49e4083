package panel

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/pin"
	"eidetic/internal/lab"
)

// elsewhere makes a listener's connections look as if they came from another machine.
type elsewhere struct{ net.Listener }

type farConn struct{ net.Conn }

func (l elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return farConn{c}, err
}

func (farConn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8080} }
func (farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 1234} }

// serveTLS serves a panel with a certificate until the test ends.
func serveTLS(t *testing.T, change func(net.Listener) net.Listener) (addr, fingerprint string) {
	t.Helper()
	cert, err := pin.LoadOrCreate(t.TempDir(), nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPanel(setup{Store: newStore(t), Token: lab.NewSecret(token), TLS: cert, Fingerprint: pin.Of(cert.Leaf)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	l, err := Listen(ctx, "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- p.Serve(ctx, change(l)) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return l.Addr().String(), p.Fingerprint
}

// client trusts any certificate and follows no redirect.
func client(t *testing.T) *http.Client {
	c := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // the test compares the fingerprint
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func do(t *testing.T, c *http.Client, method, url string, change func(*http.Request)) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer, string(text)}
}

func TestOtherMachinesNeedTLS(t *testing.T) {
	addr, fingerprint := serveTLS(t, func(l net.Listener) net.Listener { return elsewhere{l} })
	c := client(t)
	got := do(t, c, http.MethodGet, "https://"+addr+"/api/v1/runs", header("Authorization", "Bearer "+token))
	if got.StatusCode != 200 || got.TLS == nil || pin.Of(got.TLS.PeerCertificates[0]) != fingerprint {
		t.Errorf("over TLS: %d, certificate %v; want 200 and the panel's own", got.StatusCode, got.TLS)
	}
	got = do(t, c, http.MethodGet, "http://"+addr+"/history?name=a%20b", nil)
	if want := "https://" + addr + "/history?name=a%20b"; got.StatusCode != 307 || got.Header.Get("Location") != want {
		t.Errorf("a browser without TLS = %d to %q, want 307 to %q", got.StatusCode, got.Header.Get("Location"), want)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		got = do(t, c, method, "http://"+addr+"/api/v1/runs", header("Authorization", "Bearer "+token))
		if got.StatusCode != 403 || !strings.Contains(got.text, "write https://") {
			t.Errorf("%s with a token without TLS = %d %s; want 403 and what to do", method, got.StatusCode, got.text)
		}
	}
	got = do(t, c, http.MethodGet, "http://"+addr+"/", func(r *http.Request) { r.Host = "evil.example" })
	if got.StatusCode != 421 || got.Header.Get("Location") != "" {
		t.Errorf("another name = %d to %q, want 421", got.StatusCode, got.Header.Get("Location"))
	}
	got = do(t, c, http.MethodPost, "https://"+addr+"/api/v1/session", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(token)) })
	if cookies := got.Cookies(); len(cookies) != 1 || !cookies[0].Secure {
		t.Errorf("the cookie over TLS is not Secure: %v", cookies)
	}
}

// This machine needs no TLS, and may use it.
func TestThisMachineMayDoWithout(t *testing.T) {
	addr, _ := serveTLS(t, func(l net.Listener) net.Listener { return l })
	for _, scheme := range []string{"http", "https"} {
		if got := do(t, client(t), http.MethodGet, scheme+"://"+addr+"/api/v1/health", nil); got.StatusCode != 200 || !strings.Contains(got.text, "fingerprint") {
			t.Errorf("%s: %d %s; want 200 with the fingerprint", scheme, got.StatusCode, got.text)
		}
	}
}

// The panel speaks HTTP/1.1 alone: streams that are reset, floods of CONTINUATION and half-open streams have nothing to
// be sent to, over TLS or without.
func TestNoHTTP2(t *testing.T) {
	addr, _ := serveTLS(t, func(l net.Listener) net.Listener { return elsewhere{l} })
	for _, c := range []struct {
		offers []string
		want   string
	}{{[]string{"h2", "http/1.1"}, "http/1.1"}, {[]string{"h2"}, ""}, {nil, ""}} {
		conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: c.offers})
		if len(c.offers) == 1 {
			if err == nil {
				_ = conn.Close()
				t.Errorf("a client of HTTP/2 alone is let in")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != c.want {
			t.Errorf("of %q the panel chooses %q; want %q", c.offers, got, c.want)
		}
		_ = conn.Close()
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 ") {
		t.Errorf("HTTP/2 without TLS is answered %q, %v; want an answer of HTTP/1.1", line, err)
	}
}

// Connections that send nothing, half a request or half a handshake do not keep the panel
// from ending.
func TestServeEndsWithSlowConnections(t *testing.T) {
	addr, _ := serveTLS(t, func(l net.Listener) net.Listener { return elsewhere{l} })
	for _, sent := range []string{"", "G", "GET / HTTP/1.1\r\nHost: x", "\x16", "\x16\x03\x01"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever opens connections and reads nothing loses the oldest, and somebody else is served.
func TestHostileConnectionsEndFirst(t *testing.T) {
	addr, _ := serveTLS(t, func(l net.Listener) net.Listener { return elsewhere{l} })
	first, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	request := strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 50)
	if _, err := io.WriteString(first, request); err != nil {
		t.Fatal(err)
	}
	for range 110 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, request); err != nil && !errors.Is(err, net.ErrClosed) {
			continue // it has lost its slot already
		}
	}
	got, _ := io.ReadAll(bufio.NewReader(first)) // until it was closed, whatever the error
	if n := bytes.Count(got, []byte("HTTP/1.1 200")); n >= 50 {
		t.Errorf("the oldest of 110 hostile connections got all of its %d answers, want it closed before", n)
	}
	if got := do(t, client(t), http.MethodGet, "https://"+addr+"/api/v1/runs", header("Authorization", "Bearer "+token)); got.StatusCode != 200 {
		t.Errorf("a request with a token beside 110 hostile connections = %d, want 200", got.StatusCode)
	}
}
