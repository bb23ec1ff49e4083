package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"eidetic/internal/base/atomicfile"
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
	lines, err := linesOf(list)
	if err != nil {
		return fmt.Errorf("annotate: %w", err)
	}
	f, err := lockAnnotations(dir)
	if err != nil {
		return fmt.Errorf("annotate: %w", err)
	}
	if err := appendTo(f, lines); err != nil {
		return fmt.Errorf("annotate: %w", errors.Join(err, f.Close()))
	}
	return f.Close()
}

// PutAnnotations replaces those of a run's annotations that isOld says by others, as a whole, and returns how many those
// were. What others add meanwhile stays.
func PutAnnotations(dir string, isOld func(lab.Annotation) bool, list []lab.Annotation) (replaced int, err error) {
	lines, err := linesOf(list)
	if err != nil {
		return 0, fmt.Errorf("annotate: %w", err)
	}
	f, err := lockAnnotations(dir)
	if err != nil {
		return 0, fmt.Errorf("annotate: %w", err)
	}
	defer f.Close()
	kept, replaced, err := withoutOld(f, isOld)
	if err == nil && len(kept)+len(lines) > maxAnnotations {
		err = ErrAnnotations
	}
	if err == nil {
		err = atomicfile.WriteFile(filepath.Join(dir, AnnotationsFile), append(kept, lines...), 0o644)
	}
	if err != nil {
		return 0, fmt.Errorf("annotate: %w", err)
	}
	return replaced, nil
}

func linesOf(list []lab.Annotation) (lines []byte, err error) {
	for i, a := range list {
		if err := a.Check(); err != nil {
			return nil, fmt.Errorf("annotation %d: %w", i+1, err)
		}
		line, err := json.Marshal(a)
		if err != nil {
			return nil, err
		}
		lines = append(append(lines, line...), '\n')
	}
	return lines, nil
}

// lockAnnotations opens the file of a run's annotations, which nobody else writes until it is closed.
func lockAnnotations(dir string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if _, err := root.Stat(RunFile); err != nil {
		return nil, fmt.Errorf("%s is no run's folder: %w", dir, err)
	}
	for {
		f, err := root.OpenFile(AnnotationsFile, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o644)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			var isNewest bool
			if isNewest, err = isAt(root, AnnotationsFile, f); isNewest {
				return f, nil
			}
		}
		if err = errors.Join(err, f.Close()); err != nil { // without one PutAnnotations has replaced it
			return nil, err
		}
	}
}

// isAt says whether an open regular file is the one of a name.
func isAt(root *os.Root, name string, f *os.File) (bool, error) {
	own, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !own.Mode().IsRegular() {
		return false, fmt.Errorf("%s is no regular file", name)
	}
	named, err := root.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(own, named), err
}

// withoutOld reads the lines of a run's annotations but those that isOld says.
func withoutOld(f *os.File, isOld func(lab.Annotation) bool) (kept []byte, replaced int, err error) {
	text, err := io.ReadAll(io.LimitReader(f, maxAnnotations+1))
	if err != nil {
		return nil, 0, err
	}
	if len(text) > maxAnnotations {
		return nil, 0, ErrAnnotations
	}
	for line := range bytes.Lines(text) {
		var a lab.Annotation
		if json.Unmarshal(line, &a) == nil && isOld(a) {
			replaced++
			continue
		}
		kept = append(kept, line...)
	}
	if n := len(kept); n > 0 && kept[n-1] != '\n' {
		kept = append(kept, '\n')
	}
	return kept, replaced, nil
}

// Annotate adds annotations to a run of the store.
func (s *Store) Annotate(id string, list ...lab.Annotation) error {
	dir, err := s.dir(id)
	if err != nil {
		return err
	}
	return Annotate(dir, list...)
}

// appendTo appends lines to a locked file, behind the end of what a killed writer left half written.
func appendTo(f *os.File, lines []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size+int64(len(lines)) > maxAnnotations {
		return ErrAnnotations
	}
	if size > 0 {
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
