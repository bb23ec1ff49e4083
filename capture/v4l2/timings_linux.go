package v4l2

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Timings describe the signal on an HDMI input, as its receiver measures it.
type Timings struct {
	Width, Height int
	Interlaced    bool
	Rate          float64 // pictures per second, from the pixel clock: 59.94 is not 60
}

func (t Timings) String() string {
	letter := "p"
	if t.Interlaced {
		letter = "i"
	}
	return fmt.Sprintf("%d × %d%s at %.2f/s", t.Width, t.Height, letter, t.Rate)
}

// get reads v4l2_bt_timings: width 4, height 8, interlaced 12, polarities 16,
// pixelclock 20, then porches and sync of both directions.
func (t *timings) get() Timings {
	w, h := u32(t[:], 4), u32(t[:], 8)
	total := float64(w+u32(t[:], 28)+u32(t[:], 32)+u32(t[:], 36)) * float64(h+u32(t[:], 40)+u32(t[:], 44)+u32(t[:], 48))
	out := Timings{Width: int(w), Height: int(h), Interlaced: u32(t[:], 12) != 0}
	if total > 0 {
		out.Rate = float64(order.Uint64(t[20:])) / total
	}
	return out
}

// same says whether two timings have the same picture and clock.
func (t *timings) same(u *timings) bool { return [68]byte(t[:68]) == [68]byte(u[:68]) }

// errNoTimings says that the input has no DV timings: a camera or a USB grabber.
var errNoTimings = errors.New("the input has no timings")

// queryTimings asks what signal there is now.
func queryTimings(dev device) (*timings, error) {
	var t timings
	err := dev.ioctl(reqQueryTimings, pointer(&t))
	switch {
	case err == nil:
		return &t, nil
	case errors.Is(err, unix.ENOLINK):
		return nil, fmt.Errorf("%w: nothing is plugged in, or it is asleep", ErrSignal)
	case errors.Is(err, unix.ENOLCK):
		return nil, fmt.Errorf("%w: there is one, but the receiver cannot lock to it (try another cable)", ErrSignal)
	case errors.Is(err, unix.ERANGE):
		return nil, fmt.Errorf("%w: its timings are beyond what the receiver can take (set a lower resolution or rate)", ErrSignal)
	case errors.Is(err, unix.ENODEV):
		return nil, ErrUnplugged
	default:
		return nil, errNoTimings
	}
}

// adopt takes over the signal's timings, if the input has such.
func (s *Source) adopt() error {
	t, err := queryTimings(s.dev)
	// A source that sees a new EDID begins to send a second or two later.
	const step = 100 * time.Millisecond
	for waited := time.Duration(0); len(s.o.EDID) > 0 && errors.Is(err, ErrSignal) && waited < s.o.Patience; waited += step {
		time.Sleep(step)
		t, err = queryTimings(s.dev)
	}
	if errors.Is(err, errNoTimings) {
		return nil
	}
	if err != nil {
		return err
	}
	now := t.get()
	if now.Interlaced {
		return fmt.Errorf("the signal is interlaced (%v): set the device to a progressive mode", now)
	}
	if err := s.dev.ioctl(reqSetTimings, pointer(t)); err != nil {
		return fmt.Errorf("set the timings of the signal, %v: %w", now, err)
	}
	s.timings = t
	return nil
}
