package x11_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"eidetic/internal/testlab"
)

// xvfb starts a virtual screen and returns its display. The server chooses a
// free number and ends with the test.
func xvfb(t testing.TB, args ...string) string {
	t.Helper()
	display, _ := xvfbUntil(t, args...)
	return display
}

// xvfbUntil is xvfb with a function that ends the server before the test does.
func xvfbUntil(t testing.TB, args ...string) (string, func()) {
	t.Helper()
	display, _, stop := xvfbProcess(t, args...)
	return display, stop
}

// xvfbProcess also returns the server's process.
func xvfbProcess(t testing.TB, args ...string) (display string, pid int, stop func()) {
	t.Helper()
	program := testlab.NeedProgram(t, "Xvfb")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(program, append([]string{"-displayfd", "3", "-nolisten", "tcp", "-noreset"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.ExtraFiles = []*os.File{w}
	var log strings.Builder
	cmd.Stderr = &log
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	w.Close()
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("Xvfb did not start: %v\n%s", err, log.String())
	}
	return ":" + strings.TrimSpace(number), cmd.Process.Pid, stop
}
