// Package ch9329 drives a device by a CH9329: a chip of a few euros that is a USB
// keyboard and mouse at one end and a serial port at the other. It needs nothing of the
// device, and works from machines that have no USB device port, as x86 machines have none.
//
// Reports flow in (package hid); flow out the chip's frames, one at a time, each after the
// answer to the one before. The package mends what goes wrong on the way: a frame that was
// lost or damaged is sent again, the chip is found at its other baud rate, reset, and
// looked for again after its cable was unplugged. What cannot be repeated without doing it
// twice (a relative move, a turn of the wheel) is not repeated: it is an error.
//
// The interval of an event runs from before its frame is written to the chip's answer and
// one poll of the device ([Poll]) after it: the data sheet does not say that the chip waits
// for the device before it answers.
//
// Standard: WCH, CH9329 data sheet and serial communication protocol, version 1.0.
package ch9329

import (
	"context"
	"errors"
	"fmt"
	"image"
	"time"

	"go.bug.st/serial"

	"eidetic/control"
	"eidetic/control/hid"
	"eidetic/internal/base/priority"
	"eidetic/internal/lab"
)

// Poll is how often a device asks the chip for news: bInterval of its USB descriptors.
const Poll = 10 * time.Millisecond

// The baud rates at which a chip may be.
const (
	Slow = 9600   // from the factory
	Fast = 115200 // some chips forget it when their device is unplugged
)

// Options of a controller.
type Options struct {
	Path   string      // of the serial port; one of /dev/serial/by-id survives replugging
	Baud   int         // Slow or Fast: the chip is set to it. 0 leaves it as it is found
	Layout string      // of the device's keyboard
	Screen image.Point // of the device
	Clock  lab.Clock
	// Relative moves a relative mouse: for devices that ignore an absolute one (iPad, Android).
	Relative bool
	Gain     float64 // of a relative mouse, see hid.Options
	// Answer is how long the chip may take to answer before the frame is sent again; 0 is UsualAnswer.
	Answer time.Duration
}

// UsualAnswer is the limit where Options name none.
const UsualAnswer = 100 * time.Millisecond

// Info is what a chip says of itself.
type Info struct {
	Version   byte // 0x30 is 1.0
	Connected bool // a device has accepted it at its USB end
	NumLock   bool
	CapsLock  bool
	Scroll    bool
	Baud      int // at which it answered
}

// Chip is a CH9329 at a serial port. It is a hid.Sink.
type Chip struct {
	o      Options
	clock  lab.Clock
	port   serial.Port // nil while there is none
	baud   int
	read   []byte // bytes that are not yet a frame
	used   time.Time
	healed int
}

var _ hid.Sink = (*Chip)(nil)

// Open finds the chip and makes a controller of it.
func Open(ctx context.Context, o Options) (*hid.Controller, error) {
	c, err := Find(ctx, o)
	if err != nil {
		return nil, err
	}
	h, err := hid.New(c, hid.Options{Layout: o.Layout, Screen: o.Screen, Gain: o.Gain, Clock: o.Clock})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return h, nil
}

// Find opens the serial port and finds the chip there, at whichever baud rate.
func Find(ctx context.Context, o Options) (*Chip, error) {
	if o.Baud != 0 && o.Baud != Slow && o.Baud != Fast {
		return nil, fmt.Errorf("ch9329: baud rate %d: write %d or %d", o.Baud, Slow, Fast)
	}
	if o.Clock == nil {
		o.Clock = lab.Monotonic
	}
	if o.Answer == 0 {
		o.Answer = UsualAnswer
	}
	c := &Chip{o: o, clock: o.Clock}
	// One round over both rates, with a reset at each: a chip that does not answer to that is none.
	if err := c.round(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("ch9329: %s: %w", o.Path, err), c.Close())
	}
	c.healed = 0
	return c, nil
}

// Capabilities are keyboard, mouse and wheel.
func (c *Chip) Capabilities() control.Capabilities {
	can := control.Capabilities{
		Keyboard: true, Pointer: !c.o.Relative, Motion: c.o.Relative, Wheel: true,
		Timing: fmt.Sprintf("the chip's answer at %d baud, and %v for the device's poll", c.baud, Poll),
		Limits: []string{"The wheel turns up and down only: the chip has no horizontal one."},
	}
	if c.o.Relative {
		can.Limits = append(can.Limits, "The mouse is relative: it arrives where it should if the device does not accelerate it, or its gain was calibrated.")
	}
	if c.baud == Slow {
		can.Limits = append(can.Limits, "At 9600 baud a report takes 14 ms on the wire: set baud to 115200 for gestures.")
	}
	return can
}

// Healed is how often a frame had to be repeated or the chip found again.
func (c *Chip) Healed() int { return c.healed }

// Info asks the chip.
func (c *Chip) Info(ctx context.Context) (Info, error) {
	data, _, err := c.do(ctx, cmdInfo, nil, true)
	if err != nil {
		return Info{}, fmt.Errorf("ch9329: %w", err)
	}
	return c.info(data)
}

func (c *Chip) info(data []byte) (Info, error) {
	if len(data) != 8 {
		return Info{}, fmt.Errorf("ch9329: it answered %d bytes of information instead of 8", len(data))
	}
	return Info{
		Version: data[0], Connected: data[1] == 1, Baud: c.baud,
		NumLock: data[2]&1 != 0, CapsLock: data[2]&2 != 0, Scroll: data[2]&4 != 0,
	}, nil
}

// CapsLock asks the chip what the device's lights are.
func (c *Chip) CapsLock(ctx context.Context) (on, known bool) {
	i, err := c.Info(ctx)
	return i.CapsLock, err == nil && i.Connected
}

// steps is the number of places that the chip's absolute mouse has on each axis.
const steps = 4096

// errPan and errTouch are of what the chip does not have.
var (
	errPan   = errors.New("ch9329: the chip's wheel turns up and down only") // constant
	errTouch = errors.New("ch9329: the chip is no touch screen")             // constant
)

// command makes a command of a report, and says whether it may be carried out twice without harm.
func command(r hid.Report) (cmd byte, data []byte, again bool, err error) {
	switch r := r.(type) {
	case hid.Keyboard:
		return cmdKeyboard, r.Append(nil), true, nil
	case hid.Pointer:
		if r.Pan != 0 {
			return 0, nil, false, errPan
		}
		x, y := int(r.X)*steps/(hid.Full+1), int(r.Y)*steps/(hid.Full+1)
		return cmdAbsolute, []byte{0x02, r.Buttons, byte(x), byte(x >> 8), byte(y), byte(y >> 8), byte(r.Wheel)}, r.Wheel == 0, nil
	case hid.Motion:
		if r.Pan != 0 {
			return 0, nil, false, errPan
		}
		// A negative value is 256 + v (the protocol's example); -128 is none.
		data = []byte{0x01, r.Buttons, byte(max(r.DX, -127)), byte(max(r.DY, -127)), byte(r.Wheel)}
		return cmdRelative, data, r.DX == 0 && r.DY == 0 && r.Wheel == 0, nil
	}
	return 0, nil, false, errTouch
}

// Send sends reports, each after the chip's answer to the one before, as its manufacturer asks.
func (c *Chip) Send(ctx context.Context, reports ...hid.Report) (all []hid.Interval, err error) {
	if time.Since(c.used) > idle {
		if _, err := c.Info(ctx); err != nil {
			return nil, err
		}
	}
	err = priority.Urgently(priority.Input, func() error {
		for _, r := range reports {
			cmd, data, again, err := command(r)
			if err != nil {
				return err
			}
			at := hid.Interval{Earliest: c.clock()}
			_, answered, err := c.do(ctx, cmd, data, again)
			if err != nil {
				return fmt.Errorf("ch9329: %s: %w", c.o.Path, err)
			}
			at.Latest = answered.Add(Poll)
			all = append(all, at)
		}
		return nil
	})
	return all, err
}

// idle is how long the chip may have been unused before it is asked whether it is alive, so
// that mending is not part of a measured event.
const idle = 2 * time.Second

// Close closes the port.
func (c *Chip) Close() error {
	if c.port == nil {
		return nil
	}
	port := c.port
	c.port = nil
	if err := port.Close(); err != nil {
		return fmt.Errorf("ch9329: close %s: %w", c.o.Path, err)
	}
	return nil
}
