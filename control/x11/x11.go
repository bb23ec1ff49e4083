// Package x11 drives an X server on this machine by the XTEST extension: what
// it sends is input of the core keyboard and pointer, as from hardware, and
// reaches whatever has the focus.
//
// XTEST knows no touch screen. A server that was started with [TouchConfig] has one, whose fingers are put down over a
// socket of its driver (ConnectTouch).
//
// Keys are found in the server's own keyboard mapping, so text comes out as
// written on any layout. A character the layout lacks is bound to an unused
// keycode until Close.
//
// The interval of an event runs from just before the request is written to the
// answer of a GetInputFocus that follows it: the server works in order, so
// by then it has put the input into its clients' queues.
//
// Standards: X Window System Protocol 11, XTEST 2.2, the protocol of X.Org's driver inputtest, version 1.1. The cookie of a server that
// asks for one is taken from $XAUTHORITY.
package x11

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"eidetic/control"
	"eidetic/internal/lab"
)

// Controller is a control.Controller over an X server.
type Controller struct {
	conn    *xgb.Conn
	display string
	screen  *xproto.ScreenInfo
	clock   lab.Clock
	keys    keymap
	// bound holds the spare keycodes that were given a keysym, to be taken back.
	bound  map[xproto.Keysym]xproto.Keycode
	held   []held
	since  lab.Time       // when the first of held was pressed, at the earliest
	repeat time.Duration  // after which the server repeats a key
	down   control.Button // that Press holds; 0 is none
	touch  *touchScreen   // nil where there is none
	broken error          // set when an answer did not come: the connection cannot be used any more
}

// held is a key or button that is down.
type held struct {
	release byte
	detail  byte
}

// repeatDelay is that of X.Org's servers, unless somebody has set another one.
const repeatDelay = 660 * time.Millisecond

var _ control.Controller = (*Controller)(nil)

// Open connects to the display (":0"; empty means $DISPLAY) and reads its
// keyboard mapping. Times are those of the clock.
func Open(ctx context.Context, display string, clock lab.Clock) (*Controller, error) {
	// xgb writes to the process's standard error what it also returns; only
	// the returned error is wanted. The logger has a lock of its own.
	xgb.Logger.SetOutput(io.Discard)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open display %q: %w", display, err)
	}
	conn, err := xgb.NewConnDisplay(display)
	if err != nil {
		return nil, fmt.Errorf("open display %q: %w (is the X server up, and does $XAUTHORITY name its cookie?)", display, err)
	}
	c := &Controller{conn: conn, display: display, clock: clock, repeat: repeatDelay, bound: map[xproto.Keysym]xproto.Keycode{}}
	if err := c.await(ctx, c.setUp); err != nil {
		conn.Close()
		return nil, fmt.Errorf("open display %q: %w", display, err)
	}
	return c, nil
}

func (c *Controller) setUp() error {
	if err := xtest.Init(c.conn); err != nil {
		return fmt.Errorf("the server has no XTEST extension, without which nobody can send it input: %w", err)
	}
	c.screen = xproto.Setup(c.conn).DefaultScreen(c.conn)
	return c.readKeys()
}

func (c *Controller) readKeys() error {
	s := xproto.Setup(c.conn)
	reply, err := xproto.GetKeyboardMapping(c.conn, s.MinKeycode, byte(s.MaxKeycode-s.MinKeycode+1)).Reply()
	if err != nil || reply == nil {
		return fmt.Errorf("reading the keyboard mapping: %w", orClosed(err))
	}
	c.keys = keymap{first: s.MinKeycode, per: int(reply.KeysymsPerKeycode), syms: reply.Keysyms}
	if c.keys.per == 0 || len(c.keys.syms)%c.keys.per != 0 {
		return fmt.Errorf("the keyboard mapping has %d keysyms in rows of %d", len(c.keys.syms), c.keys.per)
	}
	return nil
}

func orClosed(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return errors.New("the server closed the connection")
	}
	return err
}

// await runs f, which waits for the server, until ctx is done. A server that
// does not answer makes the controller unusable: what it got is not known.
func (c *Controller) await(ctx context.Context, f func() error) error {
	if c.broken != nil {
		return c.broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		c.broken = fmt.Errorf("the X server did not answer in time (%w); open it again", ctx.Err())
		c.conn.Close()
		return c.broken
	}
}

// act runs f between two readings of the clock, which are the event's interval.
func (c *Controller) act(ctx context.Context, name, detail string, f func(sent func() error) error) (lab.Event, error) {
	e := lab.Event{Name: name, Detail: detail}
	err := c.await(ctx, func() error {
		e.Earliest = c.clock()
		err := f(func() error {
			// The confirmation ends the interval. The release is queued behind the question, before its answer: the
			// server repeats a key whose release waits for this process, which may stand still for a while.
			question := xproto.GetInputFocus(c.conn)
			released := c.releasing()
			err := answered(question)
			e.Latest = c.clock()
			return errors.Join(err, released())
		})
		if len(c.held) == 0 {
			return err // nothing to release, and what was sent is confirmed
		}
		return errors.Join(err, c.release())
	})
	if err != nil {
		err = fmt.Errorf("%s %q: %w", name, detail, err)
	}
	if err != nil && !control.IsHeld(err) {
		return lab.Event{}, err
	}
	return e, err
}

// sync waits until the server has done what was asked before.
func (c *Controller) sync() error { return answered(xproto.GetInputFocus(c.conn)) }

func answered(question xproto.GetInputFocusCookie) error {
	reply, err := question.Reply()
	if err != nil || reply == nil {
		return orClosed(err)
	}
	return nil
}

// press sends a press of a key or button and remembers to release it.
func (c *Controller) press(kind, detail byte) {
	release := byte(xproto.KeyRelease)
	if kind == xproto.ButtonPress {
		release = xproto.ButtonRelease
	}
	if len(c.held) == 0 {
		c.since = c.clock()
	}
	c.held = append(c.held, held{release, detail})
	xtest.FakeInput(c.conn, kind, detail, 0, c.screen.Root, 0, 0, 0)
}

// release lets go of all that is held, the last first.
func (c *Controller) release() error { return c.releasing()() }

// releasing sends what release does. The returned function waits until the server has done it. Its error is a
// control.HeldError if a key may have been down for longer than the server waits before it repeats.
func (c *Controller) releasing() (wait func() error) {
	var sent []xtest.FakeInputCookie
	keys, since := false, c.since
	for len(c.held) > 0 {
		h := c.held[len(c.held)-1]
		c.held = c.held[:len(c.held)-1]
		keys = keys || h.release == xproto.KeyRelease
		sent = append(sent, xtest.FakeInputChecked(c.conn, h.release, h.detail, 0, c.screen.Root, 0, 0, 0))
	}
	return func() error {
		var errs []error
		for _, cookie := range sent {
			if err := cookie.Check(); err != nil {
				errs = append(errs, fmt.Errorf("releasing: %w", orClosed(err)))
			}
		}
		if keys {
			errs = append(errs, control.CheckHeld("the key", c.clock().Sub(since), c.repeat))
		}
		return errors.Join(errs...)
	}
}

// Close releases what is held, gives bound keycodes back and disconnects.
func (c *Controller) Close() error {
	defer c.conn.Close()
	lifted := c.touch.close()
	if c.broken != nil {
		return nil
	}
	if c.down != 0 {
		c.held = append(c.held, held{xproto.ButtonRelease, byte(c.down)})
		c.down = 0
	}
	err := c.release()
	for s, code := range c.bound {
		err = errors.Join(err, c.bind(code, 0))
		delete(c.bound, s)
	}
	if err = errors.Join(err, lifted, c.sync()); err != nil {
		return fmt.Errorf("close display: %w", err)
	}
	return nil
}
