package link

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/priority"
)

func monotonic() lab.Time { return lab.Monotonic() }

// prepareProcess makes a process that does nothing but forward wake in time,
// and returns what it was granted. Every thread gets the priority, so that none
// that is preempted holds a lock of the runtime that the forwarding one needs.
func prepareProcess() (got []string) {
	// The forwarding thread must find a free processor of the runtime at every
	// return from the kernel.
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	// Frames are used again, so there is next to nothing to collect.
	debug.SetGCPercent(-1)
	const most = 1 << 30
	debug.SetMemoryLimit(most)
	if lockMemory() {
		got = append(got, "memory locked")
	}
	for range 2 { // again for a thread that was being made
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return got
		}
		for _, task := range tasks {
			if id, err := strconv.Atoi(task.Name()); err == nil {
				_, _ = priority.Realtime(id, priority.Link, true) // prepareThread says whether it may
			}
		}
	}
	return append(got, "a process of its own")
}

// lockMemory keeps pages that were used from being taken away, which would
// have them read from a disk when a packet is due. It needs that there is no
// limit: allocations beyond one would fail later.
func lockMemory() bool {
	none := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &none) // if it may
	var is unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &is) != nil || is.Cur != unix.RLIM_INFINITY {
		return false
	}
	return unix.Mlockall(unix.MCL_CURRENT|unix.MCL_FUTURE|unix.MCL_ONFAULT) == nil
}

// prepareThread makes this thread wake in time: timer slack of 1 ns, and
// real-time priority where the machine allows it (in a user namespace: where the
// user's limits do).
func prepareThread() (got []string) {
	if unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) == nil {
		got = append(got, "timer slack 1 ns")
	}
	if granted, err := priority.Realtime(0, priority.Link, true); err == nil {
		return append(got, "SCHED_FIFO "+strconv.Itoa(granted))
	} else if errors.Is(err, unix.EPERM) {
		return append(got, "SCHED_OTHER (no right to real-time priority)")
	}
	return append(got, "SCHED_OTHER")
}

// processorTime returns what a thread of this process has used, 0 when the
// kernel does not say.
func processorTime(tid int) time.Duration {
	b, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(tid) + "/schedstat")
	if err != nil {
		return 0
	}
	text, _, _ := strings.Cut(string(b), " ")
	ns, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(ns)
}
