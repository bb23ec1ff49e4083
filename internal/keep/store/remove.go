package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"eidetic/internal/base/atomicfile"
)

// ErrHeld is returned for a run that another process is writing.
var ErrHeld = errors.New("the run goes on")

// ErrRead is returned for a run whose files are being copied, as by a backup.
var ErrRead = errors.New("its files are being copied: try again in a while")

// removedPrefix begins the names of folders that are being removed.
const removedPrefix = ".gone-"

// Remove deletes a run's folder and its content, whether or not it can be read as a run.
// It refuses a locked folder with ErrHeld and a pinned
// run with ErrPinned. It needs no disk space. If Remove is
// interrupted, the folder is no longer listed, and the next Open removes the rest.
func (s *Store) Remove(id string) error {
	dir, err := s.dir(id)
	if err != nil {
		return err
	}
	if isLocked(dir) {
		return ErrHeld
	}
	if pin, err := s.Pinned(id); pin != nil && err == nil {
		return ErrPinned
	}
	if !s.holds.take(id) {
		return ErrRead
	}
	defer s.holds.free(id)
	runs := filepath.Dir(dir)
	gone := filepath.Join(runs, removedPrefix+id)
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	// Renamed first, so that readers never see a half-removed folder.
	if err := os.Rename(dir, gone); err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	if err := errors.Join(os.RemoveAll(gone), atomicfile.SyncDir(runs), s.unpublish(id)); err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	return nil
}

// unpublish points root/latest at the newest remaining run if it pointed at the removed
// one. Without any run the links are removed.
func (s *Store) unpublish(id string) error {
	latest := filepath.Join(s.root, Latest)
	if target, err := os.Readlink(latest); err != nil || target != filepath.Join(runsDir, id) {
		return nil // latest points to another run, or is the user's own file
	}
	folders, err := os.ReadDir(filepath.Join(s.root, runsDir))
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(folders) { // sorted by name, which begins with the time
		if d.IsDir() && ValidID(d.Name()) {
			return publish(s.root, d.Name())
		}
	}
	for _, name := range append(published(), Latest) {
		path := filepath.Join(s.root, name)
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}
