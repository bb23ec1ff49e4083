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

	"eidetic/internal/lab"
)

// Store is a folder of runs with its index.
type Store struct {
	root string
	log  *slog.Logger

	mu    sync.Mutex
	index *Index
	past  []*Index // those that failed: somebody may still read them
}

// Open opens a store, and makes it when there is none. The index is made anew
// when it is missing or damaged; one that cannot be written, because the disk
// is full or broken, is kept in memory instead: it holds nothing that the
// folders do not. The log, which may be nil, is told so.
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
		log.Error("the index of the runs is in memory until the next start", "error", err)
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

// removeUnnamed removes what a process left that was ended while it made or
// removed a folder; what a living one makes is held. One that stays does no harm.
func removeUnnamed(runs string) {
	left, _ := filepath.Glob(filepath.Join(runs, ".new-*"))
	gone, _ := filepath.Glob(filepath.Join(runs, removed+"*"))
	for _, dir := range gone {
		_ = os.RemoveAll(dir)
	}
	for _, dir := range left {
		info, err := os.Lstat(dir)
		if err == nil && time.Since(info.ModTime()) > time.Minute && !held(dir) {
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

// refresh brings the index in line, or puts one in memory in its place.
func (s *Store) refresh(ctx context.Context) (*Index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.index.Rebuild(ctx, s.root)
	if err == nil || ctx.Err() != nil || s.index.memory {
		return s.index, err
	}
	s.log.Error("the index of the runs is in memory until the next start", "error", err)
	fresh, err := memoryIndex()
	if err != nil {
		return nil, err
	}
	s.past, s.index = append(s.past, s.index), fresh
	return fresh, fresh.Rebuild(ctx, s.root)
}

// Runs lists runs, the newest first, as they are now: those that come after the
// one with the ID before, which is ErrNotFound when there is none of that ID.
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

// RunsAfter lists runs as they are now; see Index.Runs.
func (s *Store) RunsAfter(ctx context.Context, last *Entry, limit int) ([]Entry, error) {
	index, err := s.refresh(ctx)
	if err != nil {
		return nil, err
	}
	return index.Runs(ctx, last, limit)
}

// Entry is what the list shows of one run, or ErrNotFound.
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
		run.Error = cutOff
	}
	sortTrials(run.Trials)
	return run, nil
}
