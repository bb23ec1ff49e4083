// Package connect opens a device's controls by their name, as people write it on a command
// line and in a configuration: "ch9329:/dev/serial/by-id/…", "gadget:", "adb:SERIAL",
// "x11::0", "rfb:HOST:PORT". In go the name and what is known of the device; out comes a
// controller of one of the packages beside this one.
package connect

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"strings"

	"eidetic/control"
	"eidetic/control/adb"
	"eidetic/control/ch9329"
	"eidetic/control/gadget"
	"eidetic/control/hid"
	"eidetic/control/rfb"
	"eidetic/control/x11"
	"eidetic/internal/base/adbserver"
	"eidetic/internal/lab"
)

// Options of a device's controls; what is zero is the usual.
type Options struct {
	Name     string      // KIND:NAME
	Layout   string      // of the device's keyboard, for ch9329, gadget and adb
	Screen   image.Point // of the device in pixels, for ch9329 and gadget; the others say it themselves
	Password lab.Secret  // of a VNC server
	Baud     int         // of a ch9329: 9600 or 115200
	Relative bool        // a relative mouse in place of an absolute one, for ch9329 and gadget
	Gain     float64     // of a relative mouse: pixels for each count; 0 is 1
	Touch    bool        // a touch screen too, for gadget
	Server   string      // file of scrcpy's server, for adb, by which text is pasted that no key types; "" is the usual place
	ADB      adbserver.Client
	Clock    lab.Clock
}

// Controls are a controller that was opened, and what is known of it.
type Controls struct {
	control.Controller
	Can    control.Capabilities
	Screen image.Point
	turn   io.Closer // nil where others may drive too
}

// Close ends the controls, and lets others drive the device.
func (c *Controls) Close() error {
	err := c.Controller.Close()
	if c.turn != nil {
		err = errors.Join(err, c.turn.Close())
	}
	return err
}

// OptionError says that what was asked for cannot be, whatever the machine's state.
type OptionError struct{ Err error }

func (e *OptionError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *OptionError) Unwrap() error { return e.Err }

// Kinds lists the kinds of controls with their forms.
func Kinds() []string {
	return []string{"ch9329:/dev/serial/by-id/…", "gadget: or gadget:PORT", "adb: or adb:SERIAL", "x11:DISPLAY", "rfb:HOST:PORT"}
}

// CheckGain returns an error for a gain that no device has, or that is not of a relative mouse; 0 is none.
func CheckGain(gain float64, relative bool) error {
	switch {
	case gain == 0:
		return nil
	case !relative:
		return errors.New("only a relative mouse has a gain: say that it is relative, too")
	}
	return hid.CheckGain(gain)
}

// Check returns an error for options with which no device can be opened.
func Check(o Options) error {
	kind, name, _ := strings.Cut(o.Name, ":")
	switch kind {
	case "ch9329", "gadget":
		if o.Screen.X < 1 || o.Screen.Y < 1 {
			return fmt.Errorf("%s: say how many pixels the device's screen has, such as 1920x1080: points are given in them", kind)
		}
		if kind == "ch9329" && !strings.HasPrefix(name, "/") {
			return errors.New("ch9329: name the serial port: ch9329:/dev/serial/by-id/…")
		}
	case "adb", "x11", "rfb":
	default:
		return fmt.Errorf("%q is no device's controls: write one of %s", o.Name, strings.Join(Kinds(), ", "))
	}
	if err := CheckGain(o.Gain, o.Relative); err != nil {
		return err
	}
	if _, err := hid.NewLayout(o.Layout); err != nil {
		return err
	}
	return nil
}

// Open opens the controls. An error is an [OptionError], or comes from the machine or the device.
func Open(ctx context.Context, o Options) (*Controls, error) {
	if err := Check(o); err != nil {
		return nil, &OptionError{err}
	}
	if o.Clock == nil {
		o.Clock = lab.Monotonic
	}
	turn, err := takeTurn(o.Name)
	if err != nil {
		return nil, err
	}
	c, err := open(ctx, o)
	if err != nil {
		if turn != nil {
			turn.Close()
		}
		return nil, err
	}
	out := &Controls{Controller: c, turn: turn, Can: control.Capabilities{Keyboard: true, Pointer: true, Wheel: true}}
	if d, ok := c.(control.Describer); ok {
		out.Can = d.Capabilities()
	}
	switch s := c.(type) {
	case interface{ Size() (image.Point, error) }:
		out.Screen, err = s.Size()
	case interface{ Size() (width, height int) }:
		out.Screen.X, out.Screen.Y = s.Size()
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

func open(ctx context.Context, o Options) (control.Controller, error) {
	kind, name, _ := strings.Cut(o.Name, ":")
	switch kind {
	case "ch9329":
		return opened(ch9329.Open(ctx, ch9329.Options{
			Path: name, Baud: o.Baud, Layout: o.Layout, Screen: o.Screen, Relative: o.Relative, Gain: o.Gain, Clock: o.Clock,
		}))
	case "gadget":
		return opened(gadget.Open(ctx, gadget.Options{
			Port: name, Layout: o.Layout, Screen: o.Screen, Relative: o.Relative, Gain: o.Gain, Touch: o.Touch, Clock: o.Clock,
		}))
	case "adb":
		return opened(adb.Open(ctx, adb.Options{Client: o.ADB, Serial: name, Layout: o.Layout, Server: o.Server, Clock: o.Clock}))
	case "x11":
		return opened(x11.Open(ctx, name, o.Clock))
	default:
		return opened(rfb.Open(ctx, rfb.Options{Address: name, Password: o.Password, Clock: o.Clock}))
	}
}

// opened keeps a nil of a type from becoming a controller.
func opened[C control.Controller](c C, err error) (control.Controller, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}
