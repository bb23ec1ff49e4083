package hid

import (
	"context"
	"errors"
	"fmt"
	"image"
	"time"

	"eidetic/control"
	"eidetic/internal/lab"
)

// Interval is when the device can have got a report.
type Interval struct{ Earliest, Latest lab.Time }

// Sink brings reports to a device.
type Sink interface {
	// Send brings reports of one kind to the device, and returns when it has them all, with an interval for each, or an
	// error. A report is on its way before that of the one before is known to have arrived or, where the transport
	// takes one at a time, is sent by a thread that nothing holds up: a device repeats a key whose release waits. A
	// kind of report that Capabilities lack is never given to it.
	Send(ctx context.Context, reports ...Report) ([]Interval, error)
	// CapsLock says whether the device has Caps Lock on, as far as it told.
	CapsLock(ctx context.Context) (on, known bool)
	Capabilities() control.Capabilities
	// Close releases the transport.
	Close() error
}

// Paster is a Sink with another way for a text, which brings any characters at once.
type Paster interface {
	Sink
	// PreparePaste makes ready, which may take some seconds, or says why nothing can be pasted and what to do.
	PreparePaste(ctx context.Context) error
	// Paste brings a text, and returns when the device has it.
	Paste(ctx context.Context, text string) (Interval, error)
}

// Options of a controller.
type Options struct {
	Layout string      // of the device's keyboard; see [Layouts]
	Screen image.Point // the device's screen in pixels, in which all points are
	Clock  lab.Clock
	// Gain is by how many pixels the device moves its pointer for each count of a relative mouse; 0 is 1.
	Gain float64
	// Repeat is how long a key or a finger may be down before the device makes more of it; 0 is control.RepeatDelay.
	Repeat time.Duration
}

// Controller is a control.Controller over a Sink.
type Controller struct {
	sink    Sink
	can     control.Capabilities
	layout  *Layout
	screen  image.Point
	gain    float64 // pixels for each count of a relative mouse
	repeat  time.Duration
	clock   lab.Clock
	at      image.Point // where an absolute pointer was put
	counted image.Point // from the top left corner to where a relative one was put
	began   lab.Time    // scan times count from here
	dirty   dirty
	fingers []Contact // that are down
	held    byte      // the button that Press holds, as a mouse report has it
	finger  bool      // Press holds a finger
	last    part      // that sent the last report, at lastAt
	lastAt  lab.Time
}

// part is a device of its own to the host: keyboard, pointer, touch screen.
type part uint8

const (
	none part = iota
	keyboard
	pointer
	touchScreen
	clipboard
)

// apart is how long after a report of one part that of another is sent: a host asks each part for itself, every few
// milliseconds, and what is typed right after a click would come before it now and then.
const apart = 15 * time.Millisecond

// turn waits until a report of a part comes after those of the others. A wait that is cancelled is over: what is held
// is still released.
func (c *Controller) turn(ctx context.Context, p part) {
	if gap := apart - c.clock().Sub(c.lastAt); c.last != none && c.last != p && gap > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(min(gap, apart)):
		}
	}
	c.last = p
}

// sent notes when the last report was sent.
func (c *Controller) sent() { c.lastAt = c.clock() }

// dirty is what may be down and must be released.
type dirty struct{ keys, buttons, fingers bool }

var (
	_ control.Holder       = (*Controller)(nil)
	_ control.Toucher      = (*Controller)(nil)
	_ control.Describer    = (*Controller)(nil)
	_ control.TextPreparer = (*Controller)(nil)
)

// maxScreen bounds a screen's side.
const maxScreen = 1 << 14

// CheckGain refuses a gain that no device has.
func CheckGain(gain float64) error {
	const least, most = 0.1, 10
	if !(gain >= least && gain <= most) {
		return fmt.Errorf("a gain of %g: a device moves its pointer by %g to %d pixels for each count", gain, least, most)
	}
	return nil
}

// New makes a controller, which takes over the sink.
func New(sink Sink, o Options) (*Controller, error) {
	layout, err := NewLayout(o.Layout)
	if err != nil {
		return nil, err
	}
	can := sink.Capabilities()
	if (can.Pointer || can.Touch > 0) && (o.Screen.X < 1 || o.Screen.Y < 1 || o.Screen.X > maxScreen || o.Screen.Y > maxScreen) {
		return nil, fmt.Errorf("the screen of %d×%d pixels: each side has 1 … %d", o.Screen.X, o.Screen.Y, maxScreen)
	}
	if o.Clock == nil {
		o.Clock = lab.Monotonic
	}
	if can.Keyboard {
		can.Layout = layout.Name
	}
	if o.Gain == 0 {
		o.Gain = 1
	}
	if err := CheckGain(o.Gain); err != nil {
		return nil, err
	}
	return &Controller{
		sink: sink, can: can, layout: layout, screen: o.Screen, gain: o.Gain, repeat: o.Repeat, clock: o.Clock, began: o.Clock(),
	}, nil
}

// Capabilities says what this device can be made to do.
func (c *Controller) Capabilities() control.Capabilities { return c.can }

// Size is that of the device's screen, as the options have it.
func (c *Controller) Size() (image.Point, error) { return c.screen, nil }

// releaseLimit is how long a release may take after its caller gave up.
const releaseLimit = 2 * time.Second

// act runs f and releases all that it left down, even if its context has ended.
func (c *Controller) act(ctx context.Context, name, detail string, f func() (Interval, error)) (lab.Event, error) {
	err := ctx.Err()
	var at Interval
	if err == nil {
		at, err = f()
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	err = errors.Join(err, c.release(late))
	if err != nil {
		err = fmt.Errorf("%s %q: %w", name, detail, err)
	}
	if err != nil && !control.IsHeld(err) {
		return lab.Event{}, err
	}
	return lab.Event{Name: name, Detail: detail, Earliest: at.Earliest, Latest: at.Latest}, err
}

// release lifts fingers, buttons and keys that may be down.
func (c *Controller) release(ctx context.Context) error {
	var errs []error
	if c.dirty.fingers {
		c.finger = false // a finger that may be down although its report failed is not held
		_, err := c.touch(ctx, nil)
		errs = append(errs, err)
	}
	if c.dirty.buttons {
		_, err := c.buttons(ctx)
		errs = append(errs, err)
	}
	if c.dirty.keys {
		_, err := c.keys(ctx, Stroke{})
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("releasing: %w", err)
	}
	return nil
}

// keys sends states of the keyboard: one key at most, and modifiers. The interval is that of the first.
func (c *Controller) keys(ctx context.Context, strokes ...Stroke) (Interval, error) {
	reports := make([]Report, 0, len(strokes))
	for _, s := range strokes {
		reports = append(reports, Keyboard{Modifiers: s.Modifiers, Keys: [6]Usage{s.Key}})
	}
	return c.send(ctx, keyboard, &c.dirty.keys, strokes[len(strokes)-1] != Stroke{}, reports...)
}

// send sends reports of one part, of which the last leaves something down or not. What is released by the last is
// released at once, and the error is a control.HeldError if it may have been down for too long all the same.
func (c *Controller) send(ctx context.Context, p part, dirty *bool, leaves bool, reports ...Report) (Interval, error) {
	c.turn(ctx, p)
	defer c.sent()
	*dirty = true // a report that fails may have arrived
	at, err := c.sink.Send(ctx, reports...)
	if err != nil {
		return Interval{}, err
	}
	*dirty = leaves
	if last := at[len(at)-1]; len(at) > 1 && p != pointer {
		what := map[part]string{keyboard: "the key", touchScreen: "the finger"}[p]
		err = control.CheckHeld(what, last.Latest.Sub(at[0].Earliest), c.repeat)
	}
	return at[0], err
}

// tap presses the modifiers, then the key, and releases both. The interval is that of the key.
func (c *Controller) tap(ctx context.Context, s Stroke) (Interval, error) {
	if s.Modifiers != 0 {
		if at, err := c.keys(ctx, Stroke{Modifiers: s.Modifiers}); err != nil {
			return at, err
		}
	}
	return c.keys(ctx, s, Stroke{})
}

var errNoKeyboard = errors.New("this controller has no keyboard") // constant

// Key presses and releases a key or chord. The event's interval is that of the key itself.
func (c *Controller) Key(ctx context.Context, chord string) (lab.Event, error) {
	parsed, err := control.ParseChord(chord)
	if err != nil {
		return lab.Event{}, err
	}
	s, err := c.layout.Chord(parsed)
	if err == nil && !c.can.Keyboard {
		err = errNoKeyboard
	}
	if err != nil {
		return lab.Event{}, fmt.Errorf("key %q: %w", chord, err)
	}
	return c.act(ctx, "key", parsed.String(), func() (Interval, error) { return c.tap(ctx, s) })
}

// strokes are the keys that type a text; pasted says that none do, and that it can be pasted.
func (c *Controller) strokes(ctx context.Context, text string) (all []Stroke, pasted bool, err error) {
	runes, err := control.CheckText(text)
	if err == nil && !c.can.Keyboard {
		err = errNoKeyboard
	}
	if err != nil {
		return nil, false, err
	}
	for i, r := range runes {
		s, err := c.layout.Strokes(r)
		if err != nil {
			return nil, true, c.preparePaste(ctx, runes, fmt.Errorf("text: character %d: %w", i+1, err))
		}
		all = append(all, s...)
	}
	return all, false, nil
}

// preparePaste makes ready to paste what cannot be typed, for a reason.
func (c *Controller) preparePaste(ctx context.Context, runes []rune, reason error) error {
	p, ok := c.sink.(Paster)
	if !ok {
		return reason
	}
	for i, r := range runes {
		if r == '\n' || r == '\r' || r == '\t' {
			return fmt.Errorf("%w, so the text would be pasted, which presses no key: write character %d (%U) as a step of its own, "+
				"key Enter or key Tab", reason, i+1, r)
		}
	}
	if err := p.PreparePaste(ctx); err != nil {
		return fmt.Errorf("%w, and it cannot be pasted: %w", reason, err)
	}
	return nil
}

// PrepareText implements [control.TextPreparer].
func (c *Controller) PrepareText(ctx context.Context, text string) (pasted bool, err error) {
	_, pasted, err = c.strokes(ctx, text)
	return pasted, err
}

// paste brings a text at once.
func (c *Controller) paste(ctx context.Context, text string) (Interval, error) {
	p, ok := c.sink.(Paster)
	if !ok {
		return Interval{}, errNoKeyboard // strokes asked before
	}
	c.turn(ctx, clipboard)
	defer c.sent()
	return p.Paste(ctx, text)
}

// Text types the characters in order; if the layout lacks one of them, and the sink is a Paster, the whole text is pasted.
// The interval runs from before the first to after the last. All of the text is looked up before a key is pressed.
func (c *Controller) Text(ctx context.Context, text string) (lab.Event, error) {
	strokes, pasted, err := c.strokes(ctx, text)
	if err != nil {
		return lab.Event{}, err
	}
	if pasted {
		return c.act(ctx, lab.EventPaste, text, func() (Interval, error) { return c.paste(ctx, text) })
	}
	return c.act(ctx, lab.EventText, text, func() (Interval, error) {
		if on, known := c.sink.CapsLock(ctx); known && on {
			if _, err := c.tap(ctx, Stroke{Key: usageCaps}); err != nil {
				return Interval{}, fmt.Errorf("switching Caps Lock off: %w", err)
			}
		}
		var whole Interval
		for i, s := range strokes {
			at, err := c.tap(ctx, s)
			if i == 0 {
				whole.Earliest = at.Earliest
			}
			whole.Latest = at.Latest
			if err != nil {
				return whole, err
			}
		}
		return whole, nil
	})
}

// Close releases what is held and the transport.
func (c *Controller) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	c.dirty.buttons = c.dirty.buttons || c.held != 0
	c.dirty.fingers = c.dirty.fingers || c.finger
	c.held = 0
	return errors.Join(c.release(ctx), c.sink.Close())
}
