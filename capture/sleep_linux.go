package capture

import (
	"errors"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// SleepUntil sleeps until t on the calling thread itself (clock_nanosleep,
// absolute): a timer of the Go runtime would, in a busy process, have to wait
// for one of the runtime's processors before it is looked at.
func SleepUntil(t lab.Time) {
	ts := unix.NsecToTimespec(int64(t))
	for {
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
