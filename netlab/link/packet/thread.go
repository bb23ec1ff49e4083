package packet

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/base/priority"
)

// prepareProcess gives real-time priority and locked memory to a process that
// only forwards, and returns what the kernel granted. Every thread gets the
// priority, so that no preempted thread holds a lock of the runtime that the
// forwarding thread needs.
func prepareProcess() (got []string) {
	// At every return from a system call the forwarding thread needs a free
	// processor of the Go runtime.
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	// Frames are reused, so there is almost no garbage to collect.
	debug.SetGCPercent(-1)
	const most = 1 << 30
	debug.SetMemoryLimit(most)
	if lockMemory() {
		got = append(got, "memory locked")
	}
	for range 2 { // the second pass finds threads that started during the first
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return got
		}
		for _, task := range tasks {
			if id, err := strconv.Atoi(task.Name()); err == nil {
				_, _ = priority.Realtime(id, priority.Link, true) // prepareThread reports whether it is allowed
			}
		}
	}
	return append(got, "a process of its own")
}

// lockMemory keeps used pages in memory, so that none has to be read from a disk
// when a packet is due. It works only without a limit of locked memory, because
// allocations beyond a limit would fail later.
func lockMemory() bool {
	none := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &none) // read back below
	var is unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &is) != nil || is.Cur != unix.RLIM_INFINITY {
		return false
	}
	return unix.Mlockall(unix.MCL_CURRENT|unix.MCL_FUTURE|unix.MCL_ONFAULT) == nil
}

// prepareThread sets this thread's timer slack to 1 ns, and real-time priority
// where the machine allows it (in a user namespace: where the user's limits do).
// It returns what the kernel granted, for the report.
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

// processorTime returns the processor time that a thread of this process has
// used, 0 when the kernel does not tell.
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
