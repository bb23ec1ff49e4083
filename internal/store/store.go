package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/lab"
)

// Store is a folder of runs with its index.
type Store struct {
	root  string
	index *Index
}

// Open opens a store, and makes it when there is none. The index is made anew
// when it is missing or damaged.
func Open(ctx context.Context, root string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(root, runsDir), 0o755); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	removeUnnamed(filepath.Join(root, runsDir))
	index, err := OpenIndex(filepath.Join(root, "index.db"))
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{root: root, index: index}
	if err := s.Refresh(ctx); err != nil {
		_ = index.Close()
		return nil, err
	}
	return s, nil
}

// removeUnnamed removes what a process left that was ended while it made a
// folder; what a living one makes is held. One that stays does no harm.
func removeUnnamed(runs string) {
	left, _ := filepath.Glob(filepath.Join(runs, ".new-*"))
	for _, dir := range left {
		info, err := os.Lstat(dir)
		if err == nil && time.Since(info.ModTime()) > time.Minute && !held(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}

// Close closes the index.
func (s *Store) Close() error { return s.index.Close() }

// Root is the store's folder.
func (s *Store) Root() string { return s.root }

// Refresh brings the index in line with the folders.
func (s *Store) Refresh(ctx context.Context) error { return s.index.Rebuild(ctx, s.root) }

// Runs lists runs, the newest first, as they are now; see Index.Runs.
func (s *Store) Runs(ctx context.Context, before string, limit int) ([]Entry, error) {
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return s.index.Runs(ctx, before, limit)
}

// Run reads a run, or returns ErrNotFound.
func (s *Store) Run(id string) (*lab.Run, error) {
	dir, err := s.dir(id)
	if err != nil {
		return nil, err
	}
	return ReadRun(dir)
}

// Files opens a run's folder for reading. Nothing outside it can be reached
// through the result, whatever names and symbolic links there are.
func (s *Store) Files(id string) (*os.Root, error) {
	dir, err := s.dir(id)
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// Has says whether there is a folder of that run, readable or not.
func (s *Store) Has(id string) bool {
	_, err := s.dir(id)
	return err == nil
}

func (s *Store) dir(id string) (string, error) {
	if !ValidID(id) {
		return "", ErrNotFound
	}
	dir := filepath.Join(s.root, runsDir, id)
	// Lstat: a link in the place of a run's folder leads somewhere else.
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return "", ErrNotFound
	}
	return dir, err
}

// ReadRun reads the run.json of a run's folder. A run that calls itself
// running and that no process holds is returned as interrupted. The run's ID
// must be the folder's name.
func ReadRun(dir string) (*lab.Run, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	defer root.Close()
	// Asked before the file is read: a run that ends in between is then seen
	// as done in the file.
	alive := held(dir)
	f, _, err := OpenFile(root, runFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read run: %s has no %s: the run was cut off before it was first saved", filepath.Base(dir), runFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	defer f.Close()
	run, err := DecodeRun(f)
	if err != nil {
		return nil, fmt.Errorf("read run: %s: %w", runFile, err)
	}
	if run.ID != filepath.Base(dir) {
		return nil, fmt.Errorf("read run: %s: id %q is not the folder's name %q", runFile, run.ID, filepath.Base(dir))
	}
	if run.State == StateRunning && !alive {
		run.State = StateInterrupted
		if run.Error == "" {
			run.Error = "the process that ran it ended before it was done"
		}
	}
	sortTrials(run.Trials)
	return run, nil
}
