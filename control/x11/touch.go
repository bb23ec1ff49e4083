package x11

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"net"
	"strings"
	"time"

	"eidetic/control"
	"eidetic/internal/lab"
)

// XTEST has no touch screen. An X.Org server can have one that takes its input from a socket: the driver inputtest,
// which is part of the server. Its protocol is that of xf86-input-inputtest-protocol.h of X.Org's server 21.1, in the
// machine's byte order.
const (
	protocolMajor, protocolMinor = 1, 1

	// Kinds of messages to the driver, and of its answers.
	sendVersion, sendWait, sendTouch = 0, 1, 6
	isVersion, isDone                = 0, 1

	// Kinds of touches (XI2proto.h).
	touchBegin, touchUpdate, touchEnd = 18, 19, 20

	headBytes    = 8
	valuators    = 64
	touchBytes   = headBytes + 8 + 4 + valuators/8 + 4 /* to a multiple of 8 */ + 2*8*valuators
	axes         = 2
	axisMost     = 0xffff
	answerMost   = 64
	touchAnswers = 10 * time.Second
)

// Fingers is how many fingers the touch screen has for which [TouchConfig] asks.
const Fingers = 10

// TouchConfig is the part of an X.Org server's configuration that gives it a touch screen, which takes its input at
// the socket.
func TouchConfig(name, socket string) string {
	return fmt.Sprintf(`Section "InputDevice"
	Identifier "%s"
	Driver "inputtest"
	Option "SocketPath" "%s"
	Option "DeviceType" "Touch"
	Option "TouchCount" "%d"
EndSection
`, name, socket, Fingers)
}

// touchScreen is the connection to the driver.
type touchScreen struct {
	conn net.Conn
	down []contact
	next uint32 // number of the next finger
}

// contact is a finger on the screen, in the units of its axes.
type contact struct {
	id   uint32
	x, y float64
}

var _ control.Toucher = (*Controller)(nil)

var errNoTouchScreen = errors.New("touch: this X server has no touch screen: XTEST, by which it is driven, knows none") // constant

// ConnectTouch lets the controller touch the server's touch screen, which takes its input at a socket.
func (c *Controller) ConnectTouch(ctx context.Context, socket string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("the X server's touch screen: %w", err)
	}
	t := &touchScreen{conn: conn}
	hello := message(sendVersion, headBytes+4)
	binary.NativeEndian.PutUint16(hello[headBytes:], protocolMajor)
	binary.NativeEndian.PutUint16(hello[headBytes+2:], protocolMinor)
	if err := t.ask(ctx, isVersion, hello); err != nil {
		conn.Close()
		return fmt.Errorf("the X server's touch screen: %w", err)
	}
	c.touch = t
	return nil
}

// Touch implements [control.Toucher]. The interval of its event ends when the server has passed on all of it.
func (c *Controller) Touch(ctx context.Context, fingers ...image.Point) (lab.Event, error) {
	if c.touch == nil {
		return lab.Event{}, errNoTouchScreen
	}
	if len(fingers) > Fingers {
		return lab.Event{}, fmt.Errorf("touch: %d fingers; the screen has room for %d", len(fingers), Fingers)
	}
	places, detail := make([]contact, 0, len(fingers)), make([]string, 0, len(fingers))
	for _, p := range fingers {
		if err := c.inside(p.X, p.Y); err != nil {
			return lab.Event{}, err
		}
		x, y := c.place(p)
		places = append(places, contact{x: x, y: y})
		detail = append(detail, fmt.Sprintf("%d,%d", p.X, p.Y))
	}
	e := lab.Event{Name: "touch", Detail: strings.Join(detail, " ")}
	e.Earliest = c.clock()
	if err := c.touch.move(ctx, places); err != nil {
		return lab.Event{}, fmt.Errorf("touch %q: %w", e.Detail, err)
	}
	e.Latest = c.clock()
	return e, nil
}

// place is a point in the units of the touch screen's axes: the middle of the pixel.
func (c *Controller) place(p image.Point) (x, y float64) {
	of := func(at int, size uint16) float64 {
		return math.Floor((float64(at) + 0.5) * (axisMost + 1) / float64(size))
	}
	return of(p.X, c.screen.WidthInPixels), of(p.Y, c.screen.HeightInPixels)
}

// move puts the fingers at places, and lifts those that are left over.
func (t *touchScreen) move(ctx context.Context, places []contact) error {
	var all []byte
	stay := min(len(places), len(t.down))
	for _, f := range t.down[stay:] {
		all = append(all, touched(touchEnd, f)...)
	}
	t.down = t.down[:stay]
	for i, p := range places {
		kind := uint32(touchUpdate)
		if i < stay {
			p.id = t.down[i].id
			t.down[i] = p
		} else {
			kind, p.id = touchBegin, t.next
			t.next++
			t.down = append(t.down, p)
		}
		all = append(all, touched(kind, p)...)
	}
	return t.ask(ctx, isDone, append(all, message(sendWait, headBytes)...))
}

// close lifts all fingers and disconnects.
func (t *touchScreen) close() error {
	if t == nil {
		return nil
	}
	defer t.conn.Close()
	if len(t.down) == 0 {
		return nil
	}
	return t.move(context.Background(), nil)
}

// ask sends messages and waits for the answer of a kind. A connection without an answer is not used again.
func (t *touchScreen) ask(ctx context.Context, kind uint32, messages []byte) (err error) {
	deadline := time.Now().Add(touchAnswers)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := t.conn.SetDeadline(deadline); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			t.conn.Close()
		}
	}()
	if _, err := t.conn.Write(messages); err != nil {
		return err
	}
	var head [headBytes]byte
	if _, err := io.ReadFull(t.conn, head[:]); err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	length, got := binary.NativeEndian.Uint32(head[:]), binary.NativeEndian.Uint32(head[4:])
	if length < headBytes || length > answerMost || got != kind {
		return fmt.Errorf("the server answers with %d bytes of kind %d, not of kind %d", length, got, kind)
	}
	body := make([]byte, length-headBytes)
	if _, err := io.ReadFull(t.conn, body); err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	if kind == isVersion && (len(body) < 4 || binary.NativeEndian.Uint16(body) != protocolMajor) {
		return fmt.Errorf("the server's driver inputtest is of version %v; this is %d", body, protocolMajor)
	}
	return nil
}

func message(kind uint32, size int) []byte {
	b := make([]byte, size)
	binary.NativeEndian.PutUint32(b, uint32(size))
	binary.NativeEndian.PutUint32(b[4:], kind)
	return b
}

// touched is a message: which finger does what, where.
func touched(kind uint32, f contact) []byte {
	b := message(sendTouch, touchBytes)
	binary.NativeEndian.PutUint32(b[headBytes:], f.id)
	binary.NativeEndian.PutUint32(b[headBytes+4:], kind)
	const mask, values = headBytes + 12, touchBytes - 2*8*valuators
	b[mask] = 1<<axes - 1
	binary.NativeEndian.PutUint64(b[values:], math.Float64bits(f.x))
	binary.NativeEndian.PutUint64(b[values+8:], math.Float64bits(f.y))
	return b
}
