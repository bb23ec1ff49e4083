package hid

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"slices"
	"time"

	"eidetic/control"
	"eidetic/internal/lab"
)

var (
	errNoPointer = errors.New("this controller has neither a mouse nor a touch screen") // constant
	errNoWheel   = errors.New("this controller has no wheel: drag a finger instead")    // constant
)

// buttonBit returns the bit of a mouse report: HID numbers the right button before the middle one.
func buttonBit(b control.Button) byte {
	switch b {
	case control.Middle:
		return 1 << 2
	case control.Right:
		return 1 << 1
	default:
		return 1 << 0
	}
}

// pointer sends the state of the absolute mouse, once for each of the buttons, besides one that is held. The interval
// is that of the first.
func (c *Controller) pointer(ctx context.Context, wheel, pan int, buttons ...byte) (Interval, error) {
	reports := make([]Report, 0, len(buttons))
	for _, b := range buttons {
		reports = append(reports, Pointer{
			Buttons: b | c.held, Wheel: int8(wheel), Pan: int8(pan),
			X: Scale(c.at.X, c.screen.X, Full+1), Y: Scale(c.at.Y, c.screen.Y, Full+1),
		})
	}
	return c.send(ctx, pointer, &c.dirty.buttons, buttons[len(buttons)-1] != 0, reports...)
}

// motion is pointer for the relative mouse.
func (c *Controller) motion(ctx context.Context, motions ...Motion) (Interval, error) {
	reports := make([]Report, 0, len(motions))
	for _, m := range motions {
		m.Buttons |= c.held
		reports = append(reports, m)
	}
	return c.send(ctx, pointer, &c.dirty.buttons, motions[len(motions)-1].Buttons != 0, reports...)
}

// goTo puts the mouse, or the finger that is held down, at a point.
func (c *Controller) goTo(ctx context.Context, to image.Point) (Interval, error) {
	switch {
	case c.finger:
		return c.touch(ctx, []Contact{c.contact(0, to, true)})
	case c.can.Pointer:
		c.at = to
		return c.pointer(ctx, 0, 0, 0)
	}
	return c.walk(ctx, to)
}

// walk moves a relative mouse to a point by small steps, along one axis after the other: what a host makes of a step depends on
// how long it is and how soon it follows. It begins in the top left corner, or, while a button is held, where it was put.
func (c *Controller) walk(ctx context.Context, to image.Point) (Interval, error) {
	if c.held == 0 {
		for left := 2 * max(c.screen.X, c.screen.Y); left > 0; left -= int(127 * min(c.gain, 1)) {
			if at, err := c.motion(ctx, Motion{DX: -127, DY: -127}); err != nil {
				return at, err
			}
		}
		c.counted = image.Point{}
	}
	counts := func(v int) int { return int(math.Round(float64(v) / c.gain)) }
	goal := image.Pt(counts(to.X), counts(to.Y))
	if goal == c.counted {
		return c.motion(ctx, Motion{})
	}
	var whole Interval
	for first := true; c.counted != goal; first = false {
		const step = 8
		by := image.Pt(max(-step, min(goal.X-c.counted.X, step)), 0)
		if by.X == 0 {
			by.Y = max(-step, min(goal.Y-c.counted.Y, step))
		}
		at, err := c.motion(ctx, Motion{DX: int8(by.X), DY: int8(by.Y)})
		if err != nil {
			return at, err
		}
		if first {
			whole.Earliest = at.Earliest
		}
		whole.Latest = at.Latest
		c.counted = c.counted.Add(by)
	}
	return whole, nil
}

// checkPoint refuses a point that is not on the screen, or that nothing can reach.
func (c *Controller) checkPoint(x, y int) error {
	if !c.can.Pointer && !c.can.Motion && c.can.Touch == 0 {
		return errNoPointer
	}
	return control.CheckPoint(x, y, c.screen.X, c.screen.Y)
}

// Move puts the pointer, or the finger that Press put down, at x, y. A touch screen without a
// finger on it has no pointer, and refuses.
func (c *Controller) Move(ctx context.Context, x, y int) (lab.Event, error) {
	err := c.checkPoint(x, y)
	if err == nil && !c.finger && !c.can.Pointer && !c.can.Motion {
		err = errors.New("move: a touch screen has no pointer to move")
	}
	if err != nil {
		return lab.Event{}, err
	}
	return c.act(ctx, "move", fmt.Sprintf("%d,%d", x, y), func() (Interval, error) { return c.goTo(ctx, image.Pt(x, y)) })
}

// touches says whether clicks and drags are a finger's.
func (c *Controller) touches() bool { return !c.can.Pointer && c.can.Touch > 0 }

// Click moves to x, y, presses and releases the button; where there is no absolute
// mouse but a touch screen, a finger taps there. The interval is that of the press.
func (c *Controller) Click(ctx context.Context, x, y int, b control.Button) (lab.Event, error) {
	err := errors.Join(control.CheckButton(b), c.checkPoint(x, y))
	touch := c.touches()
	if err == nil && touch && b != control.Left {
		err = fmt.Errorf("click: a touch screen has no button %d", b)
	}
	if err != nil {
		return lab.Event{}, err
	}
	return c.act(ctx, "click", fmt.Sprintf("%d,%d button %d", x, y, b), func() (Interval, error) {
		if touch {
			return c.touch(ctx, []Contact{c.contact(0, image.Pt(x, y), true)}, nil)
		}
		if at, err := c.goTo(ctx, image.Pt(x, y)); err != nil {
			return at, err
		}
		if c.can.Pointer {
			return c.pointer(ctx, 0, 0, buttonBit(b), 0)
		}
		return c.motion(ctx, Motion{Buttons: buttonBit(b)}, Motion{})
	})
}

// Scroll turns the wheel at x, y, one notch a report. The interval is that of all notches.
func (c *Controller) Scroll(ctx context.Context, x, y, dx, dy int) (lab.Event, error) {
	err := errors.Join(control.CheckScroll(dx, dy), c.checkPoint(x, y))
	if err == nil && !c.can.Wheel {
		err = errNoWheel
	}
	if err != nil {
		return lab.Event{}, err
	}
	return c.act(ctx, "scroll", fmt.Sprintf("%d,%d by %d,%d", x, y, dx, dy), func() (Interval, error) {
		whole, err := c.goTo(ctx, image.Pt(x, y))
		for first := true; err == nil && (dx != 0 || dy != 0); first = false {
			wheel, pan := -sign(dy), sign(dx) // HID's wheel is positive away from the user: up
			dy, dx = dy+wheel, dx-pan
			var at Interval
			if c.can.Pointer {
				at, err = c.pointer(ctx, wheel, pan, 0)
			} else {
				at, err = c.motion(ctx, Motion{Wheel: int8(wheel), Pan: int8(pan)})
			}
			if first {
				whole.Earliest = at.Earliest
			}
			whole.Latest = at.Latest
		}
		return whole, err
	})
}

func sign(n int) int { return min(1, max(-1, n)) }

// contact returns a finger at a point of the screen.
func (c *Controller) contact(id byte, p image.Point, down bool) Contact {
	return Contact{ID: id, Down: down, X: Scale(p.X, c.screen.X, Full+1), Y: Scale(p.Y, c.screen.Y, Full+1)}
}

// touch sends states of the touch screen. Fingers that were down and are not among the contacts are lifted where they
// were: a host wants to see each finger leave. The interval is that of the first state.
func (c *Controller) touch(ctx context.Context, states ...[]Contact) (Interval, error) {
	reports := make([]Report, 0, len(states))
	fingers := c.fingers
	for i, contacts := range states {
		all := slices.Clone(contacts)
		for _, before := range fingers {
			if !slices.ContainsFunc(contacts, func(now Contact) bool { return now.ID == before.ID }) {
				before.Down = false
				all = append(all, before)
			}
		}
		scan := uint16((c.clock()-c.began)/lab.Time(100*time.Microsecond)) + uint16(i)
		reports = append(reports, Touch{Contacts: all, Scan: scan})
		fingers = contacts
	}
	at, err := c.send(ctx, touchScreen, &c.dirty.fingers, len(fingers) > 0 && !c.finger, reports...)
	if err == nil || control.IsHeld(err) {
		c.fingers = slices.Clone(fingers)
	}
	return at, err
}

// Press moves to x, y and presses the button there, or puts a finger there; either stays
// down until Lift or Close. The interval is that of the press.
func (c *Controller) Press(ctx context.Context, x, y int, b control.Button) (lab.Event, error) {
	err := errors.Join(control.CheckButton(b), c.checkPoint(x, y))
	if err == nil && c.touches() && b != control.Left {
		err = fmt.Errorf("a touch screen has no button %d", b)
	}
	if err == nil && (c.held != 0 || c.finger) {
		err = errors.New("something is held down already")
	}
	if err != nil {
		return lab.Event{}, fmt.Errorf("press: %w", err)
	}
	return c.act(ctx, "press", fmt.Sprintf("%d,%d button %d", x, y, b), func() (Interval, error) {
		if c.touches() {
			c.finger = true
			at, err := c.touch(ctx, []Contact{c.contact(0, image.Pt(x, y), true)})
			c.finger = err == nil
			return at, err
		}
		if at, err := c.goTo(ctx, image.Pt(x, y)); err != nil {
			return at, err
		}
		c.held = buttonBit(b)
		at, err := c.buttons(ctx)
		if err != nil {
			c.held = 0
		}
		return at, err
	})
}

// buttons sends the state of the mouse where it is.
func (c *Controller) buttons(ctx context.Context) (Interval, error) {
	if c.can.Pointer {
		return c.pointer(ctx, 0, 0, 0)
	}
	return c.motion(ctx, Motion{})
}

// Lift releases what Press holds down.
func (c *Controller) Lift(ctx context.Context) (lab.Event, error) {
	if c.held == 0 && !c.finger {
		return lab.Event{}, errors.New("lift: nothing is held down")
	}
	return c.act(ctx, "lift", "", func() (Interval, error) {
		if c.finger {
			c.finger = false
			return c.touch(ctx, nil)
		}
		c.held = 0
		return c.buttons(ctx)
	})
}

// Touch puts fingers on the touch screen, moves and lifts them.
func (c *Controller) Touch(ctx context.Context, fingers ...image.Point) (lab.Event, error) {
	if len(fingers) > c.can.Touch || c.can.Touch == 0 {
		return lab.Event{}, fmt.Errorf("touch: %d fingers, and this controller has a touch screen for %d", len(fingers), c.can.Touch)
	}
	contacts := make([]Contact, 0, len(fingers))
	for i, p := range fingers {
		if err := control.CheckPoint(p.X, p.Y, c.screen.X, c.screen.Y); err != nil {
			return lab.Event{}, fmt.Errorf("touch: finger %d: %w", i+1, err)
		}
		contacts = append(contacts, c.contact(byte(i), p, true))
	}
	return c.act(ctx, "touch", fmt.Sprintf("%d fingers", len(fingers)), func() (Interval, error) {
		c.finger = len(fingers) > 0
		return c.touch(ctx, contacts)
	})
}
