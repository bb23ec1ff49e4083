package member

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// wishes are the files that stayed on the box and that somebody wants.
type wishes struct {
	mu    sync.Mutex
	order []fleet.Wanted
	known map[fleet.Wanted]time.Time // when it was asked for, or could not be given
	wake  chan struct{}              // capacity 1
}

const (
	// mostWishes bounds the files that are to be given.
	mostWishes = 1000
	// wishAgain is how long a file that the box has not is not looked for again.
	wishAgain = 10 * time.Minute
)

func newWishes() *wishes {
	return &wishes{known: map[fleet.Wanted]time.Time{}, wake: make(chan struct{}, 1)}
}

func (w *wishes) add(all []fleet.Wanted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range all {
		if since, ok := w.known[one]; ok && time.Since(since) < wishAgain || len(w.order) >= mostWishes {
			continue
		}
		if len(w.known) >= 2*mostWishes {
			clear(w.known)
		}
		w.known[one] = time.Now()
		w.order = append(w.order, one)
		wake(w.wake)
	}
}

func (w *wishes) take() (fleet.Wanted, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 {
		return fleet.Wanted{}, false
	}
	one := w.order[0]
	w.order = w.order[1:]
	return one, true
}

// fulfilled lets a file be wanted again at once.
func (w *wishes) fulfilled(one fleet.Wanted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, one)
}

// grant uploads the files that somebody wants, one after the other.
func (s *session) grant(ctx context.Context) {
	var failed retry
	for ctx.Err() == nil {
		one, ok := s.wanted.take()
		if !ok {
			select {
			case <-ctx.Done():
			case <-s.wanted.wake:
			}
			continue
		}
		err := s.give(ctx, one)
		s.heardOf(err)
		switch {
		case err == nil:
			failed = retry{}
			s.wanted.fulfilled(one)
		case ctx.Err() == nil:
			s.Log.Warn("a file that the head wants cannot be given", "part", clip(one.Part, maxProblem), "file", clip(one.Path, maxProblem), "error", err)
			var answered *statusError
			if !errors.Is(err, errNoFile) && !errors.As(err, &answered) { // the head is away: it will ask again
				s.wanted.fulfilled(one)
				failed.wait(ctx, s.Times, nil)
			}
		}
	}
}

// heardOf is heard for a call that is about a file which the box may lack.
func (s *session) heardOf(err error) {
	if !errors.Is(err, errNoFile) {
		s.heard(err)
	}
}

// errNoFile says that the box has no such file.
var errNoFile = errors.New("the box has no such file: it was deleted, or has changed") // constant

// give uploads one file. The head names it with its digest, so it gets only what it has been told of.
func (s *session) give(ctx context.Context, w fleet.Wanted) error {
	if err := fleet.CheckFiles([]fleet.File{{Path: w.Path, SHA256: w.SHA256}}); err != nil || !store.ValidID(w.Part) {
		return errors.Join(errNoFile, err)
	}
	for n := 1; n <= mostRuns; n++ {
		id := runID(w.Part, n)
		if !s.Store.Has(id) {
			continue
		}
		if release, ok := s.Store.Hold(id); ok {
			f, size, err := openIf(s.Store, id, w)
			if err == nil {
				err = s.call.upload(ctx, s.Times, "", "", w.SHA256, size, f)
				_ = f.Close() // it was only read
			}
			release()
			if !errors.Is(err, errNoFile) {
				return err
			}
		}
	}
	return errNoFile
}

// openIf opens a file of a run if it has the digest.
func openIf(runs *store.Store, id string, w fleet.Wanted) (*os.File, int64, error) {
	root, err := runs.Files(id)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	f, _, err := store.OpenFile(root, w.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, errNoFile
	}
	if err != nil {
		return nil, 0, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != w.SHA256 {
		err = errNoFile
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, fmt.Errorf("%.100s: %w", w.Path, err)
	}
	return f, n, nil
}
