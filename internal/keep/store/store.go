package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/lab"
)

// Store is a folder of runs with its index.
type Store struct {
	root string
	log  *slog.Logger

	mu    sync.Mutex
	index *Index
	past  []*Index // indexes replaced after an error; queries may still use them
	holds holds
}

// Open opens a store, creating it if there is none. A missing or damaged index is
// recreated. If the index cannot be written because the disk is full or broken, it is
// kept in memory, which loses nothing: its content comes from the folders. log, which
// may be nil, gets a message then.
func Open(ctx context.Context, root string, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Join(root, runsDir), 0o755); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	removeUnnamed(filepath.Join(root, runsDir))
	s := &Store{root: root, log: log}
	var err error
	if s.index, err = OpenIndex(filepath.Join(root, "index.db")); err != nil {
		log.Error("the index of the runs cannot be written and is kept in memory until the next start", "error", err)
		if s.index, err = memoryIndex(); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	if err := s.Refresh(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// removeUnnamed removes folders that a killed process left half made or half removed.
// Folders of living processes are locked and stay.
func removeUnnamed(runs string) {
	left, _ := atomicfile.WithPrefix(runs, ".new-") // the next start tries again
	gone, _ := atomicfile.WithPrefix(runs, removedPrefix)
	for _, dir := range gone {
		_ = os.RemoveAll(dir)
	}
	for _, dir := range left {
		info, err := os.Lstat(dir)
		if err == nil && time.Since(info.ModTime()) > time.Minute && !isLocked(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}

// Close closes the index.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, x := range append(s.past, s.index) {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

// Root is the store's folder.
func (s *Store) Root() string { return s.root }

// Refresh brings the index in line with the folders.
func (s *Store) Refresh(ctx context.Context) error {
	_, err := s.refresh(ctx)
	return err
}

// refresh rebuilds the index, or replaces it by one in memory if it cannot be written.
func (s *Store) refresh(ctx context.Context) (*Index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.index.Rebuild(ctx, s.root)
	if err == nil || ctx.Err() != nil || s.index.memory {
		return s.index, err
	}
	s.log.Error("the index of the runs cannot be written and is kept in memory until the next start", "error", err)
	fresh, err := memoryIndex()
	if err != nil {
		return nil, err
	}
	s.past, s.index = append(s.past, s.index), fresh
	return fresh, fresh.Rebuild(ctx, s.root)
}

// Runs lists the current runs, newest first, that follow the run with the ID before. It
// returns ErrNotFound if there is no such run.
func (s *Store) Runs(ctx context.Context, before string, limit int) ([]Entry, error) {
	if before == "" {
		return s.RunsAfter(ctx, nil, limit)
	}
	last, err := s.Entry(ctx, before)
	if err != nil {
		return nil, err
	}
	return s.RunsAfter(ctx, &last, limit)
}

// RunsAfter lists the current runs; see Index.Runs.
func (s *Store) RunsAfter(ctx context.Context, last *Entry, limit int) ([]Entry, error) {
	return s.RunsThat(ctx, Filter{}, last, limit)
}

// RunsThat lists the current runs that match; see Index.Runs.
func (s *Store) RunsThat(ctx context.Context, want Filter, last *Entry, limit int) ([]Entry, error) {
	index, err := s.refresh(ctx)
	if err != nil {
		return nil, err
	}
	return index.Runs(ctx, last, limit, want)
}

// Entry returns the list entry of one run, or ErrNotFound.
func (s *Store) Entry(ctx context.Context, id string) (Entry, error) {
	index, err := s.refresh(ctx)
	if err != nil {
		return Entry{}, err
	}
	return index.Get(ctx, id)
}

// Run reads a run, or returns ErrNotFound.
func (s *Store) Run(id string) (*lab.Run, error) {
	dir, err := s.dir(id)
	if err != nil {
		return nil, err
	}
	return ReadRun(dir)
}

// RunBytes is how large the file of a run is, which has been measured or goes on; 0 if there is none.
func (s *Store) RunBytes(id string) int64 {
	dir, err := s.dir(id)
	if err != nil {
		return 0
	}
	info, err := os.Stat(filepath.Join(dir, RunFile))
	if err != nil {
		return 0
	}
	return info.Size()
}

// Files opens a run's folder for reading. The result gives no access to files outside
// the folder, whatever names and symbolic links it contains.
func (s *Store) Files(id string) (*os.Root, error) {
	dir, err := s.dir(id)
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// Has says whether the store has a folder for the run, whether or not it can be read.
func (s *Store) Has(id string) bool {
	_, err := s.dir(id)
	return err == nil
}

func (s *Store) dir(id string) (string, error) {
	if !ValidID(id) {
		return "", ErrNotFound
	}
	dir := filepath.Join(s.root, runsDir, id)
	// Lstat: a symbolic link in the place of a run's folder leads outside the store.
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return "", ErrNotFound
	}
	return dir, err
}

// ReadRun reads the run.json of a run's folder. A run whose state is "running" but whose
// lock is free is returned as interrupted. The run's ID must be the folder's name.
func ReadRun(dir string) (*lab.Run, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	defer root.Close()
	// The lock is checked before the file is read, so that a run that ends in between is
	// seen as done.
	alive := isLocked(dir)
	f, _, err := OpenFile(root, RunFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read run: %s has no %s: the run was cut off before it was first saved", filepath.Base(dir), RunFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	defer f.Close()
	run, err := DecodeRun(f)
	if err != nil {
		return nil, fmt.Errorf("read run: %s: %w", RunFile, err)
	}
	if run.ID != filepath.Base(dir) {
		return nil, fmt.Errorf("read run: %s: id %q is not the folder's name %q", RunFile, run.ID, filepath.Base(dir))
	}
	if !alive {
		endedIn(run)
	}
	sortTrials(run.Trials)
	return run, nil
}

// endedIn is what a run is whose process has ended: killed, or without a place to save how it ended.
func endedIn(run *lab.Run) {
	if run.State == StateRunning {
		run.State, run.Error = StateInterrupted, interruptedError
	}
}
