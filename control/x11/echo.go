package x11

import (
	"context"

	"eidetic/control"
)

var _ control.Echoer = (*Controller)(nil)

// Echo presses Caps Lock, waits until the server has locked it, and unlocks it again. It is the
// server's own answer: no program on the screen has had a part in it.
func (c *Controller) Echo(ctx context.Context) (echo control.Echo, err error) {
	caps := func(ctx context.Context) (on, known bool) {
		err := c.await(ctx, func() (err error) { on, err = c.capsLocked(); return err })
		return on, err == nil
	}
	off := func(ctx context.Context) error {
		e, err := c.Key(ctx, "CapsLock")
		if err == nil {
			_, err = control.AwaitLight(ctx, c.clock, caps, false, e.Earliest)
		}
		return err
	}
	if on, known := caps(ctx); known && on {
		if err := off(ctx); err != nil {
			return echo, err
		}
	}
	if echo.Press, err = c.Key(ctx, "CapsLock"); err != nil {
		return echo, err
	}
	echo.Light, err = control.AwaitLight(ctx, c.clock, caps, true, echo.Press.Earliest)
	if back := off(context.WithoutCancel(ctx)); err == nil {
		err = back
	}
	return echo, err
}
