package x11

import (
	"context"
	"errors"
	"fmt"

	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"eidetic/control"
	"eidetic/internal/lab"
)

var _ control.Holder = (*Controller)(nil)

// Press moves to x, y and presses the button, which stays down until Lift or Close.
func (c *Controller) Press(ctx context.Context, x, y int, b control.Button) (lab.Event, error) {
	if err := errors.Join(c.inside(x, y), control.CheckButton(b)); err != nil {
		return lab.Event{}, err
	}
	if c.down != 0 {
		return lab.Event{}, fmt.Errorf("press: button %d is down already", c.down)
	}
	e, err := c.act(ctx, "press", fmt.Sprintf("%d,%d button %d", x, y, b), func(sent func() error) error {
		c.move(x, y)
		xtest.FakeInput(c.conn, xproto.ButtonPress, byte(b), 0, c.screen.Root, 0, 0, 0)
		return sent()
	})
	if err == nil {
		c.down = b
	}
	return e, err
}

// Lift releases the button that Press holds.
func (c *Controller) Lift(ctx context.Context) (lab.Event, error) {
	if c.down == 0 {
		return lab.Event{}, errors.New("lift: no button is down")
	}
	return c.act(ctx, "lift", fmt.Sprintf("button %d", c.down), func(sent func() error) error {
		xtest.FakeInput(c.conn, xproto.ButtonRelease, byte(c.down), 0, c.screen.Root, 0, 0, 0)
		c.down = 0
		return sent()
	})
}

// Size returns the size of the screen in pixels.
func (c *Controller) Size() (width, height int) {
	return int(c.screen.WidthInPixels), int(c.screen.HeightInPixels)
}
