package main

import (
	"errors"
	"io"

	"eidetic/internal/base/atomicfile"
)

// writeNamed writes a file that the user names: it is there as a whole or, after an error or a kill, as it was before.
func writeNamed(path string, write func(io.Writer) error) error {
	f, err := atomicfile.Output(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := errors.Join(write(f), f.Chmod(0o644)); err != nil {
		return err
	}
	return f.Commit()
}
