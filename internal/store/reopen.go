package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"eidetic/internal/lab"
)

// ErrEnded is returned for a run that says itself how it ended.
var ErrEnded = errors.New("the run has ended")

// cutOff is what is said of a run that could not say how it ended.
const cutOff = "the process that ran it ended before it was done"

// maxSeries bounds the trial.json files whose series are in memory at once.
const maxSeries = 256 << 20

// Reopen takes the folder of a run that was cut off, for whoever says at last
// how it ended. The trials have their series, as far as their own files can be
// read; those files are not written again. It returns ErrHeld for a run that
// goes on or that another has reopened, and ErrEnded for one that needs nobody.
func Reopen(dir string) (*Folder, *lab.Run, error) {
	f, err := reopen(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("reopen run: %w", err)
	}
	// Read under the lock: another process may have been here before.
	run, err := ReadRun(dir)
	if err == nil && run.Error != cutOff {
		err = ErrEnded
	}
	if err == nil {
		err = f.recall(run)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("reopen run: %w", err)
	}
	return f, run, nil
}

// reopen locks the folder itself: whoever held the lock in it would be taken
// for a process that measures, and the run for one that goes on.
func reopen(dir string) (*Folder, error) {
	if held(dir) {
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

// recall gives the trials of a run their series, and notes that they are on the disk.
func (f *Folder) recall(run *lab.Run) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	left := int64(maxSeries)
	for i, t := range run.Trials {
		// One without its file, or with a damaged one, is as run.json has it.
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

// readTrial reads the trial.json of a run's folder, which has the series that
// run.json leaves out, if it has at most so many bytes.
func readTrial(root *os.Root, number int, most int64) (*lab.Trial, int64, error) {
	name := filepath.Join(trialsDir, TrialName(number), trialFile)
	fail := func(err error) (*lab.Trial, int64, error) {
		return nil, 0, fmt.Errorf("read trial: %s: %w", name, err)
	}
	file, _, err := OpenFile(root, name)
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	most = min(most, MaxRunBytes)
	b, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return fail(err)
	}
	if int64(len(b)) > most {
		return fail(fmt.Errorf("larger than %d bytes", most))
	}
	if err := bounded(b); err != nil {
		return fail(err)
	}
	var t lab.Trial
	if err := json.Unmarshal(b, &t); err != nil {
		return fail(fmt.Errorf("%s%w", place(b, err), err))
	}
	if t.Number != number {
		return fail(fmt.Errorf("number: %d is not the folder's", t.Number))
	}
	if err := checkTrial(&t); err != nil {
		return fail(err)
	}
	return &t, int64(len(b)), nil
}

// CutOff lists the folders of the runs that were cut off and that [Reopen] gives.
func (s *Store) CutOff(ctx context.Context) ([]string, error) {
	all, err := s.Runs(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range all {
		if e.State == StateInterrupted && e.Error == cutOff {
			dirs = append(dirs, filepath.Join(s.root, runsDir, e.ID))
		}
	}
	return dirs, nil
}
