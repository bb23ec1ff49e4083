package proxy

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
)

type (
	connKey   struct{} // the net.Conn of a request
	deviceKey struct{} // what is known of it, a Conn
)

// conn is a device's connection in the set of those open.
type conn struct {
	net.Conn
	once   sync.Once
	forget func(*conn)
	// host and dest are what a CONNECT asked for; empty on transparent ones.
	host     string
	dest     netip.AddrPort
	explicit bool
}

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
		c := &conn{Conn: inner, forget: t.s.forget}
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

// facts says what is known of a connection.
func facts(nc net.Conn) (c Conn, inner *conn) {
	if t, ok := nc.(*tls.Conn); ok {
		state := t.ConnectionState()
		switch state.Version {
		case tls.VersionTLS13:
			c.TLS = "tls/1.3"
		default:
			c.TLS = "tls/1.2"
		}
		nc = t.NetConn()
	}
	if a := addrPort(nc.RemoteAddr()); a.IsValid() {
		c.Client = a.Addr()
	}
	c.Dest = addrPort(nc.LocalAddr())
	inner, _ = nc.(*conn)
	if inner != nil && inner.explicit {
		c.Dest, c.Explicit = inner.dest, true
	}
	return c, inner
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
