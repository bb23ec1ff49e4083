// Package rfb drives a VNC server's keyboard and pointer: those of a virtual
// machine, or of a laptop that shares its screen.
//
// Keys are sent as X11 keysyms, which the server turns into its own layout's
// keys. Shift is held for what needs it on a US keyboard, as a viewer there would,
// because some servers (QEMU) look at the key alone.
//
// The interval of an event runs from just before its message is written to the
// server's answer to a question that follows it: a fence, or where the server has
// none an update of one pixel. A server handles messages in order, so
// by then it has the input. When the system behind it (the virtual machine's
// guest) gets it, VNC does not tell.
//
// The connection is the controller's own; a film of the same server has
// another. Standards: see package internal/base/rfb.
package rfb

import (
	"context"
	"fmt"
	"image"
	"sync"
	"time"

	"eidetic/control"
	"eidetic/internal/base/rfb"
	"eidetic/internal/lab"
)

// Options of a controller.
type Options struct {
	Address  string     // "host:port" or "unix:/path"
	Password lab.Secret // for VNC Authentication
	Clock    lab.Clock
	// Repeat is how long messages with a key may take on their way to the server; 0 is control.RepeatDelay.
	Repeat time.Duration
}

// Controller is a control.Controller over a VNC server.
type Controller struct {
	address string
	conn    *rfb.Conn
	clock   lab.Clock
	done    chan struct{} // closed when the reader has ended
	answers chan uint64   // fences that came back, or what stands for an update

	mu     sync.Mutex // guards what the reader writes
	size   image.Point
	fences bool
	err    error

	asked   uint64
	keys    []uint32 // held, in order
	buttons byte     // held
	at      image.Point
	repeat  time.Duration
	broken  error // set when an answer did not come: what the server got is not known
}

var _ control.Controller = (*Controller)(nil)

// offerTime is how long a server may take to say that it can do fences.
const offerTime = time.Second

// Open connects.
func Open(ctx context.Context, o Options) (*Controller, error) {
	conn, err := rfb.Dial(ctx, rfb.Options{Address: o.Address, Password: o.Password})
	if err != nil {
		return nil, fmt.Errorf("rfb: %w", err)
	}
	if o.Clock == nil {
		o.Clock = lab.Monotonic
	}
	c := &Controller{
		address: o.Address, conn: conn, clock: o.Clock, repeat: o.Repeat, done: make(chan struct{}), answers: make(chan uint64, 64),
	}
	c.size.X, c.size.Y = conn.Size()
	go c.read()
	hello := rfb.AppendEncodings(rfb.AppendPixelFormat(nil), rfb.Raw, rfb.Cursor, rfb.DesktopSize, rfb.ExtDesktopSize, rfb.FenceSupport)
	// The first question is the one that every server answers: when it has,
	// the server's offer of fences, which comes before, has been read.
	if err := c.await(ctx, hello, c.askPixel); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("rfb: %s: %w", o.Address, err)
	}
	return c, nil
}

// read takes what the server sends, so that it never waits for us.
func (c *Controller) read() {
	defer close(c.done)
	for {
		m, err := c.conn.Read(nil)
		c.mu.Lock()
		c.size.X, c.size.Y = c.conn.Size()
		c.fences = c.fences || m.Kind == rfb.FenceAsked
		c.err = err
		c.mu.Unlock()
		if err != nil {
			return
		}
		switch {
		case m.Kind == rfb.FenceAnswer:
			c.answer(m.Fence)
		case m.Kind == rfb.Update && m.Pixels:
			c.answer(pixelCame)
		case m.Kind == rfb.Update:
			c.answer(noPixel)
		}
	}
}

// Answers other than fences, which count from 1.
const (
	pixelCame = 0
	noPixel   = 1<<64 - 1 // the server told a size or a pointer's shape
)

// answer passes an answer on, or drops it when the queue is full: nobody waits for old ones.
func (c *Controller) answer(id uint64) {
	select {
	case c.answers <- id:
	default:
	}
}

func (c *Controller) state() (size image.Point, fences bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size, c.fences, c.err
}

// pixel is what is asked for.
var pixel = image.Rect(0, 0, 1, 1)

// Size is that of the server's screen, as it said last.
func (c *Controller) Size() (image.Point, error) {
	size, _, err := c.state()
	return size, err
}

// askPixel asks for one pixel.
func (c *Controller) askPixel(b []byte) ([]byte, uint64) {
	return rfb.AppendRequest(b, false, pixel), pixelCame
}

// askFence asks for a fence.
func (c *Controller) askFence(b []byte) ([]byte, uint64) {
	c.asked++
	return rfb.AppendFence(b, c.asked), c.asked
}

// sync sends messages and waits until the server has handled them.
func (c *Controller) sync(ctx context.Context, messages []byte) error {
	if _, fences, _ := c.state(); fences {
		return c.await(ctx, messages, c.askFence)
	}
	return c.await(ctx, messages, c.askPixel)
}

// await sends messages, a question and the release of what is held, all at once, and waits for the answer: the system
// behind the server repeats a key whose release waits for this process, which may stand still for a while.
func (c *Controller) await(ctx context.Context, messages []byte, ask func([]byte) ([]byte, uint64)) error {
	for len(c.answers) > 0 { // to questions that were given up
		<-c.answers
	}
	keys, began := len(c.keys) > 0, c.clock()
	messages, id := ask(messages)
	err := c.conn.Send(c.release(messages))
	var late error
	if keys {
		late = control.CheckHeld("the key", c.clock().Sub(began), c.repeat)
	}
	for {
		if err != nil {
			return c.fail(err)
		}
		select {
		case got := <-c.answers:
			switch {
			case got == id:
				return late
			case got == noPixel && id == pixelCame:
				// The server has used up the request and not sent the pixel.
				err = c.conn.Send(rfb.AppendRequest(nil, true, pixel))
			}
		case <-c.done:
			_, _, err := c.state()
			return c.fail(err)
		case <-ctx.Done():
			return c.fail(fmt.Errorf("the VNC server did not answer in time (%w); open it again", ctx.Err()))
		}
	}
}

// fail makes the controller unusable.
func (c *Controller) fail(err error) error {
	if c.broken == nil {
		c.broken = err
		_ = c.conn.Close()
	}
	return c.broken
}

// act sends messages between two readings of the clock, which are the event's interval; the releases that follow are
// not part of it.
func (c *Controller) act(ctx context.Context, name, detail string, messages []byte) (lab.Event, error) {
	err := c.broken
	if err == nil {
		err = ctx.Err()
	}
	e := lab.Event{Name: name, Detail: detail}
	if err == nil {
		e.Earliest = c.clock()
		err = c.sync(ctx, messages)
		e.Latest = c.clock()
	}
	if err != nil {
		err = fmt.Errorf("rfb: %s %q: %w", name, detail, err)
	}
	if err != nil && !control.IsHeld(err) {
		c.keys, c.buttons = c.keys[:0], 0
		return lab.Event{}, err
	}
	return e, err
}

// release appends what lets go of all that is held, the last first.
func (c *Controller) release(b []byte) []byte {
	for i := len(c.keys) - 1; i >= 0; i-- {
		b = rfb.AppendKey(b, false, c.keys[i])
	}
	if c.buttons != 0 {
		b = rfb.AppendPointer(b, 0, c.at.X, c.at.Y)
	}
	c.keys, c.buttons = c.keys[:0], 0
	return b
}

// Close releases what is held and disconnects.
func (c *Controller) Close() error {
	var err error
	if c.broken == nil {
		ctx, cancel := context.WithTimeout(context.Background(), offerTime)
		defer cancel()
		err = c.sync(ctx, nil)
	}
	_ = c.conn.Close()
	<-c.done
	if err != nil {
		return fmt.Errorf("rfb: close: %w", err)
	}
	return nil
}
