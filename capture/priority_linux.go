package capture

import (
	"golang.org/x/sys/unix"

	"eidetic/internal/base/priority"
)

// raisePriority makes the calling thread, which must be locked, run before
// others, as far as the system allows, and says what it got. Children of the
// thread do not inherit it.
func raisePriority() string {
	if _, err := priority.Realtime(0, priority.Recorder, false); err == nil {
		return "SCHED_FIFO"
	}
	if unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -10) == nil {
		return "nice -10"
	}
	return "normal"
}
