// Package wire speaks HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113) with a device. In come
// connections, whose TLS handshake is done here; out go *http.Request to a handler. What the
// handler writes is sent as given: fields in their order and case, informational answers at
// once, trailers, and a complete answer in one piece. net/http's server does not do that, nor
// does its HTTP/2 let many streams write to a connection without waiting for one another.
package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"eidetic/internal/lab"
)

// Server holds what its connections have in common. All fields are required.
type Server struct {
	Handler http.Handler
	// MaxHeader bounds the bytes of a request's header.
	MaxHeader int
	// HeaderTimeout bounds the handshake and the time from the first byte of a
	// header to its last; IdleTimeout the wait for the next request, and for the
	// next bytes of a body.
	HeaderTimeout, IdleTimeout time.Duration
	// Context returns what the contexts of a connection's requests descend from.
	Context func(net.Conn) context.Context
	// Log gets the errors of connections, at debug level unless a person can do something.
	Log *slog.Logger

	failed handshakes
}

// Corker is a connection that can hold several writes back to send them as one.
type Corker interface {
	Cork()
	Uncork() error
}

// Drainer is a connection that knows whether the bytes written to it were sent.
type Drainer interface {
	// Drained waits until little is left to be sent, and tells whether it had to.
	Drained() (waited bool, err error)
	// Slow tells whether the link is known to be the bottleneck, so that it need not be
	// measured.
	Slow() bool
}

// Serve does the handshake of a *tls.Conn, serves the connection until it ends
// and closes it, unless a handler has taken it over.
func (s *Server) Serve(nc net.Conn) {
	if !s.serve(nc) {
		_ = nc.Close() // everything was sent
	}
}

// serve tells whether a handler has taken the connection over.
func (s *Server) serve(nc net.Conn) bool {
	var state *tls.ConnectionState
	if t, ok := nc.(*tls.Conn); ok {
		_ = nc.SetDeadline(time.Now().Add(s.HeaderTimeout)) // the handshake reports a dead connection
		if err := t.Handshake(); err != nil {
			s.tell(nc, err)
			return false
		}
		_ = nc.SetDeadline(time.Time{})
		facts := t.ConnectionState()
		state = &facts
	}
	c := connection{
		s: s, nc: nc, tls: state, base: s.Context(nc), remote: nc.RemoteAddr().String(),
	}
	under := nc
	if t, ok := nc.(*tls.Conn); ok {
		under = t.NetConn()
	}
	c.corker, _ = under.(Corker)
	c.drainer, _ = under.(Drainer)
	if state != nil && state.NegotiatedProtocol == "h2" {
		newConn2(c, bufio.NewReaderSize(nc, frameSize)).serve()
		return false
	}
	c1 := newConn1(c)
	c1.serve()
	return c1.taken
}

// tell tells of a handshake that has failed.
func (s *Server) tell(nc net.Conn, err error) {
	device, _, _ := net.SplitHostPort(nc.RemoteAddr().String()) // without a port it is nobody's
	if why := whyFailed(err); why != "" && s.failed.isNews(device, why) {
		s.Log.Warn("a device could not be spoken to", "from", device, "reason", why, "error", err)
		return
	}
	s.Log.Debug("a TLS handshake failed", "from", nc.RemoteAddr(), "error", err)
}

// connection is what the connections of both protocols have in common.
type connection struct {
	s       *Server
	nc      net.Conn
	corker  Corker  // nil when there is none
	drainer Drainer // likewise
	tls     *tls.ConnectionState
	base    context.Context
	remote  string
}

// maxBuffered bounds the bytes of answers that wait in RAM for the device to take them.
const maxBuffered = 64 << 10

// send writes to the device: many TLS records, but one packet train.
func (c *connection) send(b []byte) error {
	const record = 16 << 10
	if c.corker == nil || len(b) <= record {
		_, err := c.nc.Write(b)
		return err
	}
	for len(b) > 0 {
		n := min(len(b), maxBuffered)
		c.corker.Cork()
		_, err := c.nc.Write(b[:n])
		if err = errors.Join(err, c.corker.Uncork()); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// linger closes our side and reads what the device still sends, so that no reset makes the
// device's system drop our answer.
func (c *connection) linger() {
	if w, ok := c.nc.(interface{ CloseWrite() error }); !ok || w.CloseWrite() != nil {
		return
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	_, _ = io.Copy(io.Discard, c.nc) // the deadline bounds it
}

// complain logs a handler's panic, but for http.ErrAbortHandler, by which a handler cuts an
// answer off.
func (c *connection) complain(reason any) {
	if reason != http.ErrAbortHandler {
		c.s.Log.Error("a request's handler panicked", "from", c.remote, "reason", reason)
	}
}

// protocol is the part of an answer that differs between HTTP/1.1 and HTTP/2. Nothing need be
// sent before flush or finish.
type protocol interface {
	// head starts an answer; length is its Content-Length, or -1. An informational answer is
	// complete with it and is sent at once.
	head(status int, reason string, fields []lab.HeaderField, length int64, bodiless bool) error
	// data takes a piece of the body; last says that neither more of it nor a trailer follows.
	data(b []byte, last bool) error
	flush() error
	finish(trailer []lab.HeaderField) error
	hijack() (net.Conn, *bufio.ReadWriter, error)
}

// appendValue appends a field's value, with blanks in place of characters that would end it.
func appendValue(b []byte, v string) []byte {
	n := len(b)
	b = append(b, v...)
	for i := n; i < len(b); i++ {
		if c := b[i]; c == '\r' || c == '\n' || c == 0 {
			b[i] = ' '
		}
	}
	return b
}
