package execute

import (
	"cmp"
	"context"
	"errors"
	"image"
	"time"

	"eidetic/control"
	"eidetic/control/connect"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// keyLimit is how long a device may take to answer one action.
const keyLimit = 30 * time.Second

// keys is a control.Holder: it controls a device over a connection that may be lost: an action without an answer in
// time fails its trial, and the next action connects again.
type keys struct {
	open  func(context.Context) (screenControl, error)
	limit time.Duration
	// replug is how long controls that are unplugged are waited for; 0 is replugLimit.
	replug time.Duration
	now    screenControl // nil if there is no connection
}

// errNoKeys is returned if there is no connection to the device's screen.
var errNoKeys = errors.New("there is no connection to the device's screen")

func (k *keys) ready(ctx context.Context) (err error) {
	if k.now == nil {
		k.now, err = k.open(ctx)
	}
	if err != nil {
		k.now = nil // open may return a typed nil; store a plain nil
	}
	return err
}

// act does one action within keyLimit.
func (k *keys) act(ctx context.Context, do func(context.Context, screenControl) (lab.Event, error)) (lab.Event, error) {
	limited, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	err := k.ready(limited)
	var event lab.Event
	if err == nil {
		if event, err = do(limited, k.now); err != nil && !control.IsHeld(err) {
			err = errors.Join(err, k.Close())
		}
	}
	if err != nil && ctx.Err() == nil {
		err = experiment.Broken(err)
	}
	return event, err
}

// await waits until the device's controls are plugged in.
func (k *keys) await(ctx context.Context) error {
	_, err := patiently(ctx, cmp.Or(k.replug, replugLimit), func(ctx context.Context) (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, k.limit)
		defer cancel()
		return struct{}{}, k.ready(ctx)
	})
	return err
}

// Key implements [experiment.Control].
func (k *keys) Key(ctx context.Context, chord string) (lab.Event, error) {
	return k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) { return c.Key(ctx, chord) })
}

// Text types text.
func (k *keys) Text(ctx context.Context, text string) (lab.Event, error) {
	return k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) { return c.Text(ctx, text) })
}

// PrepareText implements [control.TextPreparer]; of controls that know nothing before they type, nothing is said.
func (k *keys) PrepareText(ctx context.Context, text string) (pasted bool, err error) {
	_, err = k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) {
		p, ok := inner(c).(control.TextPreparer)
		if !ok {
			return lab.Event{}, nil
		}
		var err error
		pasted, err = p.PrepareText(ctx, text)
		return lab.Event{}, err
	})
	return pasted, err
}

// texts prepares each of them.
func (k *keys) texts(ctx context.Context, list []string) error {
	for _, text := range list {
		if _, err := k.PrepareText(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// Move moves the pointer.
func (k *keys) Move(ctx context.Context, x, y int) (lab.Event, error) {
	return k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) { return c.Move(ctx, x, y) })
}

// Click presses and releases a button at a point.
func (k *keys) Click(ctx context.Context, x, y int, b control.Button) (lab.Event, error) {
	return k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) { return c.Click(ctx, x, y, b) })
}

// Scroll turns the wheel at a point.
func (k *keys) Scroll(ctx context.Context, x, y, dx, dy int) (lab.Event, error) {
	return k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) { return c.Scroll(ctx, x, y, dx, dy) })
}

// errCannotHold is returned for a gesture that the device's controls cannot make.
var errCannotHold = errors.New("these controls cannot hold a button while the pointer moves") // constant

// Press presses a button at a point and holds it.
func (k *keys) Press(ctx context.Context, x, y int, b control.Button) (lab.Event, error) {
	return k.hold(ctx, func(ctx context.Context, h control.Holder) (lab.Event, error) { return h.Press(ctx, x, y, b) })
}

// Lift releases it.
func (k *keys) Lift(ctx context.Context) (lab.Event, error) {
	return k.hold(ctx, func(ctx context.Context, h control.Holder) (lab.Event, error) { return h.Lift(ctx) })
}

// errCannotTouch is returned for a gesture of several fingers.
var errCannotTouch = errors.New("these controls have no touch screen for several fingers") // constant

// Touch implements [control.Toucher].
func (k *keys) Touch(ctx context.Context, fingers ...image.Point) (lab.Event, error) {
	return k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) {
		hand, ok := inner(c).(control.Toucher)
		if !ok {
			return lab.Event{}, errCannotTouch
		}
		return hand.Touch(ctx, fingers...)
	})
}

// errCannotHear is returned where the device's controls do not tell the keyboard's lights.
var errCannotHear = errors.New("these controls do not tell the keyboard's lights: leave echo out") // constant

// Echo implements [control.Echoer].
func (k *keys) Echo(ctx context.Context) (echo control.Echo, err error) {
	_, err = k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) {
		e, ok := inner(c).(control.Echoer)
		if !ok {
			return lab.Event{}, errCannotHear
		}
		var err error
		echo, err = e.Echo(ctx)
		return lab.Event{}, err
	})
	return echo, err
}

// inner is the transport's own controller.
func inner(c screenControl) control.Controller {
	if p, ok := c.(partControls); ok {
		return p.Controller
	}
	return c
}

func (k *keys) hold(ctx context.Context, do func(context.Context, control.Holder) (lab.Event, error)) (lab.Event, error) {
	return k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) {
		h, ok := inner(c).(control.Holder)
		if !ok {
			return lab.Event{}, errCannotHold
		}
		return do(ctx, h)
	})
}

// points says whether the device has a pointer: one with a touch screen alone has none.
func (k *keys) points() bool {
	c, ok := k.now.(partControls)
	return !ok || c.Can.Pointer || c.Can.Motion
}

// Size returns the size of the screen.
func (k *keys) Size() (image.Point, error) {
	if k.now == nil {
		return image.Point{}, experiment.Broken(errNoKeys)
	}
	return k.now.Size()
}

// Close ends the connection, if there is one.
func (k *keys) Close() error {
	if k.now == nil {
		return nil
	}
	c := k.now
	k.now = nil
	return c.Close()
}

// screenControl is a control that knows the size of its screen.
type screenControl interface {
	control.Controller
	Size() (image.Point, error)
}

// partControls are the controls of a plugged-in device.
type partControls struct{ *connect.Controls }

// Size is the present one, where the controls can tell it.
func (p partControls) Size() (image.Point, error) {
	if c, ok := p.Controller.(interface{ Size() (image.Point, error) }); ok {
		return c.Size()
	}
	return p.Screen, nil
}

// onFilm gives input at points of the film, whose pictures may have another size than the
// device's screen.
type onFilm struct {
	*keys
	film func() image.Point
}

// place maps a point of the film to the device's screen.
func (o onFilm) place(x, y int) (int, int) {
	film := o.film()
	screen, err := o.Size()
	if err != nil || film == screen || film.X < 1 || film.Y < 1 {
		return x, y // the action itself tells what is wrong with the controls
	}
	scale := func(v, from, to int) int { return (2*v + 1) * to / (2 * from) } // the middle of the pixel
	return scale(x, film.X, screen.X), scale(y, film.Y, screen.Y)
}

func (o onFilm) Move(ctx context.Context, x, y int) (lab.Event, error) {
	x, y = o.place(x, y)
	return o.keys.Move(ctx, x, y)
}

func (o onFilm) Click(ctx context.Context, x, y int, b control.Button) (lab.Event, error) {
	x, y = o.place(x, y)
	return o.keys.Click(ctx, x, y, b)
}

func (o onFilm) Scroll(ctx context.Context, x, y, dx, dy int) (lab.Event, error) {
	x, y = o.place(x, y)
	return o.keys.Scroll(ctx, x, y, dx, dy)
}

func (o onFilm) Press(ctx context.Context, x, y int, b control.Button) (lab.Event, error) {
	x, y = o.place(x, y)
	return o.keys.Press(ctx, x, y, b)
}

func (o onFilm) Touch(ctx context.Context, fingers ...image.Point) (lab.Event, error) {
	placed := make([]image.Point, 0, len(fingers))
	for _, p := range fingers {
		x, y := o.place(p.X, p.Y)
		placed = append(placed, image.Pt(x, y))
	}
	return o.keys.Touch(ctx, placed...)
}

// Close leaves the controls open: they are the run's.
func (o onFilm) Close() error { return nil }

var (
	_ control.Holder  = onFilm{}
	_ control.Toucher = onFilm{}
)
