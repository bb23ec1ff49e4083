package hid

import (
	"context"
	"errors"
	"time"

	"eidetic/control"
	"eidetic/internal/lab"
)

var _ control.Echoer = (*Controller)(nil)

// Echo presses Caps Lock, waits until the device switches the keyboard's light on, and switches it
// off again, whether it was seen or not.
func (c *Controller) Echo(ctx context.Context) (echo control.Echo, err error) {
	if !c.can.Keyboard {
		return echo, errNoKeyboard
	}
	if err := c.begin(ctx); err != nil {
		return echo, err
	}
	// The key is up before the light is waited for: many systems switch the light off only when the
	// key is released, and one that is held repeats.
	if echo.Press, err = c.caps(ctx); err != nil {
		return echo, err
	}
	echo.Light, err = control.AwaitLight(ctx, c.clock, c.sink.CapsLock, true, echo.Press.Earliest)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*releaseLimit)
	defer cancel()
	if off := c.lightOff(late); err == nil {
		err = off
	}
	return echo, err
}

// begin switches the light off. A device that has not told its lights yet, because nothing has
// changed them since it was connected, is made to by pressing the key twice.
func (c *Controller) begin(ctx context.Context) error {
	on, known := c.sink.CapsLock(ctx)
	for n := 0; n < 2 && !known; n++ {
		if _, err := c.caps(ctx); err != nil {
			return err
		}
	}
	if !known {
		// Either light will do: the key has been pressed twice, so the last one tells.
		if _, err := control.AwaitLight(ctx, c.clock, func(ctx context.Context) (bool, bool) {
			_, known := c.sink.CapsLock(ctx)
			return known, known
		}, true, c.clock()); err != nil {
			return err
		}
		time.Sleep(lightSettles)
		on, _ = c.sink.CapsLock(ctx)
	}
	if on {
		return c.lightOff(ctx)
	}
	return nil
}

// lightSettles is how long a device has for the second of two lights.
const lightSettles = 200 * time.Millisecond

func (c *Controller) caps(ctx context.Context) (lab.Event, error) {
	return c.act(ctx, "key", "CapsLock", func() (Interval, error) { return c.tap(ctx, Stroke{Key: usageCaps}) })
}

func (c *Controller) lightOff(ctx context.Context) error {
	e, err := c.caps(ctx)
	if err == nil {
		_, err = control.AwaitLight(ctx, c.clock, c.sink.CapsLock, false, e.Earliest)
	}
	if errors.Is(err, control.ErrNoEcho) {
		return errors.New("the device does not switch Caps Lock off: switch it off by hand")
	}
	return err
}
