package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"eidetic/internal/lab"
)

// ErrEnded is returned for a run whose run.json already says how it ended.
var ErrEnded = errors.New("the run has ended")

// interruptedError is the error of a run whose process was killed before it could save one.
const interruptedError = "the process that ran it ended before it was done"

// maxSeries bounds the trial.json files whose series are in memory at once.
const maxSeries = 256 << 20

// Reopen opens the folder of an interrupted run, for a caller that completes it. The
// trials get their series from the trial.json files that can be read; those files are
// not rewritten. It returns ErrHeld if another process writes or has reopened the run,
// and ErrEnded if the run is complete.
func Reopen(dir string) (*Folder, *lab.Run, error) {
	f, err := reopen(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("reopen run: %w", err)
	}
	// Read under the lock: another process may have completed the run before.
	run, err := ReadRun(dir)
	if err == nil && run.Error != interruptedError {
		err = ErrEnded
	}
	if err == nil {
		err = f.loadSeries(run)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("reopen run: %w", err)
	}
	return f, run, nil
}

// reopen locks the folder itself, not the lock file in it: a locked lock file would
// make other processes list the run as running.
func reopen(dir string) (*Folder, error) {
	if isLocked(dir) {
		return nil, ErrHeld
	}
	lock, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrHeld
		}
		return nil, err
	}
	return &Folder{dir: dir, lock: lock, trials: map[int][sha256.Size]byte{}}, nil
}

// Resume opens the folder of an interrupted run, concluded or not, for a process that goes on
// with it; the run is listed as running from then on. Trials that were cut off are removed. It
// returns ErrNotFound if there is no such run, ErrHeld if another process has it, and
// ErrEnded if it came to an end of its own.
func Resume(root, id string) (*Folder, *lab.Run, error) {
	dir := filepath.Join(root, runsDir, id)
	if _, err := os.Lstat(dir); !ValidID(id) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrNotFound
	}
	own, err := reopen(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("resume run: %w", err)
	}
	f := &Folder{dir: dir, lock: own.lock, trials: map[int][sha256.Size]byte{}}
	fail := func(err error) (*Folder, *lab.Run, error) {
		return nil, nil, fmt.Errorf("resume run: %w", errors.Join(err, f.Close()))
	}
	run, err := ReadRun(dir)
	if err == nil && run.State != StateInterrupted {
		err = ErrEnded
	}
	if err != nil {
		return fail(err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return fail(err)
	}
	f.own, f.lock = own.lock, lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fail(ErrHeld)
	}
	if err := f.loadSeries(run); err != nil {
		return fail(err)
	}
	return f, run, f.dropCutOff(run)
}

// dropCutOff removes the folders of trials that the run does not have.
func (f *Folder) dropCutOff(run *lab.Run) error {
	all, err := os.ReadDir(filepath.Join(f.dir, trialsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("resume run: %w", err)
	}
	whole := map[string]bool{}
	for _, t := range run.Trials {
		whole[TrialName(t.Number)] = true
	}
	for _, e := range all {
		if whole[e.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(f.dir, trialsDir, e.Name())); err != nil {
			return fmt.Errorf("resume run: %w", err)
		}
	}
	return nil
}

// ReadWhole reads the run in a folder as [ReadRun] does, with the series of its trials as far as their files can be
// read.
func ReadWhole(dir string) (*lab.Run, error) {
	run, err := ReadRun(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, trials: map[int][sha256.Size]byte{}}
	if err := f.loadSeries(run); err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	return run, nil
}

// loadSeries adds to the trials of a run their series, and records the digests of the trial.json files.
func (f *Folder) loadSeries(run *lab.Run) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	left := int64(maxSeries)
	for i, t := range run.Trials {
		// A trial whose file is missing or damaged stays as run.json has it.
		if whole, size, err := readTrial(root, t.Number, left); err == nil {
			run.Trials[i], left = whole, left-size
		}
		b, err := encode(run.Trials[i])
		if err != nil {
			return err
		}
		f.trials[t.Number] = sha256.Sum256(b)
	}
	return nil
}

// readTrial reads a trial.json of at most limit bytes, which has the series that
// run.json leaves out.
func readTrial(root *os.Root, number int, limit int64) (*lab.Trial, int64, error) {
	name := filepath.Join(trialsDir, TrialName(number), TrialFile)
	fail := func(err error) (*lab.Trial, int64, error) {
		return nil, 0, fmt.Errorf("read trial: %s: %w", name, err)
	}
	file, _, err := OpenFile(root, name)
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	limit = min(limit, MaxRunBytes)
	b, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return fail(err)
	}
	if int64(len(b)) > limit {
		return fail(fmt.Errorf("larger than %d bytes", limit))
	}
	if err := checkBounds(b); err != nil {
		return fail(err)
	}
	t, err := decodeTrial(b)
	if err == nil && t.Number != number {
		err = fmt.Errorf("number: %d differs from the folder's name", t.Number)
	}
	if err != nil {
		return fail(err)
	}
	return t, int64(len(b)), nil
}

// CutOff lists the folders of interrupted runs that [Reopen] accepts.
func (s *Store) CutOff(ctx context.Context) ([]string, error) {
	all, err := s.Runs(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range all {
		if e.State == StateInterrupted && e.Error == interruptedError {
			dirs = append(dirs, filepath.Join(s.root, runsDir, e.ID))
		}
	}
	return dirs, nil
}
