package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/internal/base/atomicfile"
)

// syncTree syncs all files and folders in dir. It skips the lock file, and whatever is
// neither a regular file nor a folder.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return atomicfile.SyncDir(path)
		case !d.Type().IsRegular() || d.Name() == lockFile:
			return nil
		}
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file that has been renamed meanwhile
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}
