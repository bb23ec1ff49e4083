package proxy

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/elazarl/goproxy"
)

// sniffTimeout bounds the wait for a tunnel's first byte. In the protocols that browsers
// use through a proxy the client speaks first.
const sniffTimeout = 30 * time.Second

// explicit returns the handler of the explicit proxy, which goproxy is: it accepts
// CONNECT, tells requests to a proxy from those to a web server, removes the fields that
// are meant for a proxy (RFC 9110, 7.6.1), writes answers with their trailers, and relays
// upgrades. The core answers in place of the origins. See the package comment for what
// goproxy is not used for.
func (s *Server) explicit() http.Handler {
	p := goproxy.NewProxyHttpServer()
	p.KeepAcceptEncoding = true
	p.Tr, p.ConnectDial = nil, nil // it never connects to anyone
	p.Logger = slog.NewLogLogger(s.c.Log.Handler(), slog.LevelDebug)
	// A request in origin form took the proxy for a web server: its Host says what it
	// wants, which is how a person reaches the certificate page by the proxy's own address.
	p.NonproxyHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.plain(w, r, r.Host, true) })
	p.OnRequest().DoFunc(func(r *http.Request, ctx *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		if r.URL.Scheme != "http" {
			text := "the proxy takes http:// URLs and CONNECT, not " + r.URL.Scheme + "://\n"
			return r, goproxy.NewResponse(r, goproxy.ContentTypeText, http.StatusBadRequest, text)
		}
		ctx.RoundTripper = goproxy.RoundTripperFunc(s.roundTrip)
		return r, nil
	})
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
		p.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), clientKey{}, w)))
	})
}

// clientKey is the context key of the http.ResponseWriter that goproxy writes to.
type clientKey struct{}

// roundTrip answers a request in absolute form from the core.
func (s *Server) roundTrip(r *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
	client := r.Context().Value(clientKey{}).(http.ResponseWriter)
	return answerFrom(func(w http.ResponseWriter) { s.plain(w, r, r.URL.Host, false) }, r, client)
}

// plain hands a request that was not sent through a tunnel to the core. isDirect says that
// the client knew no proxy, so that the connection's destination is the request's too.
func (s *Server) plain(w http.ResponseWriter, r *http.Request, host string, isDirect bool) {
	c := r.Context().Value(connKey{}).(*device).Conn
	c.Explicit, c.Protocol = true, "http/1.1"
	if !isDirect {
		c.Dest = netip.AddrPort{}
	}
	s.hand(w, r, c, "http", host)
}

// deviceOf returns the connection of a request to the explicit proxy, or nil.
func deviceOf(r *http.Request) *conn {
	if d, ok := r.Context().Value(connKey{}).(*device); ok {
		return d.inner
	}
	return nil
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

// tunnel answers a CONNECT and gives the connection to the listener for the protocol of
// its first byte. It returns at once; goproxy does not use the connection any more.
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
		_ = client.SetDeadline(time.Now().Add(sniffTimeout)) // a closed connection fails below
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

// sniffed is a connection whose first bytes were read ahead.
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

// tunnels are listeners for connections that were accepted elsewhere: by the explicit
// proxy, or for Config.Other.
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
