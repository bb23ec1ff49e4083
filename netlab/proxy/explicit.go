package proxy

import (
	"bufio"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/elazarl/goproxy"
)

// sniffTimeout bounds the wait for a tunnel's first byte; servers that speak
// first do not exist on the ports that browsers use through a proxy.
const sniffTimeout = 30 * time.Second

// explicit returns the handler of the explicit proxy. goproxy takes the
// CONNECTs; what comes through them goes to the very listeners that serve
// transparent connections, rather than to goproxy's own TLS. So the leaf is for
// the SNI and not for the CONNECT's host, ALPN is as recorded, tickets resume,
// Accept-Encoding and trailers stay, WebSockets are the core's, and there is one
// path to test. Plain requests go to the core directly, because goproxy copies
// bodies without flushing, which would lose the timing of a replay.
func (s *Server) explicit() http.Handler {
	p := goproxy.NewProxyHttpServer()
	p.KeepAcceptEncoding = true
	p.KeepHeader = true
	p.Tr, p.ConnectDial = nil, nil // it never connects to anyone
	p.Logger = slog.NewLogLogger(s.c.Log.Handler(), slog.LevelDebug)
	p.NonproxyHandler = http.HandlerFunc(s.plain)
	p.OnRequest().HandleConnect(goproxy.FuncHttpsHandler(func(host string, ctx *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		name, dest, ok := target(host)
		if !ok {
			ctx.Resp = goproxy.NewResponse(ctx.Req, goproxy.ContentTypeText, http.StatusBadRequest, "CONNECT needs host:port\n")
			return goproxy.RejectConnect, host
		}
		return &goproxy.ConnectAction{
			Action: goproxy.ConnectHijack,
			Hijack: func(r *http.Request, client net.Conn, _ *goproxy.ProxyCtx) { s.tunnel(client, name, dest) },
		}, host
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			p.ServeHTTP(w, r)
			return
		}
		s.plain(w, r)
	})
}

// plain serves a request in absolute form, or one that took the proxy for a
// web server: then its Host says what it wants, which is how a person reaches
// the certificate page by the proxy's own address.
func (s *Server) plain(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*device).Conn
	c.Explicit, c.Protocol = true, "http/1.1"
	host := r.Host
	if absolute(r.URL) {
		if r.URL.Scheme != "http" {
			http.Error(w, "the proxy takes http:// URLs and CONNECT, not "+r.URL.Scheme+"://", http.StatusBadRequest)
			return
		}
		host, c.Dest = r.URL.Host, netip.AddrPort{}
	}
	for _, name := range []string{"Proxy-Connection", "Proxy-Authorization"} { // meant for us (RFC 9110, 7.6.1)
		r.Header.Del(name)
	}
	s.hand(w, r, c, "http", host)
}

// target splits a CONNECT's host:port.
func target(host string) (name string, dest netip.AddrPort, ok bool) {
	name, port, err := net.SplitHostPort(host)
	if err != nil || name == "" {
		return "", dest, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", dest, false
	}
	addr, _ := netip.ParseAddr(name) // a name leaves the zero Addr
	return name, netip.AddrPortFrom(addr, uint16(n)), true
}

// tunnel answers a CONNECT and gives the connection to the listener that its
// first byte asks for. It returns at once; goproxy has let go of the connection.
func (s *Server) tunnel(client net.Conn, host string, dest netip.AddrPort) {
	c := &conn{forget: s.forget, host: host, dest: dest, explicit: true}
	if old, ok := client.(*conn); ok { // one entry in the set, not two
		old.once.Do(func() { s.forget(old) })
		client = old.Conn
	}
	buffered := bufio.NewReader(client)
	c.Conn = &sniffed{Conn: client, r: buffered}
	if !s.remember(c) {
		_ = client.Close()
		return
	}
	s.done.Go(func() {
		_ = client.SetDeadline(time.Now().Add(sniffTimeout))
		_, err := client.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n"))
		var first []byte
		if err == nil {
			first, err = buffered.Peek(1)
		}
		if err == nil {
			err = client.SetDeadline(time.Time{})
		}
		if err != nil {
			_ = c.Close() // the client went away
			return
		}
		to := s.tunnels.plain
		if first[0] == 22 { // a TLS handshake record, RFC 8446, 5.1
			to = s.tunnels.secure
		}
		if !to.give(c) {
			_ = c.Close()
		}
	})
}

// sniffed is a connection whose first bytes were looked at.
type sniffed struct {
	net.Conn
	r *bufio.Reader
}

func (s *sniffed) Read(p []byte) (int, error) { return s.r.Read(p) }

func (s *sniffed) Abort() error {
	switch c := s.Conn.(type) {
	case interface{ Abort() error }:
		return c.Abort()
	case *net.TCPConn:
		return c.SetLinger(0)
	}
	return nil
}

// tunnels are listeners fed by the explicit proxy.
type tunnels struct{ plain, secure *feed }

func newTunnels() *tunnels { return &tunnels{newFeed(), newFeed()} }

func (t *tunnels) close() {
	_ = t.plain.Close() // a feed's Close has no error
	_ = t.secure.Close()
}

// feed is a net.Listener whose connections are given to it.
type feed struct {
	c    chan net.Conn
	done chan struct{}
	once sync.Once
}

func newFeed() *feed { return &feed{c: make(chan net.Conn), done: make(chan struct{})} }

func (f *feed) give(c net.Conn) bool {
	select {
	case f.c <- c:
		return true
	case <-f.done:
		return false
	}
}

func (f *feed) Accept() (net.Conn, error) {
	select {
	case c := <-f.c:
		return c, nil
	case <-f.done:
		return nil, net.ErrClosed
	}
}

func (f *feed) Close() error {
	f.once.Do(func() { close(f.done) })
	return nil
}

func (f *feed) Addr() net.Addr { return &net.TCPAddr{} }
