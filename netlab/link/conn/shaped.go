package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// shaped is a connection that passes through a Link. Writes go towards the device,
// reads come from it.
type shaped struct {
	net.Conn // the connection below
	l        *Link
	down, up *half
	dead     chan struct{} // closed with the connection below

	// The link's lock guards all below.
	got        bytes.Buffer // delivered and not read yet
	gotErr     error
	ended      bool // writes fail
	closed     bool // reads fail too
	readable   chan struct{}
	readUntil  deadline
	writeUntil deadline
	killed     sync.Once
}

// wrap returns a shaped connection; the caller holds the link's lock.
func (l *Link) wrap(raw net.Conn) *shaped {
	c := &shaped{
		Conn: raw, l: l, down: newHalf(l.down), up: newHalf(l.up),
		dead: make(chan struct{}), readable: make(chan struct{}, 1),
		readUntil: newDeadline(), writeUntil: newDeadline(),
	}
	if t, ok := raw.LocalAddr().(*net.TCPAddr); ok {
		if a, ok := netip.AddrFromSlice(t.IP); ok {
			c.down.extra = l.extra[a.Unmap()]
			c.up.extra = c.down.extra
		}
	}
	// The kernel has completed the handshake at once. Over the link the device's
	// first bytes would leave one RTT after its SYN, and arrive half an RTT later.
	rtt := l.profile.RTT + c.up.extra
	c.up.earliest = l.clock().Add(rtt + rtt/2)
	l.open[c] = struct{}{}
	l.done.Go(c.receive)
	l.done.Go(func() { c.up.deliver(c.dead, c.arrive) })
	l.done.Go(func() { c.down.deliver(c.dead, c.leave) })
	return c
}

// receive reads what the device sends and enqueues it.
func (c *shaped) receive() {
	for {
		buf := make([]byte, 16*segment)
		n, err := c.Conn.Read(buf)
		c.l.mu.Lock()
		if n > 0 {
			c.up.hold(n)
			c.up.line.enqueue(c.up, buf[:n], c.l.clock())
		}
		if err != nil {
			c.up.line.enqueueEnd(c.up, err, c.l.clock())
			c.l.mu.Unlock()
			return
		}
		full := c.up.held > window
		c.l.mu.Unlock()
		for full {
			select {
			case <-c.up.room:
			case <-c.dead:
				return
			}
			c.l.mu.Lock()
			full = c.up.held > window
			c.l.mu.Unlock()
		}
	}
}

// arrive hands a piece to the reader.
func (c *shaped) arrive(p piece) bool {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	switch {
	case p.end != nil:
		c.gotErr = p.end
	case c.closed:
		c.up.release(len(p.data))
	default:
		c.got.Write(p.data)
	}
	c.signal()
	return p.end == nil
}

// signal wakes a reader.
func (c *shaped) signal() {
	select {
	case c.readable <- struct{}{}:
	default:
	}
}

// leave sends a piece to the device.
func (c *shaped) leave(p piece) bool {
	if p.end != nil {
		if errors.Is(p.end, errClosed) {
			c.kill()
			return false
		}
		if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
			_ = cw.CloseWrite() // fails when the device has closed the connection
		}
		return true
	}
	_, err := c.Conn.Write(p.data)
	c.l.mu.Lock()
	c.down.release(len(p.data))
	c.l.mu.Unlock()
	if err != nil {
		c.kill()
		return false
	}
	return true
}

// errClosed is the end of a stream that Close ended, not CloseWrite.
var errClosed = net.ErrClosed

// kill closes the connection below and ends the goroutines.
func (c *shaped) kill() {
	c.killed.Do(func() {
		_ = c.Conn.Close()
		close(c.dead)
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		delete(c.l.open, c)
		c.closed, c.ended = true, true
		for _, h := range []*half{c.down, c.up} {
			h.line.queued -= int64(h.held)
			h.held, h.flying = 0, nil
			if len(h.pending) > 0 { // the line still has this half in its turns
				h.pending = []piece{{end: errClosed}}
			}
		}
		c.signal()
	})
}

// Abort closes the connection at once; bytes in flight are lost.
func (c *shaped) Abort() error {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // the connection is closed next in any case
	}
	c.kill()
	return nil
}

// Close closes the connection when all written bytes have arrived.
func (c *shaped) Close() error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed, c.ended = true, true
	c.up.release(c.got.Len())
	c.got = bytes.Buffer{}
	c.down.line.enqueueEnd(c.down, errClosed, c.l.clock())
	c.signal()
	return nil
}

// CloseWrite ends the stream to the device.
func (c *shaped) CloseWrite() error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.ended {
		return net.ErrClosed
	}
	c.ended = true
	c.down.line.enqueueEnd(c.down, io.EOF, c.l.clock())
	return nil
}

// Read implements net.Conn.
func (c *shaped) Read(b []byte) (int, error) {
	for {
		c.l.mu.Lock()
		expired := c.readUntil.expired()
		switch {
		case c.closed:
			c.l.mu.Unlock()
			return 0, net.ErrClosed
		case isDone(expired):
			c.l.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case c.got.Len() > 0:
			n, _ := c.got.Read(b) // fails only when got is empty
			c.up.release(n)
			c.l.mu.Unlock()
			return n, nil
		case c.gotErr != nil:
			err := c.gotErr
			c.l.mu.Unlock()
			return 0, err
		}
		c.l.mu.Unlock()
		if len(b) == 0 {
			return 0, nil
		}
		select {
		case <-c.readable:
		case <-expired:
		}
	}
}

// Write implements net.Conn.
func (c *shaped) Write(b []byte) (int, error) {
	written := 0
	for {
		c.l.mu.Lock()
		expired := c.writeUntil.expired()
		switch {
		case c.ended:
			c.l.mu.Unlock()
			return written, net.ErrClosed
		case isDone(expired):
			c.l.mu.Unlock()
			return written, os.ErrDeadlineExceeded
		}
		if n := min(window-c.down.held, len(b)-written); n > 0 {
			c.down.hold(n)
			c.down.line.enqueue(c.down, bytes.Clone(b[written:written+n]), c.l.clock())
			written += n
		}
		c.l.mu.Unlock()
		if written == len(b) {
			return written, nil
		}
		select {
		case <-c.down.room:
		case <-expired:
		case <-c.dead:
		}
	}
}

// SetDeadline implements net.Conn.
func (c *shaped) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *shaped) SetReadDeadline(t time.Time) error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.readUntil.set(t)
	c.signal() // a waiting reader takes the new deadline
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *shaped) SetWriteDeadline(t time.Time) error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.writeUntil.set(t)
	select {
	case c.down.room <- struct{}{}:
	default:
	}
	return nil
}

// deadline is a channel that is closed at a time, which can be moved. The link's
// lock guards its state.
type deadline struct {
	timer *time.Timer
	c     chan struct{}
}

func newDeadline() deadline { return deadline{c: make(chan struct{})} }

func (d *deadline) expired() <-chan struct{} { return d.c }

func (d *deadline) set(t time.Time) {
	fired := d.timer != nil && !d.timer.Stop()
	d.timer = nil
	if fired || isDone(d.c) || !t.IsZero() {
		d.c = make(chan struct{}) // a timer that has just fired closes the old channel
	}
	if t.IsZero() {
		return
	}
	c := d.c
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(c) })
		return
	}
	close(c)
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
