package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile puts content in the place of path: written beside it, synced,
// renamed, and the folder synced, so that after a crash or a power cut there
// is the old file or the new one.
func WriteFile(path string, content []byte) error { return replace(path, content, 0o644) }

// WritePrivate is WriteFile for what only the service itself may read.
func WritePrivate(path string, content []byte) error { return replace(path, content, 0o600) }

func replace(path string, content []byte, mode os.FileMode) (err error) {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = temp.Close()
			_ = os.Remove(temp.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if _, err = temp.Write(content); err != nil {
		return err
	}
	if err = temp.Chmod(mode); err != nil {
		return err
	}
	if err = temp.Sync(); err != nil {
		return err
	}
	if err = temp.Close(); err != nil {
		return err
	}
	if err = os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// SyncDir puts the names in a folder on the disk: without it a file that was
// renamed may be gone after a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// syncTree puts a folder's files on the disk, and all below it. The lock, and
// what somebody put there that is no file, is left alone.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return SyncDir(path)
		case !d.Type().IsRegular() || d.Name() == lockFile:
			return nil
		}
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // one that was beside another and has taken its name
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}
