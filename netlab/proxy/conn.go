package proxy

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

type (
	connKey   struct{} // the *device of a request, or its QUIC connection
	deviceKey struct{} // what is known of it, a Conn
)

// conn is a device's connection in the set of those open.
type conn struct {
	net.Conn
	once   sync.Once
	forget func(*conn)
	slow   bool // see Slow
	// host and dest are what a CONNECT asked for; empty on transparent ones.
	host     string
	dest     netip.AddrPort
	explicit bool

	holding sync.Mutex // guards what follows
	corked  bool
	held    []byte
}

// Write keeps what is written while the connection is corked.
func (c *conn) Write(b []byte) (int, error) {
	c.holding.Lock()
	if c.corked {
		c.held = append(c.held, b...)
		c.holding.Unlock()
		return len(b), nil
	}
	c.holding.Unlock()
	return c.Conn.Write(b)
}

// Cork holds writes back until Uncork: TLS makes one of each record.
func (c *conn) Cork() {
	c.holding.Lock()
	c.corked = true
	c.holding.Unlock()
}

// Uncork sends what was held.
func (c *conn) Uncork() error {
	c.holding.Lock()
	defer c.holding.Unlock()
	c.corked = false
	b := c.held
	c.held = c.held[:0]
	if len(b) == 0 {
		return nil
	}
	_, err := c.Conn.Write(b)
	return err
}

// Drained implements wire.Drainer by what Listen told the kernel: a socket with
// more than that unsent is not writable.
func (c *conn) Drained() (bool, error) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false, nil // a write tells
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false, err
	}
	asked := 0
	err = rc.Write(func(fd uintptr) bool {
		asked++
		// Asking is what has the kernel wake us when the answer changes.
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p, 0)
		return n != 0 || err != nil && err != unix.EINTR // an error is the next write's
	})
	return asked > 1, err
}

// Slow implements wire.Drainer: on a link with a rate, a few round trips of
// slow start look like a fast one.
func (c *conn) Slow() bool { return c.slow }

func (c *conn) Close() error {
	c.once.Do(func() { c.forget(c) })
	return c.Conn.Close()
}

// abort closes at once, without what still waits to be sent: a RST, so that
// the device notices and nothing of an old trial runs on.
func (c *conn) abort() {
	inner := c.Conn
	switch a := inner.(type) {
	case interface{ Abort() error }:
		_ = a.Abort() // it is gone either way
	case *net.TCPConn:
		_ = a.SetLinger(0)
	}
	_ = c.Close()
}

// CloseWrite lets http.Server end an answer in an orderly way.
func (c *conn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return nil
}

// tracked is a listener whose connections are in the set.
type tracked struct {
	net.Listener
	s *Server
}

func (s *Server) track(l net.Listener) net.Listener { return tracked{l, s} }

func (t tracked) Accept() (net.Conn, error) {
	for {
		inner, err := t.Listener.Accept()
		if err != nil {
			return nil, err
		}
		t.s.bound(inner)
		c := &conn{Conn: inner, forget: t.s.forget, slow: t.s.slow.Load()}
		if t.s.remember(c) {
			return c, nil
		}
		_ = inner.Close() // too many, or closing
	}
}

func (s *Server) remember(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || len(s.conns) >= maxConnections {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// device is what is known of a connection.
type device struct {
	Conn
	inner *conn // nil when it is not one of ours

	// The host of the request before, since most have the same.
	last atomic.Pointer[struct{ host, authority string }]
}

// authority is the function of that name.
func (d *device) authority(scheme, host string) (string, error) {
	if last := d.last.Load(); last != nil && last.host == host {
		return last.authority, nil
	}
	a, err := authority(scheme, host)
	if err == nil {
		d.last.Store(&struct{ host, authority string }{host, a})
	}
	return a, err
}

// facts finds that out, once for a connection.
func (s *Server) facts(nc net.Conn) *device {
	d := &device{}
	d.Protocol = "http/1.1"
	if t, ok := nc.(*tls.Conn); ok {
		state := t.ConnectionState()
		if state.NegotiatedProtocol == "h2" {
			d.Protocol = "h2"
		}
		switch state.Version {
		case tls.VersionTLS13:
			d.TLS = "tls/1.3"
		default:
			d.TLS = "tls/1.2"
		}
		nc = t.NetConn()
	}
	if a := addrPort(nc.RemoteAddr()); a.IsValid() {
		d.Client = a.Addr()
	}
	d.Dest = addrPort(nc.LocalAddr())
	d.inner, _ = nc.(*conn)
	if d.inner != nil && d.inner.explicit {
		d.Dest, d.Explicit = d.inner.dest, true
	}
	d.QUIC = s.c.QUIC != nil && d.TLS != "" && !d.Explicit
	return d
}

func addrPort(a net.Addr) netip.AddrPort {
	var ap netip.AddrPort
	switch a := a.(type) {
	case *net.TCPAddr:
		ap = a.AddrPort()
	case *net.UDPAddr:
		ap = a.AddrPort()
	default:
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
