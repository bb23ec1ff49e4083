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
	"errors"
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
	Address  string // "host:port" or "unix:/path"
	Password string // for VNC Authentication
	Clock    lab.Clock
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
	c := &Controller{address: o.Address, conn: conn, clock: o.Clock, done: make(chan struct{}), answers: make(chan uint64, 64)}
	c.size.X, c.size.Y = conn.Size()
	go c.read()
	hello := rfb.AppendEncodings(rfb.AppendPixelFormat(nil), rfb.Raw, rfb.Cursor, rfb.DesktopSize, rfb.ExtDesktopSize, rfb.FenceSupport)
	err = conn.Send(hello)
	if err == nil {
		// The first question is the one that every server answers: when it has,
		// the server's offer of fences, which comes before, has been read.
		err = c.await(ctx, c.askPixel)
	}
	if err != nil {
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

// askPixel asks for one pixel.
// Size is that of the server's screen, as it said last.
func (c *Controller) Size() (image.Point, error) {
	size, _, err := c.state()
	return size, err
}

func (c *Controller) askPixel() (uint64, error) {
	return pixelCame, c.conn.Send(rfb.AppendRequest(nil, false, pixel))
}

// askFence asks for a fence.
func (c *Controller) askFence() (uint64, error) {
	c.asked++
	return c.asked, c.conn.Send(rfb.AppendFence(nil, c.asked))
}

// sync waits until the server has handled what was sent. What is held is released behind the question and before its
// answer: the server repeats a key whose release waits for this process, which may stand still for a while.
func (c *Controller) sync(ctx context.Context) error {
	if _, fences, _ := c.state(); fences {
		return c.await(ctx, c.askFence)
	}
	return c.await(ctx, c.askPixel)
}

// await asks a question, releases what is held and waits for the answer.
func (c *Controller) await(ctx context.Context, ask func() (uint64, error)) error {
	for len(c.answers) > 0 { // to questions that were given up
		<-c.answers
	}
	id, err := ask()
	if err == nil {
		err = c.release()
	}
	for {
		if err != nil {
			return c.fail(err)
		}
		select {
		case got := <-c.answers:
			switch {
			case got == id:
				return nil
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

// act runs f between two readings of the clock, which are the event's interval; the
// releases that follow are not part of it.
func (c *Controller) act(ctx context.Context, name, detail string, f func() error) (lab.Event, error) {
	err := c.broken
	if err == nil {
		err = ctx.Err()
	}
	e := lab.Event{Name: name, Detail: detail}
	if err == nil {
		e.Earliest = c.clock()
		if err = f(); err == nil {
			err = c.sync(ctx)
		}
		e.Latest = c.clock()
		if c.broken == nil {
			err = errors.Join(err, c.release())
		}
	}
	if err != nil {
		return lab.Event{}, fmt.Errorf("rfb: %s %q: %w", name, detail, err)
	}
	return e, nil
}

// release lets go of all that is held, the last first.
func (c *Controller) release() error {
	var b []byte
	for i := len(c.keys) - 1; i >= 0; i-- {
		b = rfb.AppendKey(b, false, c.keys[i])
	}
	if c.buttons != 0 {
		b = rfb.AppendPointer(b, 0, c.at.X, c.at.Y)
	}
	c.keys, c.buttons = c.keys[:0], 0
	if len(b) == 0 {
		return nil
	}
	if err := c.conn.Send(b); err != nil {
		return c.fail(err)
	}
	return nil
}

// Close releases what is held and disconnects.
func (c *Controller) Close() error {
	var err error
	if c.broken == nil {
		if err = c.release(); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), offerTime)
			defer cancel()
			err = c.sync(ctx)
		}
	}
	_ = c.conn.Close()
	<-c.done
	if err != nil {
		return fmt.Errorf("rfb: close: %w", err)
	}
	return nil
}
