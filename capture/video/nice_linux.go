package video

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// niceness is the encoder's. It is not the lowest, which keeps a film of 0.3 s of work
// waiting for half a minute where others want every core (docs/benchmarks.md).
const niceness = 10

// startNice starts a program that leaves the processors to others. It inherits
// that from the thread that starts it, so that it never runs otherwise.
func startNice(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with this function
		// Lowering a priority needs no privilege. If it fails, the film is made all the same.
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness)
		started <- cmd.Start()
	}()
	return <-started
}
