package hidtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eidetic/control"
	"eidetic/control/hid"
	"eidetic/internal/lab"
)

// Sink notes the reports that it gets.
type Sink struct {
	Can   control.Capabilities
	Notes []string
	// Fail makes the report with this number, from 1, fail; 0 is none.
	Fail int
	// Slow is how much later than it is said a report reaches the device, by the intervals alone.
	Slow time.Duration
}

// ErrUnplugged is what a report that fails returns.
var ErrUnplugged = errors.New("unplugged") // constant

func (s *Sink) note(format string, args ...any) (hid.Interval, error) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
	if len(s.Notes) == s.Fail {
		return hid.Interval{}, ErrUnplugged
	}
	now := lab.Monotonic()
	return hid.Interval{Earliest: now, Latest: now.Add(s.Slow) + 1}, nil
}

// Send notes the reports: "keys MODIFIERS KEY", "mouse BUTTONS X,Y WHEEL,PAN", "move BUTTONS DX,DY WHEEL,PAN", and of a
// touch screen each contact, "touch ID+X,Y" for one that is down, "touch ID-X,Y" for one that leaves.
func (s *Sink) Send(_ context.Context, reports ...hid.Report) (all []hid.Interval, err error) {
	for _, r := range reports {
		var at hid.Interval
		switch r := r.(type) {
		case hid.Keyboard:
			at, err = s.note("keys %02x %02x", r.Modifiers, byte(r.Keys[0]))
		case hid.Pointer:
			at, err = s.note("mouse %d %d,%d %d,%d", r.Buttons, r.X, r.Y, r.Wheel, r.Pan)
		case hid.Motion:
			at, err = s.note("move %d %d,%d %d,%d", r.Buttons, r.DX, r.DY, r.Wheel, r.Pan)
		case hid.Touch:
			text := "touch"
			for _, c := range r.Contacts {
				sign := "-"
				if c.Down {
					sign = "+"
				}
				text += fmt.Sprintf(" %d%s%d,%d", c.ID, sign, c.X, c.Y)
			}
			at, err = s.note("%s", text)
		}
		if err != nil {
			return all, err
		}
		all = append(all, at)
	}
	return all, nil
}

// CapsLock is not known.
func (s *Sink) CapsLock(context.Context) (on, known bool) { return false, false }

// Capabilities are those that the test set.
func (s *Sink) Capabilities() control.Capabilities { return s.Can }

// Close notes itself.
func (s *Sink) Close() error {
	s.Notes = append(s.Notes, "close")
	return nil
}
