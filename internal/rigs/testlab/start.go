package testlab

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// Start starts a program that the kernel kills when the test's process dies, or to
// which it sends the signal in cmd's Pdeathsig. The kernel watches the thread that started
// the program, and a goroutine that ends with its thread locked (a recording, a visit to a
// namespace) ends that thread. So Start keeps one thread until the test ends. The
// caller must still end the program.
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
