package leaves

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestLeaves starts a program in a session of its own, as a daemon is, and
// leaves it behind. With WAIT it also waits, so that it can be interrupted.
func TestLeaves(t *testing.T) {
	ready := os.Getenv("READY") // a named pipe: the opening waits for the test's reader
	cmd := exec.Command("/bin/sh", "-c", `sleep 3600 & echo $! $$ > "`+ready+`"; wait`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("WAIT") != "" {
		_ = cmd.Wait()
	}
}
