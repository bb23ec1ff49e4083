package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"eidetic/internal/keep/store"
)

// DataFolder makes the data folder and returns its path. A service of systemd that
// cannot make it gets a folder in memory instead: a box with a broken disk still measures.
func DataFolder(dir string, log *slog.Logger) (string, error) {
	err := makePrivate(dir, log)
	memory := os.Getenv("RUNTIME_DIRECTORY")
	switch {
	case err == nil:
		return dir, nil
	case memory == "":
		return "", fmt.Errorf("data folder: %w", err)
	}
	log.Error("no data folder: runs and recordings live in memory", "data", dir, "memory", memory, "error", err)
	return memory, nil
}

// makePrivate makes the data folder for its owner alone: it holds recordings, with cookies and
// passwords, and the token. One that an earlier version made for everybody is closed; a folder that holds
// nothing of ours is somebody else's, and only told of.
func makePrivate(dir string, log *slog.Logger) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, queueFile)); err == nil {
		if err := os.Chmod(dir, 0o700); err == nil {
			return nil
		}
	}
	log.Warn("others on this machine can look into the data folder: chmod 700 closes it", "data", dir, "mode", info.Mode().Perm())
	return nil
}

// HoldFolder keeps other services from the data folder for as long as the result
// is open: they would take the runs in progress here for interrupted ones. It
// locks the folder itself, which works on a full disk, too.
func HoldFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	// Any other error comes from a file system without locks, where nobody can hold one.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		_ = f.Close()
		return nil, fmt.Errorf(
			"data folder: another appliance serve uses %s: end it, or give this one a folder of its own with --data",
			dir,
		)
	}
	return f, nil
}

// queueFile holds the runs that wait.
const queueFile = "queue.db"

// openQueue opens the queue. A damaged queue is put aside: a box that forgets what
// waited is better than one that never starts again. Where the disk takes nothing
// the queue is in memory, because the panel can empty a full disk; inMemory is the reason.
// No run is accepted then.
func openQueue(ctx context.Context, dir string, log *slog.Logger) (queue *store.Queue, inMemory, err error) {
	path := filepath.Join(dir, queueFile)
	queue, err = store.OpenQueue(ctx, path)
	if err == nil || ctx.Err() != nil {
		return queue, nil, err
	}
	if !store.Damaged(err) {
		log.Error("the queue cannot be opened: no run is accepted until the next start, and those that wait in the file wait until then",
			"error", err)
		queue, memoryErr := store.MemoryQueue(ctx)
		return queue, err, memoryErr
	}
	aside := path + ".damaged"
	log.Error("the queue is damaged; it is put aside, and the runs that waited are forgotten", "aside", aside, "error", err)
	if err := os.Rename(path, aside); err != nil {
		return nil, nil, err
	}
	for _, rest := range []string{path + "-wal", path + "-shm"} {
		_ = os.Remove(rest) // files of the damaged queue, which may be missing
	}
	queue, err = store.OpenQueue(ctx, path)
	return queue, nil, err
}
