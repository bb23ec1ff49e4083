package rfb

import (
	"context"
	"fmt"
	"image"
	"strings"

	"eidetic/control"
	"eidetic/control/keysym"
	"eidetic/internal/base/rfb"
	"eidetic/internal/lab"
)

// Key presses and releases a key or chord. The event's interval is that of all
// its presses.
func (c *Controller) Key(ctx context.Context, chord string) (lab.Event, error) {
	parsed, err := control.ParseChord(chord)
	if err != nil {
		return lab.Event{}, err
	}
	var b []byte
	for _, m := range parsed.Modifiers {
		b = c.press(b, keysym.OfModifier(m))
	}
	return c.act(ctx, "key", parsed.String(), c.stroke(b, keysym.OfKey(parsed.Key)))
}

// press presses a key, to be released later.
func (c *Controller) press(b []byte, key uint32) []byte {
	c.keys = append(c.keys, key)
	return rfb.AppendKey(b, true, key)
}

// stroke presses a key, with Shift where a US keyboard needs it.
func (c *Controller) stroke(b []byte, key uint32) []byte {
	if shifted(key) {
		b = c.press(b, keysym.Shift)
	}
	return c.press(b, key)
}

// shifted says whether a US keyboard types the character with Shift.
func shifted(key uint32) bool {
	return key >= 'A' && key <= 'Z' || key < 0x80 && strings.ContainsRune(`~!@#$%^&*()_+{}|:"<>?`, rune(key))
}

// Text types the characters in order. The event's interval runs from before
// the first to after the last.
func (c *Controller) Text(ctx context.Context, text string) (lab.Event, error) {
	runes, err := control.CheckText(text)
	if err != nil {
		return lab.Event{}, err
	}
	var b []byte
	for _, r := range runes {
		b = c.release(c.stroke(b, keysym.OfRune(r)))
	}
	return c.act(ctx, lab.EventText, text, b)
}

// point takes the pointer's next place.
func (c *Controller) point(x, y int) error {
	size, _, _ := c.state()
	if err := control.CheckPoint(x, y, size.X, size.Y); err != nil {
		return err
	}
	c.at = image.Pt(x, y)
	return nil
}

// Move puts the pointer at x, y.
func (c *Controller) Move(ctx context.Context, x, y int) (lab.Event, error) {
	if err := c.point(x, y); err != nil {
		return lab.Event{}, err
	}
	return c.act(ctx, "move", fmt.Sprintf("%d,%d", x, y), rfb.AppendPointer(nil, 0, x, y))
}

// Click moves to x, y, presses and releases the button. The interval is that of
// the move and the press.
func (c *Controller) Click(ctx context.Context, x, y int, button control.Button) (lab.Event, error) {
	if err := control.CheckButton(button); err != nil {
		return lab.Event{}, err
	}
	if err := c.point(x, y); err != nil {
		return lab.Event{}, err
	}
	c.buttons = 1 << (button - 1)
	b := rfb.AppendPointer(rfb.AppendPointer(nil, 0, x, y), c.buttons, x, y)
	return c.act(ctx, "click", fmt.Sprintf("%d,%d button %d", x, y, button), b)
}

// The buttons that stand for the wheel, as bits of a pointer message.
const (
	wheelUp    = 1 << 3
	wheelDown  = 1 << 4
	wheelLeft  = 1 << 5
	wheelRight = 1 << 6
)

// Scroll turns the wheel at x, y. The interval is that of all notches.
func (c *Controller) Scroll(ctx context.Context, x, y, dx, dy int) (lab.Event, error) {
	if err := control.CheckScroll(dx, dy); err != nil {
		return lab.Event{}, err
	}
	if err := c.point(x, y); err != nil {
		return lab.Event{}, err
	}
	b := rfb.AppendPointer(nil, 0, x, y)
	for _, axis := range []struct {
		by                int
		forward, backward byte
	}{{dy, wheelDown, wheelUp}, {dx, wheelRight, wheelLeft}} {
		button, n := axis.forward, axis.by
		if n < 0 {
			button, n = axis.backward, -n
		}
		for range n {
			b = rfb.AppendPointer(rfb.AppendPointer(b, button, x, y), 0, x, y)
		}
	}
	return c.act(ctx, "scroll", fmt.Sprintf("%d,%d by %d,%d", x, y, dx, dy), b)
}
