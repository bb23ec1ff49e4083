package device

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// quitLimit is how long a browser may take to end by itself, and to write what it has in memory.
const quitLimit = 15 * time.Second

// flushLimit is how long a browser's other processes may take to write what they have after it has ended: of
// Chromium one of them has the cookies, and another the storage of pages.
const flushLimit = 5 * time.Second

// awaitGroup waits until the processes of a group have ended that became our children when their parent did.
func awaitGroup(group int, limit time.Duration) {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		pid, err := syscall.Wait4(group, nil, syscall.WNOHANG, nil)
		switch {
		case pid > 0 || errors.Is(err, syscall.EINTR): // there may be others
		case err != nil:
			return
		default:
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Keep asks the browser to end, so that it writes its caches, and returns its home for
// Options.Home. Stop must not be called any more.
func (b *Browser) Keep() (home string, err error) {
	_ = syscall.Kill(b.process.cmd.Process.Pid, syscall.SIGTERM) // an error means that it has ended
	select {
	case <-b.process.done:
	case <-time.After(quitLimit):
		err = fmt.Errorf("the browser did not end within %v after it was asked to, and may have lost its caches", quitLimit)
	}
	awaitGroup(-b.process.cmd.Process.Pid, flushLimit)
	b.end()
	if err != nil {
		_ = removeAll(b.home)
		return "", err
	}
	// Sockets and locks are of the process that has ended.
	err = filepath.WalkDir(b.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type().IsRegular() && d.Name() != ".parentlock" {
			return err
		}
		return os.Remove(path)
	})
	if err != nil {
		return "", fmt.Errorf("keeping the browser's profile: %w", err)
	}
	return b.home, nil
}
