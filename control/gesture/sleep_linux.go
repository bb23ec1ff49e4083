package gesture

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

const (
	// coarse is the longest sleep without a look at the context.
	coarse = 20 * time.Millisecond
	// spin is how long before its time an event is waited for without sleeping: a sleeping
	// thread wakes up late by that much.
	spin = 100 * time.Microsecond
)

// sleepUntil waits until an instant, to some microseconds where the machine allows it.
func sleepUntil(ctx context.Context, clock lab.Clock, at lab.Time) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		left := at.Sub(clock())
		if left <= 0 {
			return nil
		}
		if left <= spin {
			continue
		}
		pause := unix.NsecToTimespec(int64(min(left-spin, coarse)))
		// An interrupted sleep is no error: the loop looks at the clock again.
		if err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &pause, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
