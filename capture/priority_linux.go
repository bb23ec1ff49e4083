package capture

import "golang.org/x/sys/unix"

// raisePriority makes the calling thread, which must be locked, run before
// others, as far as the system allows, and says what it got. Children of the
// thread do not inherit it.
func raisePriority() string {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 10}
	if unix.SchedSetAttr(0, &attr, 0) == nil {
		return "SCHED_FIFO"
	}
	if unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -10) == nil {
		return "nice -10"
	}
	return "normal"
}
