package hid

import (
	"context"
	"time"

	"eidetic/control"
	"eidetic/internal/lab"
)

var _ control.Echoer = (*Controller)(nil)

// Echo presses Caps Lock, waits until the device switches the keyboard's light on, and switches it
// off again, whether it was seen or not. The key is up before the light is waited for: many systems
// switch the light off only when the key is released, and one that is held repeats.
func (c *Controller) Echo(ctx context.Context) (control.Echo, error) {
	if !c.can.Keyboard {
		return control.Echo{}, errNoKeyboard
	}
	if err := c.learnLight(ctx); err != nil {
		return control.Echo{}, err
	}
	return control.EchoCaps(ctx, c.clock, c.sink.CapsLock, c.caps)
}

// learnLight makes a device tell its lights that has not yet, because nothing has changed them since
// it was connected: the key is pressed twice.
func (c *Controller) learnLight(ctx context.Context) error {
	if _, known := c.sink.CapsLock(ctx); known {
		return nil
	}
	for range 2 {
		if _, err := c.caps(ctx); err != nil {
			return err
		}
	}
	known := func(ctx context.Context) (either, known bool) {
		_, known = c.sink.CapsLock(ctx)
		return known, known
	}
	if _, err := control.AwaitLight(ctx, c.clock, known, true, c.clock()); err != nil {
		return err
	}
	time.Sleep(lightSettles)
	return nil
}

// lightSettles is how long a device has for the second of two lights.
const lightSettles = 200 * time.Millisecond

func (c *Controller) caps(ctx context.Context) (lab.Event, error) {
	return c.act(ctx, "key", "CapsLock", func() (Interval, error) { return c.tap(ctx, Stroke{Key: usageCaps}) })
}
