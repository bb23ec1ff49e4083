package x11

import (
	"context"
	"fmt"
	"unicode"

	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"eidetic/control"
	"eidetic/control/keysym"
	"eidetic/internal/lab"
)

// Key presses and releases a key or chord. The event's interval is that of the
// press of the key itself, after its modifiers.
func (c *Controller) Key(ctx context.Context, chord string) (lab.Event, error) {
	parsed, err := control.ParseChord(chord)
	if err != nil {
		return lab.Event{}, err
	}
	return c.act(ctx, "key", parsed.String(), func(sent func() error) error {
		for _, m := range parsed.Modifiers {
			s, ok := c.keys.find(xproto.Keysym(keysym.OfModifier(m)))
			if !ok {
				return fmt.Errorf("the keyboard mapping has no %s key", m)
			}
			c.press(xproto.KeyPress, byte(s.code))
		}
		s, err := c.strokeOf(xproto.Keysym(keysym.OfKey(parsed.Key)))
		if err != nil {
			return err
		}
		if err := c.hold(s); err != nil {
			return err
		}
		c.press(xproto.KeyPress, byte(s.code))
		return sent()
	})
}

// Text types the characters in order. The event's interval runs from before
// the first to after the last.
func (c *Controller) Text(ctx context.Context, text string) (lab.Event, error) {
	runes, err := control.CheckText(text)
	if err != nil {
		return lab.Event{}, err
	}
	return c.act(ctx, lab.EventText, text, func(sent func() error) error {
		locked, err := c.capsLocked()
		if err != nil {
			return err
		}
		for _, r := range runes {
			if err := ctx.Err(); err != nil {
				return err
			}
			s, err := c.strokeOf(xproto.Keysym(keysym.OfRune(r)))
			if err != nil {
				return err
			}
			if locked && unicode.IsLetter(r) && !s.level3 {
				s.shift = !s.shift
			}
			if err := c.hold(s); err != nil {
				return err
			}
			c.press(xproto.KeyPress, byte(s.code))
			if err := c.release(); err != nil {
				return err
			}
		}
		return sent()
	})
}

// hold presses the modifiers that a stroke needs.
func (c *Controller) hold(s stroke) error {
	for _, m := range []struct {
		need bool
		sym  xproto.Keysym
		name string
	}{{s.shift, keysym.Shift, "Shift"}, {s.level3, keysym.Level3, "AltGr"}} {
		if !m.need {
			continue
		}
		key, ok := c.keys.find(m.sym)
		if !ok {
			return fmt.Errorf("the keyboard mapping has no %s key", m.name)
		}
		c.press(xproto.KeyPress, byte(key.code))
	}
	return nil
}

// strokeOf finds the key for a keysym, binding a spare keycode if the layout has none.
func (c *Controller) strokeOf(s xproto.Keysym) (stroke, error) {
	if found, ok := c.keys.find(s); ok {
		return found, nil
	}
	if code, ok := c.bound[s]; ok {
		return stroke{code: code}, nil
	}
	free := c.keys.spare()
	if len(free) <= len(c.bound) {
		return stroke{}, fmt.Errorf("no key types %s, and all %d unused keycodes are taken", describe(s), len(free))
	}
	code := free[len(c.bound)]
	if err := c.bind(code, s); err != nil {
		return stroke{}, err
	}
	c.bound[s] = code
	return stroke{code: code}, nil
}

// bind gives a spare keycode a keysym in both columns, so that no modifier
// changes it, or takes it back with 0.
func (c *Controller) bind(code xproto.Keycode, s xproto.Keysym) error {
	if err := xproto.ChangeKeyboardMappingChecked(c.conn, 1, code, 2, []xproto.Keysym{s, s}).Check(); err != nil {
		return fmt.Errorf("binding %s to keycode %d: %w", describe(s), code, orClosed(err))
	}
	return nil
}

func describe(s xproto.Keysym) string {
	if s >= 0x01000000 && s <= 0x0110ffff {
		return fmt.Sprintf("%q", rune(s-0x01000000))
	}
	return fmt.Sprintf("keysym %#x", uint32(s))
}

func (c *Controller) capsLocked() (bool, error) {
	p, err := xproto.QueryPointer(c.conn, c.screen.Root).Reply()
	if err != nil || p == nil {
		return false, orClosed(err)
	}
	return p.Mask&xproto.ModMaskLock != 0, nil
}

// Move puts the pointer at x, y.
func (c *Controller) Move(ctx context.Context, x, y int) (lab.Event, error) {
	if err := c.inside(x, y); err != nil {
		return lab.Event{}, err
	}
	return c.act(ctx, "move", fmt.Sprintf("%d,%d", x, y), func(sent func() error) error {
		c.move(x, y)
		return sent()
	})
}

func (c *Controller) move(x, y int) {
	xtest.FakeInput(c.conn, xproto.MotionNotify, 0, 0, c.screen.Root, int16(x), int16(y), 0)
}

func (c *Controller) inside(x, y int) error {
	return control.CheckPoint(x, y, int(c.screen.WidthInPixels), int(c.screen.HeightInPixels))
}

// Click moves to x, y, presses and releases the button. The interval is that of the press.
func (c *Controller) Click(ctx context.Context, x, y int, b control.Button) (lab.Event, error) {
	if err := c.inside(x, y); err != nil {
		return lab.Event{}, err
	}
	if err := control.CheckButton(b); err != nil {
		return lab.Event{}, err
	}
	return c.act(ctx, "click", fmt.Sprintf("%d,%d button %d", x, y, b), func(sent func() error) error {
		c.move(x, y)
		c.press(xproto.ButtonPress, byte(b))
		return sent()
	})
}

// Scroll turns the wheel at x, y: buttons 4 to 7, as X has it. The interval is
// that of all notches.
func (c *Controller) Scroll(ctx context.Context, x, y, dx, dy int) (lab.Event, error) {
	if err := c.inside(x, y); err != nil {
		return lab.Event{}, err
	}
	if err := control.CheckScroll(dx, dy); err != nil {
		return lab.Event{}, err
	}
	return c.act(ctx, "scroll", fmt.Sprintf("%d,%d by %d,%d", x, y, dx, dy), func(sent func() error) error {
		c.move(x, y)
		for _, axis := range []struct {
			by                int
			forward, backward byte
		}{{dy, 5, 4}, {dx, 7, 6}} {
			button, n := axis.forward, axis.by
			if n < 0 {
				button, n = axis.backward, -n
			}
			for range n {
				c.press(xproto.ButtonPress, button)
				if err := c.release(); err != nil {
					return err
				}
			}
		}
		return sent()
	})
}
