package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elazarl/goproxy"

	"eidetic/internal/lab"
)

// sniffTimeout bounds the wait for a tunnel's first byte. In the protocols that browsers
// use through a proxy the client speaks first.
const sniffTimeout = 30 * time.Second

// serveProxy serves what the explicit proxy's listener accepts: a connection that begins with CONNECT by goproxy, any
// other, whose requests the core answers, as the transparent ones.
func (s *Server) serveProxy(l net.Listener) {
	connects := newFeed()
	s.runConnects(connects)
	s.accept(tracked{l, s, true}, func(nc net.Conn) {
		c, _ := nc.(*conn) // tracked made both
		ahead, _ := c.Conn.(*sniffed)
		buffered := ahead.r
		_ = c.SetDeadline(time.Now().Add(headerTimeout)) // a closed connection fails below
		const connect = "CONNECT "
		begin, err := buffered.Peek(1)
		if err == nil && begin[0] == connect[0] { // a client of SOCKS sends less, and waits for an answer
			begin, err = buffered.Peek(len(connect))
		}
		switch {
		case c.SetDeadline(time.Time{}) != nil || err != nil && len(begin) == 0:
			_ = c.Close() // the client went away
		case string(begin) == connect:
			if !connects.give(c) {
				_ = c.Close()
			}
		default:
			c.proxied = true
			s.wire.Serve(c)
		}
	})
}

// connect returns the handler for CONNECT, which goproxy is. See the package comment for what it is not used for.
func (s *Server) connect() http.Handler {
	p := goproxy.NewProxyHttpServer()
	p.Tr, p.ConnectDial = nil, nil // it never connects to anyone
	p.Logger = slog.NewLogLogger(s.c.Log.Handler(), slog.LevelDebug)
	refuse := func(w http.ResponseWriter) {
		http.Error(w, "a connection that began with CONNECT takes no other requests", http.StatusBadRequest)
	}
	p.NonproxyHandler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w) })
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
		if r.Method != http.MethodConnect {
			refuse(w)
			return
		}
		p.ServeHTTP(keeping{w}, r)
	})
}

// keeping is a response to a CONNECT. Some clients send the first bytes of the tunnel with it, without waiting for the
// answer, and net/http may have read them; goproxy takes the connection alone.
type keeping struct{ http.ResponseWriter }

// Hijack implements http.Hijacker: the connection that it returns is a kept one.
func (k keeping) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	client, rw, err := http.NewResponseController(k.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	read, _ := rw.Reader.Peek(rw.Reader.Buffered()) // they are there
	return &kept{client, bytes.Clone(read)}, rw, nil
}

// kept is a connection from which more was read than its CONNECT.
type kept struct {
	net.Conn
	read []byte
}

// plain hands a request that was not sent through a tunnel to the core. One in origin form took the proxy for a web
// server: its Host says what it wants, which is how a person reaches the certificate page by the proxy's own address.
func (s *Server) plain(w http.ResponseWriter, r *http.Request, d *device) {
	c, host := d.Conn, r.Host
	c.Explicit = true
	if r.URL.Host != "" { // in absolute form
		if r.URL.Scheme != "http" {
			http.Error(w, "the proxy takes http:// URLs and CONNECT, not "+r.URL.Scheme+"://", http.StatusBadRequest)
			return
		}
		c.Dest, r.RequestURI = netip.AddrPort{}, lab.ParseURL(r.RequestURI).Target()
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Proxy-") { // for the proxy (RFC 9110, 7.6.1)
			delete(r.Header, name)
		}
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

// tunnel answers a CONNECT and gives the connection to the listener for the protocol of
// its first byte. It returns at once; goproxy does not use the connection any more.
func (s *Server) tunnel(client net.Conn, host string, dest netip.AddrPort) {
	c := &conn{forget: s.forget, slow: s.slow.Load(), host: host, dest: dest, explicit: true}
	var read []byte
	if k, ok := client.(*kept); ok {
		client, read = k.Conn, k.read
	}
	if old, ok := client.(*conn); ok { // one entry in the set, not two
		old.once.Do(func() { s.forget(old) })
		client = old.Conn
	}
	buffered := bufio.NewReader(io.MultiReader(bytes.NewReader(read), client))
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

func (s *sniffed) CloseWrite() error { return closeWrite(s.Conn) }

// SyscallConn implements syscall.Conn, for Drained.
func (s *sniffed) SyscallConn() (syscall.RawConn, error) {
	if sc, ok := s.Conn.(syscall.Conn); ok {
		return sc.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

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
