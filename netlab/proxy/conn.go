package proxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"eidetic/netlab/hop"
)

// connKey is the context key of a request's *device, or of its QUIC connection.
type connKey struct{}

// conn is a device's connection in the server's set of open ones.
type conn struct {
	net.Conn
	once   sync.Once
	forget func(*conn)
	slow   bool // see Slow
	// host and dest are the target of a CONNECT; a transparent connection has a dest if it may be to any port.
	host     string
	dest     netip.AddrPort
	explicit bool // in a tunnel
	proxied  bool // to the explicit proxy, without a tunnel

	holding sync.Mutex // guards what follows
	corked  bool
	held    []byte
}

// Write holds the bytes back while the connection is corked.
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

// Cork holds writes back until Uncork, since TLS makes a write of each record.
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

// Drained implements wire.Drainer by the bound that Listen set: a socket with more
// unsent bytes is not writable.
func (c *conn) Drained() (bool, error) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false, nil // the next write waits instead
	}
	rc, err := sc.SyscallConn()
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil // likewise
	}
	if err != nil {
		return false, err
	}
	asked := 0
	err = rc.Write(func(fd uintptr) bool {
		asked++
		// Polling makes the kernel wake us when the socket becomes writable.
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p, 0)
		return n != 0 || err != nil && err != unix.EINTR // the next write returns the error
	})
	return asked > 1, err
}

// Slow implements wire.Drainer. On a link with a rate, the first round trips of slow
// start look like those of a fast link.
func (c *conn) Slow() bool { return c.slow }

func (c *conn) Close() error {
	c.once.Do(func() { c.forget(c) })
	return c.Conn.Close()
}

// abort closes at once with a RST and drops unsent bytes, so that the device notices
// and nothing of an old trial goes on.
func (c *conn) abort() {
	inner := c.Conn
	switch a := inner.(type) {
	case interface{ Abort() error }:
		_ = a.Abort() // Close below ends the connection in any case
	case *net.TCPConn:
		_ = a.SetLinger(0)
	}
	_ = c.Close()
}

// CloseWrite closes the sending half, so that the device reads the answer to its end.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(nc net.Conn) error {
	if cw, ok := nc.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return errors.ErrUnsupported
}

// tracked is a listener whose connections are in the server's set.
type tracked struct {
	net.Listener
	s      *Server
	sniffs bool // whether they are a *sniffed each
}

func (s *Server) track(l net.Listener) net.Listener { return tracked{l, s, false} }

func (t tracked) Accept() (net.Conn, error) {
	for {
		inner, err := t.Listener.Accept()
		if err != nil {
			return nil, err
		}
		t.s.bound(inner)
		if t.sniffs { // before it is in the set, where others may abort it
			inner = &sniffed{Conn: inner, r: bufio.NewReader(inner)}
		}
		c := &conn{Conn: inner, forget: t.s.forget, slow: t.s.slow.Load()}
		if t.s.remember(c) {
			return c, nil
		}
		_ = inner.Close() // too many, or closing
	}
}

// seat is a connection's place in the server's set.
type seat struct {
	from   netip.Addr
	number int64 // in the order of their coming
}

// remember takes a connection into the set, unless the server ends. If there is no room, the oldest connection of the
// address that has the most goes, or of an address that has all that one may have: whoever holds connections loses
// them, and the device gets in.
func (s *Server) remember(c *conn) bool {
	from := addrPort(c.RemoteAddr()).Addr()
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return false
	}
	var evicted *conn
	switch {
	case s.of[from] >= maxOfClient:
		evicted = s.oldest(from)
	case len(s.conns) >= maxConnections:
		most := from
		for address, n := range s.of {
			if n > s.of[most] {
				most = address
			}
		}
		evicted = s.oldest(most)
	}
	if evicted != nil {
		s.leave(evicted)
	}
	s.count++
	s.conns[c] = seat{from, s.count}
	s.of[from]++
	s.mu.Unlock()
	if evicted != nil {
		evicted.abort()
	}
	return true
}

// oldest is the oldest connection of an address, or nil; the caller holds the lock.
func (s *Server) oldest(from netip.Addr) (found *conn) {
	for c, at := range s.conns {
		if at.from == from && (found == nil || at.number < s.conns[found].number) {
			found = c
		}
	}
	return found
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(c)
}

// leave takes a connection out of the set, if it is there; the caller holds the lock.
func (s *Server) leave(c *conn) {
	at, counted := s.conns[c]
	if !counted {
		return
	}
	delete(s.conns, c)
	if s.of[at.from]--; s.of[at.from] == 0 {
		delete(s.of, at.from)
	}
}

// device is what is known of a connection.
type device struct {
	hop.Conn
	inner *conn // nil for a connection that is not in the set

	// last is the host of the request before: most requests have the same one.
	last atomic.Pointer[struct{ host, authority string }]
}

// authority caches the result of the function authority.
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

// facts collects what is known of a connection, once for each.
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
		d.Client, d.Port = a.Addr(), a.Port()
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
