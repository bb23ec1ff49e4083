package store

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// OpenFile opens a regular file below root for reading and refuses any other kind. It
// does not block on a pipe.
func OpenFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("not a regular file: %w", fs.ErrNotExist)}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}
