// Package rfb is a client of the Remote Framebuffer protocol, which VNC servers and virtual
// machines speak: the handshake, the messages, and the encodings of the screen. Its input is
// a connection; its output is a [Screen] that is kept up to date, and messages.
//
// The package is small and strict. It supports what lossless filming and input need,
// announces nothing else, and ends the connection with an error if the server sends anything
// that was not announced. Every length is checked before memory is allocated for it, and a
// screen is bounded by [MaxPixels].
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"eidetic/internal/lab"
)

// MaxPixels bounds a screen: 8192 × 8192, the most that a reel can hold.
const MaxPixels = 64 << 20

// The ports of displays 0 and up, for an error's advice.
const basePort = 5900

// Options configure a connection.
type Options struct {
	Address  string     // "host:port", "[::1]:5901" or "unix:/path"
	Password lab.Secret // for VNC Authentication; only its first 8 bytes are used
}

// Conn is a connection after its handshake. Only one goroutine may call Read; any goroutine
// may call Send.
type Conn struct {
	Version string // negotiated version: "3.8"
	Name    string // the server's name for its desktop

	width, height int
	net           net.Conn
	r             *bufio.Reader
	zlib          inflater
	maxPixels     int

	writing sync.Mutex
	closed  atomic.Bool
}

// patience is how long the server may take for a step of the handshake, and for accepting a message.
const patience = 10 * time.Second

// ErrNoPixels is of a screen of 0×0: the server has none now, and may have one later.
var ErrNoPixels = errors.New("it is switched off, or what draws on it has not started; wake it up and try again") // constant

// wakePause is the time between two looks at a screen without pixels.
const wakePause = 250 * time.Millisecond

// Dial connects and does the handshake, within ctx. A screen without pixels is waited for a little: the device may just
// be starting, or waking up.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var asleep error
	for {
		conn, err := dial(ctx, o)
		if errors.Is(err, ErrNoPixels) {
			asleep = err
		} else if asleep == nil || ctx.Err() == nil {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, asleep
		case <-time.After(wakePause):
		}
	}
}

func dial(ctx context.Context, o Options) (*Conn, error) {
	network, address := "tcp", o.Address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("the address %q is not of the form HOST:PORT or unix:PATH (display :N of a VNC server is port %d+N)",
			o.Address, basePort)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to the VNC server: %w%s", err, ofDisplay(address))
	}
	conn, err := New(ctx, c, o.Password)
	if err != nil {
		return nil, fmt.Errorf("VNC server at %s: %w", o.Address, err)
	}
	return conn, nil
}

// ofDisplay says which port is meant if the address has the number of a display, host:1, as viewers of VNC take it.
func ofDisplay(address string) string {
	const mostDisplays = 100
	_, port, err := net.SplitHostPort(address)
	if n, notNumber := strconv.ParseUint(port, 10, 16); err == nil && notNumber == nil && n < mostDisplays {
		return fmt.Sprintf(" (display :%d of a VNC server is port %d)", n, basePort+n)
	}
	return ""
}

// New does the handshake over c, and closes c if that fails.
func New(ctx context.Context, c net.Conn, password lab.Secret) (*Conn, error) {
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

// Size returns the screen's size as of the last message that was read. Only the goroutine
// that calls Read may call it.
func (c *Conn) Size() (width, height int) { return c.width, c.height }

// Local says whether the server is on this machine, where sending bytes is cheaper than
// compressing them.
func (c *Conn) Local() bool {
	switch a := c.net.RemoteAddr().(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// Close ends the connection and unblocks Read.
func (c *Conn) Close() error {
	c.closed.Store(true)
	return c.net.Close()
}

// IsClosed says whether Close was called. Sixteen bytes can ask for a copy of the whole screen, and thousands of them have
// come already when a connection is closed: whoever works through an update looks whether anybody still wants it.
func (c *Conn) IsClosed() bool { return c.closed.Load() }

// Send writes messages. It fails if the server does not accept them in time.
func (c *Conn) Send(b []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	const atOnce = 16 << 10 // a server may take a long text slowly
	for part := range slices.Chunk(b, atOnce) {
		if err := c.net.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return fmt.Errorf("send to the VNC server: %w", err)
		}
		if _, err := c.net.Write(part); err != nil {
			return fmt.Errorf("send to the VNC server: %w", err)
		}
	}
	return nil
}

// checkSize returns an error for a screen size that is too large or empty.
func (c *Conn) checkSize(w, h int) error {
	if w < 1 || h < 1 {
		return fmt.Errorf("the server's screen has no pixels (%d×%d): %w", w, h, ErrNoPixels)
	}
	if w > lab.MaxSide || h > lab.MaxSide || w*h > c.maxPixels {
		return fmt.Errorf("the server claims a screen of %d×%d, more than %d pixels or %d a side", w, h, c.maxPixels, lab.MaxSide)
	}
	return nil
}

// errProtocol is a violation of the protocol by the server.
var errProtocol = errors.New("the server does not keep to the protocol")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errProtocol, fmt.Sprintf(format, args...))
}
