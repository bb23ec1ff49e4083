package rfb

import (
	"fmt"
	"image"
	"io"
	"net"
)

// Kind is the kind of a server's message.
type Kind int

// The kinds of messages that Read returns.
const (
	Other       Kind = iota // ignored: a bell, a clipboard, a colour map
	Update                  // an update of the screen
	FenceAnswer             // the answer to AppendFence
	FenceAsked              // the server supports fences; Read has answered it
	Continuous              // the server supports continuous updates, or has ended them
)

// Message is a message that Read has read.
type Message struct {
	Kind  Kind
	Fence uint64 // the id of a FenceAnswer
	// Pixels says whether an Update has pixels. An update without pixels changes the
	// screen's size or the pointer's shape.
	Pixels bool
}

// The types of messages from the server.
const (
	framebufferUpdate = 0
	setColourMap      = 1
	bell              = 2
	serverCutText     = 3
	endOfContinuous   = 150
	serverFence       = 248
)

// maxCutText bounds a clipboard text, which is skipped.
const maxCutText = 256 << 20

// Read reads one message and decodes an update into s. If s is nil there is no screen: then
// only Raw rectangles may come, and are skipped. Read answers the server's own fences.
func (c *Conn) Read(s *Screen) (Message, error) {
	kind, err := c.u8()
	if err != nil {
		return Message{}, err
	}
	switch kind {
	case framebufferUpdate:
		return c.update(s)
	case setColourMap: // from a screen with a palette, before our pixel format applies
		var b [5]byte
		if err := c.readFull(b[:]); err != nil {
			return Message{}, err
		}
		return Message{}, c.skip(6 * int64(be.Uint16(b[3:])))
	case bell:
		return Message{}, nil
	case serverCutText:
		var b [7]byte
		if err := c.readFull(b[:]); err != nil {
			return Message{}, err
		}
		n := be.Uint32(b[3:])
		if n > maxCutText {
			return Message{}, broken("a clipboard of %d bytes", n)
		}
		return Message{}, c.skip(int64(n))
	case endOfContinuous:
		return Message{Kind: Continuous}, nil
	case serverFence:
		return c.fence()
	default:
		return Message{}, broken("an unknown message of type %d", kind)
	}
}

func (c *Conn) u8() (byte, error) {
	var b [1]byte
	err := c.readFull(b[:])
	return b[0], err
}

func (c *Conn) skip(n int64) error {
	if _, err := io.CopyN(io.Discard, c.r, n); err != nil {
		return fmt.Errorf("the VNC server closed the connection: %w", err)
	}
	return nil
}

// fence handles an answer to one of our fences, or answers a fence of the server.
func (c *Conn) fence() (Message, error) {
	var b [8]byte
	if err := c.readFull(b[:]); err != nil {
		return Message{}, err
	}
	flags, n := be.Uint32(b[3:]), b[7]
	if n > maxFence {
		return Message{}, broken("a fence with %d bytes of payload", n)
	}
	var payload [maxFence]byte
	if err := c.readFull(payload[:n]); err != nil {
		return Message{}, err
	}
	if flags&fenceRequest != 0 {
		// Everything before the fence has been read and decoded, as both kinds of order require.
		return Message{Kind: FenceAsked}, c.Send(appendFence(nil, flags&knownFences, payload[:n]))
	}
	if n != fencePayloadBytes {
		return Message{}, broken("an answer to a fence with %d bytes of payload instead of %d", n, fencePayloadBytes)
	}
	return Message{Kind: FenceAnswer, Fence: be.Uint64(payload[:])}, nil
}

// update reads a FramebufferUpdate (RFC 6143, 7.6.1).
func (c *Conn) update(s *Screen) (Message, error) {
	var b [3]byte
	if err := c.readFull(b[:]); err != nil {
		return Message{}, err
	}
	m := Message{Kind: Update}
	for n := range int(be.Uint16(b[1:])) {
		if c.IsClosed() {
			return m, net.ErrClosed
		}
		pixels, err := c.rectangle(s)
		if err != nil {
			return m, fmt.Errorf("rectangle %d of an update: %w", n, err)
		}
		m.Pixels = m.Pixels || pixels
	}
	return m, nil
}

// rectangle reads one rectangle of an update, and returns whether it has pixels.
func (c *Conn) rectangle(s *Screen) (bool, error) {
	var b [12]byte
	if err := c.readFull(b[:]); err != nil {
		return false, err
	}
	x, y := int(be.Uint16(b[:])), int(be.Uint16(b[2:]))
	w, h := int(be.Uint16(b[4:])), int(be.Uint16(b[6:]))
	r := image.Rect(x, y, x+w, y+h)
	switch e := Encoding(be.Uint32(b[8:])); e {
	case DesktopSize:
		return false, c.resize(s, w, h)
	case ExtDesktopSize:
		return false, c.extendedSize(s, x, y, w, h)
	case Cursor:
		return false, c.cursor(w, h)
	case Raw, CopyRect, Hextile, ZRLE:
		if s == nil {
			if e != Raw {
				return false, broken("encoding %d, which was not announced", e)
			}
			return true, c.skip(int64(bytesPerPixel * w * h))
		}
		if !r.In(s.Bounds()) {
			return false, broken("rectangle %v is outside the screen of %v", r, s.Bounds().Max)
		}
		if r.Empty() {
			r = image.Rectangle{}
		}
		if err := c.pixels(s, e, r); err != nil {
			return false, err
		}
		s.change(r)
		return true, nil
	default:
		return false, broken("encoding %d, which was not announced", e)
	}
}

// pixels decodes r of s.
func (c *Conn) pixels(s *Screen, e Encoding, r image.Rectangle) error {
	switch e {
	case Raw:
		return c.raw(s, r)
	case CopyRect:
		var b [4]byte
		if err := c.readFull(b[:]); err != nil {
			return err
		}
		return s.move(r, image.Pt(int(be.Uint16(b[:])), int(be.Uint16(b[2:]))))
	case Hextile:
		return c.hextile(s, r)
	default:
		return c.zrle(s, r)
	}
}

// raw reads r row by row.
func (c *Conn) raw(s *Screen, r image.Rectangle) error {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := s.row(r, y)
		err := c.readFull(row)
		clearFourth(row)
		if err != nil {
			return err
		}
	}
	return nil
}

// extendedSize reads the screens of an ExtendedDesktopSize. Its y is a status: not 0 if a
// client's request was refused and the size is unchanged.
func (c *Conn) extendedSize(s *Screen, reason, status, w, h int) error {
	var b [4]byte
	if err := c.readFull(b[:]); err != nil {
		return err
	}
	if err := c.skip(16 * int64(b[0])); err != nil {
		return err
	}
	if reason == 1 && status != 0 {
		return nil
	}
	return c.resize(s, w, h)
}

// resize applies a new size.
func (c *Conn) resize(s *Screen, w, h int) error {
	if err := c.checkSize(w, h); err != nil {
		return err
	}
	c.width, c.height = w, h
	if s != nil {
		s.resize(w, h)
	}
	return nil
}

// cursor skips a pointer's shape: pixels, then a mask with one bit per pixel.
func (c *Conn) cursor(w, h int) error {
	const largest = 2048
	if w > largest || h > largest {
		return broken("a pointer of %d×%d pixels", w, h)
	}
	return c.skip(int64(bytesPerPixel*w*h + (w+7)/8*h))
}
