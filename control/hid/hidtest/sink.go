package hidtest

import (
	"context"
	"errors"
	"fmt"

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
}

// ErrUnplugged is what a report that fails returns.
var ErrUnplugged = errors.New("unplugged") // constant

func (s *Sink) note(format string, args ...any) (hid.Interval, error) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
	if len(s.Notes) == s.Fail {
		return hid.Interval{}, ErrUnplugged
	}
	now := lab.Monotonic()
	return hid.Interval{Earliest: now, Latest: now + 1}, nil
}

// Keyboard notes "keys MODIFIERS KEY".
func (s *Sink) Keyboard(_ context.Context, k hid.Keyboard) (hid.Interval, error) {
	return s.note("keys %02x %02x", k.Modifiers, byte(k.Keys[0]))
}

// Pointer notes "mouse BUTTONS X,Y WHEEL,PAN".
func (s *Sink) Pointer(_ context.Context, p hid.Pointer) (hid.Interval, error) {
	return s.note("mouse %d %d,%d %d,%d", p.Buttons, p.X, p.Y, p.Wheel, p.Pan)
}

// Motion notes "move BUTTONS DX,DY WHEEL,PAN".
func (s *Sink) Motion(_ context.Context, m hid.Motion) (hid.Interval, error) {
	return s.note("move %d %d,%d %d,%d", m.Buttons, m.DX, m.DY, m.Wheel, m.Pan)
}

// Touch notes each contact: "touch ID+X,Y" for one that is down, "touch ID-X,Y" for one that leaves.
func (s *Sink) Touch(_ context.Context, t hid.Touch) (hid.Interval, error) {
	text := "touch"
	for _, c := range t.Contacts {
		sign := "-"
		if c.Down {
			sign = "+"
		}
		text += fmt.Sprintf(" %d%s%d,%d", c.ID, sign, c.X, c.Y)
	}
	return s.note("%s", text)
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
