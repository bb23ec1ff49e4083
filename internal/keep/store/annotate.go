package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"eidetic/internal/lab"
)

// AnnotationsFile, in a run's folder, holds the annotations that came from elsewhere than pages: one JSON object a
// line, each with its time, which says to which trial it belongs.
const AnnotationsFile = "annotations.jsonl"

// maxAnnotations bounds that file in bytes.
const maxAnnotations = lab.MostAnnotations * 5 << 10

// ErrAnnotations says that a run has as many annotations as it may.
var ErrAnnotations = errors.New("the run has as many annotations as it may have")

// Annotate adds annotations to the run in a folder that exists. It may be called by several processes at once: a
// line is written whole, or not at all.
func Annotate(dir string, list ...lab.Annotation) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("annotate: %w", err)
	}
	defer root.Close()
	if _, err := root.Stat(RunFile); err != nil {
		return fmt.Errorf("annotate: %s is no run's folder: %w", dir, err)
	}
	var lines []byte
	for i, a := range list {
		if err := a.Check(); err != nil {
			return fmt.Errorf("annotate: annotation %d: %w", i+1, err)
		}
		line, err := json.Marshal(a)
		if err != nil {
			return fmt.Errorf("annotate: %w", err)
		}
		lines = append(append(lines, line...), '\n')
	}
	f, err := root.OpenFile(AnnotationsFile, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return fmt.Errorf("annotate: %w", err)
	}
	if err := appendTo(f, lines); err != nil {
		return fmt.Errorf("annotate: %w", errors.Join(err, f.Close()))
	}
	return f.Close()
}

// Annotate adds annotations to a run of the store.
func (s *Store) Annotate(id string, list ...lab.Annotation) error {
	dir, err := s.dir(id)
	if err != nil {
		return err
	}
	return Annotate(dir, list...)
}

// appendTo appends lines under a lock, behind the end of what a killed writer left half written.
func appendTo(f *os.File, lines []byte) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", filepath.Base(f.Name()))
	case info.Size()+int64(len(lines)) > maxAnnotations:
		return ErrAnnotations
	}
	if size := info.Size(); size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			lines = append([]byte("\n"), lines...)
		}
	}
	_, err = f.Write(lines)
	return err
}

// ReadAnnotations reads annotations, one a line, which may come from anyone. Lines that are none are counted and
// left out: a killed writer leaves one. What is beyond the most is counted too.
func ReadAnnotations(r io.Reader, most int) (list []lab.Annotation, left int, err error) {
	return readList(r, maxAnnotations, most, func(a *lab.Annotation) bool {
		ok := a.Check() == nil
		*a = a.Clean()
		return ok
	})
}

// ReadTrial reads a trial.json, which has the series that run.json leaves out.
func ReadTrial(root *os.Root, number int) (*lab.Trial, error) {
	t, _, err := readTrial(root, number, maxSeries)
	return t, err
}
