package main

import (
	"fmt"
	"io"
	"os"
)

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
