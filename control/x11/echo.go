package x11

import (
	"context"

	"eidetic/control"
	"eidetic/internal/lab"
)

var _ control.Echoer = (*Controller)(nil)

// Echo presses Caps Lock, waits until the server has locked it, and unlocks it again. It is the
// server's own answer: no program on the screen has had a part in it.
func (c *Controller) Echo(ctx context.Context) (control.Echo, error) {
	caps := func(ctx context.Context) (on, known bool) {
		err := c.await(ctx, func() (err error) { on, err = c.capsLocked(); return err })
		return on, err == nil
	}
	press := func(ctx context.Context) (lab.Event, error) { return c.Key(ctx, "CapsLock") }
	return control.EchoCaps(ctx, c.clock, caps, press)
}
