package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/keep/store"
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

// readNamed reads a file that a person names, of at most so many bytes: a device or a pipe may never end.
func readNamed(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f, path, most)
}

// readBounded reads at most so many bytes of what has this name for people.
func readBounded(r io.Reader, name string, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s: more than %d bytes", name, most)
	}
	return content, err
}

// newestRun is a run's folder: of a folder that --out named the newest run's. out/latest leads to another run by and by.
func newestRun(path string) (dir string, err error) {
	if newest := filepath.Join(path, store.Latest); exists(newest) { // a run's own folder has no such folder
		path = newest
	}
	return filepath.EvalSymlinks(path)
}

// exists says whether there is a file of a name.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
