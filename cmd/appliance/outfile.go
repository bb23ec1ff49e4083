package main

import (
	"errors"
	"io"
	"io/fs"

	"eidetic/internal/base/atomicfile"
)

// writeNamed writes a file that the user names: it is there as a whole or, after an error or a kill, as it was before.
func writeNamed(path string, write func(io.Writer) error) error { return writeFile(path, 0o644, write) }

// writePrivate is writeNamed of a file that only its owner can read.
func writePrivate(path string, write func(io.Writer) error) error {
	return writeFile(path, 0o600, write)
}

func writeFile(path string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := atomicfile.Output(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := errors.Join(write(f), f.Chmod(mode)); err != nil {
		return err
	}
	return f.Commit()
}
