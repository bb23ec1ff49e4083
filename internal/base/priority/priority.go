// Package priority gives threads the processor before others: real-time
// priority (SCHED_FIFO), by privilege or by what the user's limits allow. In
// goes a thread and what it would like; out comes what it got.
package priority

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// The priorities of the lab's threads, 1 to 99. What is short goes first: the
// link sends a packet in microseconds, as does a gesture an event; the recorder
// fetches a picture in milliseconds.
const (
	Link     = 20
	Input    = 15
	Recorder = 10
)

// Realtime gives a thread (0: the calling one, which must be locked) real-time
// priority and returns the one it got. Without the right to the one that is
// wanted, the user's limit (RLIMIT_RTPRIO, rtprio in limits.conf) counts, which
// holds in user namespaces too, where a privilege does not: the wanted
// priorities are scaled down to it. children says whether threads and processes
// that it starts get it as well.
func Realtime(thread, want int, children bool) (got int, err error) {
	if err = set(thread, want, children); err == nil {
		return want, nil
	}
	if !errors.Is(err, unix.EPERM) {
		return 0, fmt.Errorf("asking for real-time priority: %w", err)
	}
	limit := Limit()
	if limit == 0 {
		return 0, fmt.Errorf("no right to real-time priority: %w", err)
	}
	got = scaled(want, limit)
	if err = set(thread, got, children); err != nil {
		return 0, fmt.Errorf("asking for real-time priority %d, within the limit of %d: %w", got, limit, err)
	}
	return got, nil
}

// Limit is the highest real-time priority that the user's limits allow, 0 for
// none. The soft limit is raised as far as it may.
func Limit() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_RTPRIO, &l) != nil {
		return 0
	}
	if l.Cur < l.Max {
		raised := unix.Rlimit{Cur: l.Max, Max: l.Max}
		if unix.Setrlimit(unix.RLIMIT_RTPRIO, &raised) == nil {
			l = raised
		}
	}
	return int(min(l.Cur, 99))
}

// scaled keeps the order of the lab's priorities below a limit.
func scaled(want, limit int) int {
	if limit >= Link {
		return min(want, limit)
	}
	return max(1, want*limit/Link)
}

func set(thread, priority int, children bool) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: uint32(priority)}
	if !children {
		attr.Flags = unix.SCHED_FLAG_RESET_ON_FORK
	}
	return unix.SchedSetAttr(thread, &attr, 0)
}
