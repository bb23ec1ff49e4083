package ch9329

import (
	"context"
	"testing"

	"eidetic/control/ch9329/chiptest"
	"eidetic/control/controltest"
	"eidetic/control/hid"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/lab"
)

// stamped notes when a report arrives at the device.
type stamped struct {
	*hidtest.Sink
	arrived chan lab.Time
}

func (s stamped) Send(ctx context.Context, reports ...hid.Report) ([]hid.Interval, error) {
	s.arrived <- lab.Monotonic()
	return s.Sink.Send(ctx, reports...)
}

// TestTiming: the moment at which the chip gives a report to the device lies in its interval.
func TestTiming(t *testing.T) {
	device := stamped{device(), make(chan lab.Time, 10)}
	c := find(t, chiptest.New(t, Fast, device), Options{})
	ctx := t.Context() // of as many events as it takes
	var timing controltest.Timing
	for i := range controltest.Events(t, 200) {
		at, err := c.Send(ctx, hid.Pointer{X: uint16(100 + i%2*1000)})
		if err != nil {
			t.Fatal(err)
		}
		timing.Add(at[0].Earliest, at[0].Latest, <-device.arrived)
	}
	timing.Check(t)
}
