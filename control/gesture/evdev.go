package gesture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Axes are what an input device of Linux says of itself: the ranges of its coordinates. A mouse has
// none: its gestures are recorded on a screen of a size that somebody names.
type Axes struct {
	MinX, MaxX, MinY, MaxY int
	// Slots is set for a touch screen of several fingers: in the kernel's protocol B they have slots, in A a report lists
	// them all.
	Slots bool
	// Mouse is set for a device that reports movements instead of places.
	Mouse bool
}

// The kernel's numbers (linux/input-event-codes.h).
const (
	evSyn, evKey, evRel, evAbs             = 0, 1, 2, 3
	synReport, synMTReport                 = 0, 2
	absX, absY                             = 0x00, 0x01
	absSlot, absMTX, absMTY, absTrackingID = 0x2f, 0x35, 0x36, 0x39
	btnLeft, btnTouch                      = 0x110, 0x14a
	inputEvent                             = 24 // bytes of struct input_event on 64-bit machines
)

// errNoGesture says that a device ended before anybody had made a gesture.
var errNoGesture = errors.New("nobody made a gesture: touch, move and lift, or hold the left button, move and release it") // constant

// RecordEvdev reads the events of an input device of Linux (struct input_event, 64 bits) and returns the
// first gesture: from where a finger touches, or the left button goes down, to where it leaves. Of
// several fingers the first counts. A mouse begins in the middle of a screen of width × height; other
// devices have a size of their own.
func RecordEvdev(r io.Reader, a Axes, width, height int) (*Recording, error) {
	e := &evdev{Axes: a, g: &Recording{Width: width, Height: height}}
	if !a.Mouse {
		e.g.Width, e.g.Height = a.MaxX-a.MinX+1, a.MaxY-a.MinY+1
	}
	e.now = contact{x: float64(e.g.Width) / 2, y: float64(e.g.Height) / 2, hasX: !a.Slots, hasY: !a.Slots}
	if e.g.Width < 1 || e.g.Height < 1 {
		return nil, fmt.Errorf("gesture: a screen of %d×%d pixels: name its size", e.g.Width, e.g.Height)
	}
	var buf [inputEvent]byte
	for !e.over {
		if _, err := io.ReadFull(r, buf[:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errNoGesture
			}
			return nil, fmt.Errorf("gesture: %w", err)
		}
		at := time.Duration(int64(binary.NativeEndian.Uint64(buf[0:])))*time.Second +
			time.Duration(int64(binary.NativeEndian.Uint64(buf[8:])))*time.Microsecond
		e.take(at, binary.NativeEndian.Uint16(buf[16:]), binary.NativeEndian.Uint16(buf[18:]), int32(binary.NativeEndian.Uint32(buf[20:])))
		e.now.x, e.now.y = within(e.now.x, e.g.Width), within(e.now.y, e.g.Height)
		if len(e.g.Samples) > maxSamples {
			break // check says so
		}
	}
	if err := e.g.check(); err != nil {
		return nil, fmt.Errorf("gesture: %w", err)
	}
	return e.g, nil
}

// evdev is a gesture in the making.
type evdev struct {
	Axes
	g          *Recording
	now        contact // of what is being told
	at         contact // the first finger
	slot       int32
	down, over bool
	from       time.Duration
	// Of a report by protocol A: whether there was a finger's end, and whether one of the fingers is the first.
	listed, touches bool
}

// contact is where a finger or a pointer is.
type contact struct {
	x, y       float64
	hasX, hasY bool // they were told
	id         int32
}

func (c contact) isPlaced() bool { return c.hasX && c.hasY }

func (e *evdev) take(at time.Duration, kind, code uint16, value int32) {
	switch {
	case kind == evSyn && code == synReport:
		e.report(at)
	case kind == evSyn && code == synMTReport:
		e.list()
	case kind == evAbs && code == absSlot:
		e.slot = value
	case kind == evAbs && e.slot != 0 && e.Slots: // another finger
	case kind == evAbs && (code == absMTX || !e.Slots && code == absX):
		e.now.x, e.now.hasX = float64(value)-float64(e.MinX), true
	case kind == evAbs && (code == absMTY || !e.Slots && code == absY):
		e.now.y, e.now.hasY = float64(value)-float64(e.MinY), true
	case kind == evAbs && code == absTrackingID:
		e.down, e.now.id = value >= 0, value
	case kind == evRel && e.Mouse && code == 0:
		e.now.x += float64(value)
	case kind == evRel && e.Mouse && code == 1:
		e.now.y += float64(value)
	case kind == evKey && (code == btnLeft || code == btnTouch) && (!e.Slots || value == 0):
		e.down = value != 0
	}
}

func within(v float64, size int) float64 { return max(0, min(v, float64(size-1))) }

// list takes in a finger that a report by protocol A lists. Without numbers of the fingers (tracking IDs) the first of
// the list counts.
func (e *evdev) list() {
	e.listed = true
	if e.now.isPlaced() && !e.touches && (len(e.g.Samples) == 0 || e.now.id == e.at.id) {
		e.at, e.touches = e.now, true
	}
	e.now = contact{}
}

// report takes in what one report of the device said.
func (e *evdev) report(at time.Duration) {
	if e.listed {
		e.down = e.touches
		e.listed, e.touches = false, false
	} else {
		e.at = e.now
	}
	begun := len(e.g.Samples) > 0
	switch {
	case e.down && e.at.isPlaced():
		if !begun {
			e.from = at
		}
		e.g.Samples = append(e.g.Samples, Sample{at - e.from, e.at.x, e.at.y})
	case e.down:
	case begun && len(e.g.Samples) < 2: // it was a tap in one report: the place is kept twice, a moment apart
		e.g.Samples = append(e.g.Samples, Sample{max(at-e.from, time.Millisecond), e.g.Samples[0].X, e.g.Samples[0].Y})
		e.over = true
	case begun:
		e.over = true
	}
}
