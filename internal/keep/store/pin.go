package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/base/atomicfile"
)

const (
	pinFile = "pin.json"
	// maxPin bounds a pin's file.
	maxPin = 16 << 10
)

// Pin keeps a run and all its files from being deleted.
type Pin struct {
	By  string    `json:"by" doc:"Name of the token that pinned it"`
	At  time.Time `json:"at"`
	Why string    `json:"why,omitempty" doc:"What it is kept for"`
}

// ErrPinned is returned for a run that is to be deleted, and is pinned.
var ErrPinned = errors.New("the run is pinned")

// Pin pins a run; an earlier pin is replaced.
func (s *Store) Pin(id string, p Pin) error {
	dir, err := s.dir(id)
	if err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, pinFile), append(text, '\n'), 0o644)
}

// Unpin removes the pin of a run; it returns ErrNotFound where there is none.
func (s *Store) Unpin(id string) error {
	dir, err := s.dir(id)
	if err != nil {
		return err
	}
	err = os.Remove(filepath.Join(dir, pinFile))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	}
	return errors.Join(err, atomicfile.SyncDir(dir))
}

// Pinned returns the pin of a run, or nil. A pin that cannot be read counts as one.
func (s *Store) Pinned(id string) (*Pin, error) {
	root, err := s.Files(id)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, _, err := OpenFile(root, pinFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pin: %w", err)
	}
	defer f.Close()
	var p Pin
	if err := json.NewDecoder(io.LimitReader(f, maxPin)).Decode(&p); err != nil {
		return &Pin{Why: "its file cannot be read"}, nil
	}
	p.By, p.Why = clip(p.By), clip(p.Why)
	return &p, nil
}
