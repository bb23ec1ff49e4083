// Package rfb is the client's side of the Remote Framebuffer protocol, which
// VNC servers and virtual machines speak: the handshake, the messages, and the
// encodings in which a server sends its screen. A connection flows in; out flow
// a [Screen] that is kept up to date and answers to what was sent.
//
// It is small and strict. It understands what a lossless film of a screen and
// its input need, announces nothing else, and ends the connection with an error at
// whatever it did not announce. Every length is checked before memory
// is taken for it, and what a server may claim is bounded by [MaxPixels].
//
// Standards: RFC 6143 (versions 3.3, 3.7 and 3.8; security types None and VNC
// Authentication; encodings Raw, CopyRect, Hextile, ZRLE, Cursor, DesktopSize), and of
// the community's rfbproto specification ExtendedDesktopSize, Fence and
// ContinuousUpdates.
package rfb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"eidetic/internal/lab"
)

// MaxPixels bounds a screen: 8192 × 8192, which is what a reel can hold.
const MaxPixels = 64 << 20

// The ports of displays 0 and up, for a hint.
const basePort = 5900

// Options of a connection.
type Options struct {
	Address  string // "host:port", "[::1]:5901" or "unix:/path"
	Password string // for VNC Authentication; its first 8 bytes count
}

// Conn is a connection after its handshake. Read is for one goroutine; Send is
// for all.
type Conn struct {
	Version string // that was agreed on: "3.8"
	Name    string // what the server calls its desktop

	width, height int
	net           net.Conn
	r             *bufio.Reader
	zlib          inflater
	maxPixels     int

	writing sync.Mutex
}

// patience is how long the server may take for a step of the handshake and for taking a message.
const patience = 10 * time.Second

// Dial connects and shakes hands, within ctx.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	network, address := "tcp", o.Address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("the address %q is not of the form HOST:PORT or unix:PATH (display :N of a VNC server is port %d+N)", o.Address, basePort)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to the VNC server: %w", err)
	}
	conn, err := New(ctx, c, o.Password)
	if err != nil {
		return nil, fmt.Errorf("VNC server at %s: %w", o.Address, err)
	}
	return conn, nil
}

// New shakes hands over c, which it closes when that fails.
func New(ctx context.Context, c net.Conn, password string) (*Conn, error) {
	conn := newConn(c)
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	err := conn.handshake(password)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("no answer in time (%w): %w", ctx.Err(), err)
		}
		return nil, err
	}
	return conn, nil
}

func newConn(c net.Conn) *Conn {
	return &Conn{net: c, r: bufio.NewReaderSize(c, 1<<16), maxPixels: MaxPixels}
}

// Size returns the screen's size as of the last message that was read; it is
// for the goroutine that reads.
func (c *Conn) Size() (width, height int) { return c.width, c.height }

// Local says whether the server is on this machine, where bytes cost less
// than compressing them.
func (c *Conn) Local() bool {
	switch a := c.net.RemoteAddr().(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// Close ends the connection, and with it a Read that waits.
func (c *Conn) Close() error { return c.net.Close() }

// Send writes messages. A server that does not take them is an error.
func (c *Conn) Send(b []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.net.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("send to the VNC server: %w", err)
	}
	if _, err := c.net.Write(b); err != nil {
		return fmt.Errorf("send to the VNC server: %w", err)
	}
	return nil
}

// checkSize says what is wrong with a screen's size.
func (c *Conn) checkSize(w, h int) error {
	if w < 1 || h < 1 {
		return fmt.Errorf("the server's screen has no pixels (%d×%d)", w, h)
	}
	if w > lab.MaxSide || h > lab.MaxSide || w*h > c.maxPixels {
		return fmt.Errorf("the server claims a screen of %d×%d, more than %d pixels or %d a side", w, h, c.maxPixels, lab.MaxSide)
	}
	return nil
}

// errProtocol is what a server did that the protocol does not allow.
var errProtocol = errors.New("the server does not keep to the protocol")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errProtocol, fmt.Sprintf(format, args...))
}
