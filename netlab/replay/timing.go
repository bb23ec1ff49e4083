package replay

import (
	"context"
	"fmt"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// Timing says when the pieces of an answer are written. The zero value is recorded.
type Timing struct {
	Mode  TimingMode
	Fixed time.Duration // of TimingFixed: from the request to the first byte
}

// TimingMode is one of the three ways to time an answer.
type TimingMode string

// The modes. Recorded keeps time to first byte and chunk times.
const (
	TimingRecorded TimingMode = "recorded"
	TimingFixed    TimingMode = "fixed"
	TimingNone     TimingMode = "none"
)

// ParseTiming reads "recorded", "none" or "fixed:20ms"; "" is recorded.
func ParseTiming(s string) (Timing, error) {
	switch s {
	case "", "recorded":
		return Timing{Mode: TimingRecorded}, nil
	case "none":
		return Timing{Mode: TimingNone}, nil
	}
	if text, ok := strings.CutPrefix(s, "fixed:"); ok {
		d, err := time.ParseDuration(text)
		if err == nil && d >= 0 && d <= time.Hour {
			return Timing{Mode: TimingFixed, Fixed: d}, nil
		}
	}
	return Timing{}, fmt.Errorf("timing %q is none of recorded, none, fixed:DURATION (such as fixed:20ms, at most 1h)", s)
}

// String is what ParseTiming reads.
func (t Timing) String() string {
	switch t.Mode {
	case TimingFixed:
		return "fixed:" + t.Fixed.String()
	case TimingNone:
		return "none"
	}
	return "recorded"
}

// waitUntil returns at the instant or when ctx ends, whichever is first. The
// schedule is absolute: a late write does not delay the following ones.
func waitUntil(ctx context.Context, clock lab.Clock, at lab.Time) error {
	d := at.Sub(clock())
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
