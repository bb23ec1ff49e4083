package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"eidetic/internal/atomicfile"
)

// ErrHeld is returned for a run that goes on.
var ErrHeld = errors.New("the run goes on")

// removed begins the names of folders that are being removed.
const removed = ".gone-"

// Remove deletes a run's folder with all that is in it, readable as a run or
// not. One that a process holds is refused with ErrHeld. It needs no space on
// the disk. What is cut off in it is not seen again, and is ended by the next Open.
func (s *Store) Remove(id string) error {
	dir, err := s.dir(id)
	if err != nil {
		return err
	}
	if held(dir) {
		return ErrHeld
	}
	runs := filepath.Dir(dir)
	gone := filepath.Join(runs, removed+id)
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	// Nobody sees half of it.
	if err := os.Rename(dir, gone); err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	if err := errors.Join(os.RemoveAll(gone), atomicfile.SyncDir(runs), s.unpublish(id)); err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	return nil
}

// unpublish points root/latest at the newest run that is left, where it led to
// one that is gone; without any the links go.
func (s *Store) unpublish(id string) error {
	latest := filepath.Join(s.root, "latest")
	if target, err := os.Readlink(latest); err != nil || target != filepath.Join(runsDir, id) {
		return nil // it leads to another, or is the user's own
	}
	folders, err := os.ReadDir(filepath.Join(s.root, runsDir))
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(folders) { // by name, which begins with the time
		if d.IsDir() && ValidID(d.Name()) {
			return publish(s.root, d.Name())
		}
	}
	for _, name := range append(published(), "latest") {
		path := filepath.Join(s.root, name)
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}
