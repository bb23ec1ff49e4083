package testlab

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// Start starts a program that the kernel kills when the test's process dies,
// or sends the signal that cmd's Pdeathsig names.
// The kernel takes the end of the thread that started it for that, and what
// locks a thread (a recording, a visit to a namespace) ends it: so one thread
// is kept until the test ends. Ending the program remains the caller's.
func Start(t testing.TB, cmd *exec.Cmd) error {
	t.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if cmd.SysProcAttr.Pdeathsig == 0 {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started, over := make(chan error), make(chan struct{})
	t.Cleanup(func() { close(over) })
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		<-over
	}()
	return <-started
}
