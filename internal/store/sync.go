package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/internal/atomicfile"
)

// syncTree puts a folder's files on the disk, and all below it. The lock, and
// what somebody put there that is no file, is left alone.
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
			return nil // one that was beside another and has taken its name
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}
