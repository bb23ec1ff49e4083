package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

// proxied returns a client that sends requests for http:// URLs to the explicit proxy.
func (b *box) proxied(t *testing.T) *http.Client {
	proxyURL, err := url.Parse("http://user:secret@" + b.explicit)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(proxyURL), DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: testlab.Hang}
}

// TestExplicitProxyKeepsTiming: what the core flushes reaches the client before the core
// writes more, and so does an informational response.
func TestExplicitProxyKeepsTiming(t *testing.T) {
	next := make(chan struct{})
	b := serve(t, &fakeCore{serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		<-next // the client has the hints
		w.Header().Set("X-Seen", fmt.Sprint(r.Header["Proxy-Authorization"], r.Header["Proxy-Connection"]))
		for _, piece := range []string{"one", "two"} {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
			<-next // the client has the piece
		}
		w.Header().Set(http.TrailerPrefix+"X-End", "yes")
	}})
	hints := ""
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		hints = fmt.Sprint(status, " ", h.Get("Link"))
		next <- struct{}{}
		return nil
	}})
	req, err := http.NewRequestWithContext(ctx, "GET", "http://www.shop.test/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.proxied(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if want := "103 </a.css>"; hints != want || r.Header.Get("Link") != "" {
		t.Errorf("informational response %q and final Link %q, want %q and none", hints, r.Header.Get("Link"), want)
	}
	if got := r.Header.Get("X-Seen"); got != "[] []" {
		t.Errorf("the core sees the fields %s, which are for the proxy; want none", got)
	}
	for _, want := range []string{"one", "two"} {
		piece := make([]byte, len(want))
		if _, err := io.ReadFull(r.Body, piece); err != nil || string(piece) != want {
			t.Fatalf("read %q, %v; want %q", piece, err, want)
		}
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(r.Body); err != nil || len(rest) > 0 || r.Trailer.Get("X-End") != "yes" {
		t.Errorf("the end is %q, %v with the trailer %v; want the trailer X-End", rest, err, r.Trailer)
	}
}

// TestExplicitProxyCutsOff: an answer that the core aborts is incomplete for the client.
func TestExplicitProxyCutsOff(t *testing.T) {
	b := serve(t, &fakeCore{serve: func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/some" {
			_, _ = io.WriteString(w, "some")
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}})
	c := b.proxied(t)
	if r, err := c.Get("http://www.shop.test/nothing"); err == nil {
		r.Body.Close()
		t.Errorf("an aborted request is answered with %s, want an error", r.Status)
	}
	r, err := c.Get("http://www.shop.test/some")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if got, err := io.ReadAll(r.Body); err == nil || string(got) != "some" {
		t.Errorf("read %q, %v; want %q and an error", got, err, "some")
	}
}

// TestExplicitProxyRefusesOtherSchemes: only http:// URLs come without a tunnel.
func TestExplicitProxyRefusesOtherSchemes(t *testing.T) {
	b := serve(t, &fakeCore{})
	for _, line := range []string{"GET ftp://www.test/ HTTP/1.1", "GET https://www.test/ HTTP/1.1"} {
		c, err := net.Dial("tcp", b.explicit)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(testlab.Hang))
		fmt.Fprintf(c, "%s\r\nHost: www.test\r\nConnection: close\r\n\r\n", line)
		if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
			t.Errorf("%s is answered with %q, %v; want 400", line, got, err)
		}
		c.Close()
	}
}

// TestUpgradeInAbsoluteForm: a WebSocket can be opened without a tunnel, and both ends of
// it are closed when the core ends it.
func TestUpgradeInAbsoluteForm(t *testing.T) {
	b := serve(t, &fakeCore{serve: func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(c, line)
	}})
	c, err := net.Dial("tcp", b.explicit)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testlab.Hang))
	fmt.Fprint(c, "GET http://ws.test/chat HTTP/1.1\r\nHost: ws.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nping\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade is answered with %+v, %v; want 101", resp, err)
	}
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "ping\n" {
		t.Errorf("the upgraded connection gave %q, %v; want %q", rest, err, "ping\n")
	}
	eventually(t, "the end of the connection", func() bool { return b.Connections() == 0 })
}

// FuzzConnect: the host and port of a CONNECT are refused, or are ones that can be connected to.
func FuzzConnect(f *testing.F) {
	for _, s := range []string{"a.test:443", "[::1]:80", ":1", "a:0", "a:65536", "a", "[::1", "a:b:1", "192.0.2.1:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		defer testlab.Input(t)()
		name, dest, ok := target(host)
		if ok && (name == "" || dest.Port() == 0) {
			t.Errorf("target(%q) = %q, %v", host, name, dest)
		}
	})
}

// TestTunnelWithoutWaiting: what a client sends right behind its CONNECT is the beginning of the tunnel.
func TestTunnelWithoutWaiting(t *testing.T) {
	b := serve(t, &fakeCore{})
	for _, version := range []string{"1.0", "1.1"} {
		c := dialTCP(t, b.explicit)
		const request = "GET /now HTTP/1.1\r\nHost: www.test\r\nConnection: close\r\n\r\n"
		fmt.Fprintf(c, "CONNECT www.test:80 HTTP/%s\r\nHost: www.test:80\r\n\r\n%s", version, request)
		got, err := io.ReadAll(c)
		if _, answer, _ := strings.Cut(string(got), "\r\n\r\n"); !strings.Contains(answer, "http://www.test/now") || err != nil {
			t.Errorf("HTTP/%s: read %q, %v; want the answer to the request behind the CONNECT", version, got, err)
		}
	}
}

// TestExplicitProxyRefusesSOCKS: a client of SOCKS, which waits for an answer to its few bytes, gets one at once.
func TestExplicitProxyRefusesSOCKS(t *testing.T) {
	b := serve(t, &fakeCore{})
	c := dialTCP(t, b.explicit)
	_ = c.SetDeadline(time.Now().Add(headerTimeout / 2))
	_, _ = c.Write([]byte{5, 1, 0})
	if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
		t.Errorf("SOCKS is answered with %q, %v; want 400 at once", got, err)
	}
}

// halfOpen is a connection that notes the end of its sending half.
type halfOpen struct {
	net.Conn
	closed bool
}

func (h *halfOpen) CloseWrite() error { h.closed = true; return nil }

// TestCloseWriteReachesTheSocket: the sending half is closed behind what was read ahead, too, and a connection that has
// no halves says so.
func TestCloseWriteReachesTheSocket(t *testing.T) {
	socket := &halfOpen{}
	c := &conn{Conn: &sniffed{Conn: &sniffed{Conn: socket}}}
	if err := c.CloseWrite(); err != nil || !socket.closed {
		t.Errorf("CloseWrite() = %v, the socket's sending half is closed: %v; want nil, true", err, socket.closed)
	}
	if err := (&conn{Conn: &sniffed{}}).CloseWrite(); err == nil {
		t.Error("CloseWrite() of a connection without halves = nil, want an error")
	}
}
