package v4l2

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Settings that cannot be opened do not keep programs from being started.
func TestSettingsThatAreNotThere(t *testing.T) {
	if _, err := openSettings(filepath.Join(t.TempDir(), "video0"), nil, typeCapture); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("openSettings() = %v, want %v", err, fs.ErrNotExist)
	}
	if err := exec.CommandContext(t.Context(), "true").Run(); err != nil {
		t.Errorf("starting a program afterwards: %v", err)
	}
}

// Signals of the runtime and of programs that end are no time that passes.
func TestWaitThroughSignals(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[1])
	n := &node{pipe[0]}
	defer func() { _ = n.close() }()

	const limit, sent = 300 * time.Millisecond, 50
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range sent {
			<-tick.C
			_ = unix.Tgkill(unix.Getpid(), thread, unix.SIGURG) // the runtime takes it as its own
		}
	}()
	before := time.Now()
	got, err := n.wait(t.Context(), limit)
	took := time.Since(before)
	<-done
	if got != nothingCame || err != nil || took < limit {
		t.Errorf("%v, %v after %v, want nothing after %v", got, err, took, limit)
	}
}
