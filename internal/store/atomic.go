package store

import (
	"fmt"
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
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
