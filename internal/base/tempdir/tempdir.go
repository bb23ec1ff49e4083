// Package tempdir makes temporary folders that do not stay when their process is killed: in go a folder and the
// beginning of a name, out comes a new folder, which this process has locked (flock(2)). Folders of that name that
// nobody has locked are those of killed processes, and are removed.
package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"eidetic/internal/base/atomicfile"
)

// Make makes a folder in another one, or in the system's folder for temporary files if in is empty. Its name begins with
// prefix, which is of this use alone. remove deletes it with all that is in it.
func Make(in, prefix string) (dir string, remove func(), err error) {
	if in != "" {
		return makeIn(in, prefix)
	}
	in = os.TempDir()
	if dir, remove, err = makeIn(in, prefix); err != nil {
		err = fmt.Errorf("nothing can be put into %s, the folder for temporary files: make room there, or name another one with TMPDIR: %w", in, err)
	}
	return dir, remove, err
}

func makeIn(in, prefix string) (dir string, remove func(), err error) {
	sweep(in, prefix)
	unlocked, err := os.MkdirTemp(in, "."+prefix) // a name that no process sweeps
	if err != nil {
		return "", nil, err
	}
	lock, err := hold(unlocked)
	if lock == nil {
		return "", nil, errors.Join(err, os.Remove(unlocked))
	}
	remove = func() {
		_ = os.RemoveAll(dir) // what stays is removed by the next process
		_ = lock.Close()
	}
	dir = filepath.Join(in, strings.TrimPrefix(filepath.Base(unlocked), "."))
	if err := os.Rename(unlocked, dir); err != nil {
		_ = lock.Close()
		return "", nil, errors.Join(err, os.Remove(unlocked))
	}
	return dir, remove, nil
}

// hold opens a folder and locks it. On a file system without locks there is an error beside the open folder.
func hold(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return f, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// sweep removes the folders of killed processes of this user.
func sweep(in, prefix string) {
	left, _ := atomicfile.WithPrefix(in, prefix) // the next process tries again
	for _, dir := range left {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
			continue
		}
		lock, err := hold(dir)
		if err == nil {
			_ = os.RemoveAll(dir)
		}
		if lock != nil {
			_ = lock.Close()
		}
	}
}
