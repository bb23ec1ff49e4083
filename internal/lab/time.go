package lab

import (
	"context"
	"syscall"
	"time"
	"unsafe"
)

// Time is an instant: nanoseconds of the box's CLOCK_MONOTONIC.
type Time int64

// Sub returns t − u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Add returns t + d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Clock tells the time; tests inject their own.
type Clock func() Time

// Monotonic reads CLOCK_MONOTONIC, the clock of V4L2's timestamps and of every log of a
// trial.
func Monotonic() Time {
	const clockMonotonic = 1
	var ts syscall.Timespec
	// clock_gettime fails only for an unknown clock, and Linux always has this one.
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return Time(ts.Nano())
}

// Wait returns after d, or earlier with the context's error.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
