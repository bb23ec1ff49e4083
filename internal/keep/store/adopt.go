package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/lab"
)

// Adopt moves the whole folder of a run that has ended, which was made elsewhere on the same file system, into the
// store. A folder of the same run that is there already is replaced: it was made from the same parts.
func (s *Store) Adopt(from string, run *lab.Run) error {
	if !ValidID(run.ID) || filepath.Base(from) != run.ID || run.State == StateRunning {
		return fmt.Errorf("adopt run: %s is no folder of a run that has ended", from)
	}
	to := filepath.Join(s.root, runsDir, run.ID)
	if err := s.Remove(run.ID); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("adopt run: %w", err)
	}
	if err := syncTree(from); err != nil {
		return fmt.Errorf("adopt run: %w", err)
	}
	if err := os.Rename(from, to); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%w; another process has made it", err)
		}
		return fmt.Errorf("adopt run: %w", err)
	}
	if err := errors.Join(atomicfile.SyncDir(filepath.Dir(to)), publish(s.root, run.ID), publishCells(s.root, run)); err != nil {
		return fmt.Errorf("adopt run: %w", err)
	}
	return nil
}
