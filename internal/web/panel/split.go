package panel

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// firstByte is how long a connection may wait before it sends its first byte.
const firstByte = 10 * time.Second

// splitter hands the connections of one listener to two: those that begin with TLS, and the
// others. So one port serves both, and http:// in front of the box's address leads somewhere.
type splitter struct {
	under         net.Listener
	secure, plain *splitHalf
}

// split returns a splitter of the listener; run must be called.
func split(under net.Listener) *splitter {
	half := func() *splitHalf {
		return &splitHalf{addr: under.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	}
	return &splitter{under: under, secure: half(), plain: half()}
}

// run accepts connections until the context ends, and returns when all of them were handed
// over or closed.
func (s *splitter) run(ctx context.Context) error {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	unwatch := context.AfterFunc(ctx, func() { _ = s.under.Close() }) // Accept returns with an error
	defer unwatch()
	for pause := time.Duration(0); ; {
		c, err := s.under.Accept()
		if err == nil {
			pause = 0
			waiting.Go(func() { s.sort(ctx, c) })
			continue
		}
		var temporary interface{ Temporary() bool }
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.As(err, &temporary) || !temporary.Temporary():
			return err
		}
		// As net/http does: the process is out of descriptors, which others may free.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// sort waits for the first byte of a connection and hands it over.
func (s *splitter) sort(ctx context.Context, c net.Conn) {
	unwatch := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Now()) })
	defer unwatch()
	began := &begunConn{Conn: c}
	err := c.SetReadDeadline(time.Now().Add(firstByte))
	if err == nil {
		_, err = c.Read(began.first[:])
	}
	if !unwatch() || err != nil || c.SetReadDeadline(time.Time{}) != nil {
		_ = c.Close() // it sent nothing, or the service stops
		return
	}
	began.more = true
	half := s.plain
	if began.first[0] == 0x16 { // a TLS record of a handshake (RFC 8446, section 5.1)
		half = s.secure
	}
	select {
	case half.conns <- began:
	case <-half.closed:
		_ = c.Close()
	case <-ctx.Done():
		_ = c.Close()
	}
}

// begunConn is a connection whose first byte was read.
type begunConn struct {
	net.Conn
	first [1]byte
	more  bool // first was not returned yet
}

// Read implements net.Conn.
func (c *begunConn) Read(b []byte) (int, error) {
	if !c.more || len(b) == 0 {
		return c.Conn.Read(b)
	}
	c.more = false
	b[0] = c.first[0]
	return 1, nil
}

// NetConn is the connection below.
func (c *begunConn) NetConn() net.Conn { return c.Conn }

// splitHalf is the listener of one kind of connections.
type splitHalf struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (h *splitHalf) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *splitHalf) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *splitHalf) Addr() net.Addr { return h.addr }
