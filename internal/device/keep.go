package device

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// quitLimit is how long a browser may take to end by itself, and to write what it has in memory.
const quitLimit = 15 * time.Second

// Keep asks the browser to end, so that it writes its caches, and returns its home for
// Options.Home. Stop must not be called any more.
func (b *Browser) Keep() (home string, err error) {
	_ = syscall.Kill(b.process.cmd.Process.Pid, syscall.SIGTERM) // an error means that it has ended
	select {
	case <-b.process.done:
	case <-time.After(quitLimit):
		err = fmt.Errorf("the browser did not end within %v after it was asked to, and may have lost its caches", quitLimit)
	}
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
