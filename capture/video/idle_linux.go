package video

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startIdle starts a program that gets a processor only where nobody else wants
// it. It inherits that from the thread that starts it, so that it never runs
// otherwise.
func startIdle(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with this function
		// Both only lower a priority, which needs no right; where they fail the film is made all the same.
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Nice: 19}, 0)
		started <- cmd.Start()
	}()
	return <-started
}
