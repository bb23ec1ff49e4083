package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"eidetic/internal/base/atomicfile"
)

// thinFile says that a run's evidence was deleted.
const thinFile = "thinned.json"

// Thinned says when the evidence of a run was deleted, and why.
type Thinned struct {
	At    time.Time `json:"at"`
	Why   string    `json:"why"`
	Bytes int64     `json:"bytes"` // that were deleted
}

// IsNumbers says whether a file of a run stays when its evidence is deleted: what lists,
// histories, comparisons and reports are made of, and nothing else.
func IsNumbers(name string) bool {
	dir, base := path.Split(name)
	switch dir = strings.TrimSuffix(dir, "/"); {
	case dir == "":
		return slices.Contains([]string{RunFile, reportFile, pinFile, thinFile, lockFile, "annotations.jsonl"}, base) || path.Ext(base) == ".html"
	case path.Dir(dir) == trialsDir:
		return base == TrialFile || base == "timeline.json"
	}
	return false
}

// Sizes returns the bytes of a run's files: all of them, and its evidence alone, which are films,
// pictures, recordings, logs and traces.
func (s *Store) Sizes(id string) (all, evidence int64, err error) {
	err = s.eachFile(id, func(name string, info fs.FileInfo) error {
		all += info.Size()
		if !IsNumbers(name) {
			evidence += info.Size()
		}
		return nil
	})
	return all, evidence, err
}

// eachFile calls f with the regular files of a run, as far as they can be read.
func (s *Store) eachFile(id string, f func(name string, info fs.FileInfo) error) error {
	root, err := s.Files(id)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // removed meanwhile, or a folder
		}
		info, err := d.Info()
		if err != nil {
			return nil // removed meanwhile
		}
		return f(name, info)
	})
}

// Thin deletes the evidence of a run that has ended, and keeps its numbers: lists, histories,
// comparisons and the report go on working. It refuses a pinned run, one that somebody writes,
// and one whose files are being copied. One that was interrupted can be done again.
func (s *Store) Thin(id, why string, at time.Time) (freed int64, err error) {
	dir, err := s.dir(id)
	if err != nil {
		return 0, err
	}
	if pin, err := s.Pinned(id); pin != nil || err != nil {
		return 0, errors.Join(ErrPinned, err)
	}
	if isLocked(dir) {
		return 0, ErrHeld
	}
	if !s.holds.take(id) {
		return 0, ErrRead
	}
	defer s.holds.free(id)
	_, evidence, err := s.Sizes(id)
	if err != nil {
		return 0, fmt.Errorf("thin run: %w", err)
	}
	text, err := json.Marshal(Thinned{at.UTC(), why, evidence})
	if err != nil {
		return 0, err
	}
	// On a full disk there is no room for the note until something is deleted.
	noted := atomicfile.WriteFile(filepath.Join(dir, thinFile), append(text, '\n'), 0o644)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, fmt.Errorf("thin run: %w", err)
	}
	defer root.Close()
	err = s.eachFile(id, func(name string, info fs.FileInfo) error {
		if IsNumbers(name) {
			return nil
		}
		if err := root.Remove(name); err != nil {
			return err
		}
		freed += info.Size()
		return nil
	})
	if err == nil && noted != nil {
		err = atomicfile.WriteFile(filepath.Join(dir, thinFile), append(text, '\n'), 0o644)
	}
	if err != nil {
		return freed, fmt.Errorf("thin run: %w", err)
	}
	return freed, nil
}

// ThinnedAt returns when a run's evidence was deleted; false if it was not.
func (s *Store) ThinnedAt(id string) (t Thinned, ok bool) {
	root, err := s.Files(id)
	if err != nil {
		return t, false
	}
	defer root.Close()
	f, _, err := OpenFile(root, thinFile)
	if err != nil {
		return t, false
	}
	defer f.Close()
	b := make([]byte, maxPin)
	n, _ := f.Read(b) // an error leaves nothing to decode
	return t, json.Unmarshal(b[:n], &t) == nil
}
