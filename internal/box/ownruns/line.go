package ownruns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// The states of what is carried out.
const (
	StateWaiting   = "waiting"
	StateRunning   = "running"
	StateDone      = "done"
	StateFailed    = "failed"
	StateCancelled = "cancelled"
)

// IsGoing says whether what is in a state has not ended.
func IsGoing(state string) bool { return state == StateWaiting || state == StateRunning }

// WrongError says what is wrong with a request.
type WrongError struct{ Err error }

func (e *WrongError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *WrongError) Unwrap() error { return e.Err }

// Errand is what is carried out, one at a time, by runs of its own. Its methods are called with the line's lock held.
type Errand interface {
	// About returns its ID, its state, and when it was made.
	About() (id, state string, made time.Time)
	// Owner is the name of the token that asked for it.
	Owner() string
	// Replays says whether it needs the recording of a name.
	Replays(name string) bool
	// Holding is that of the [Held] which it embeds.
	Holding() *Held
}

// Held is the part of an errand that its line needs, which embeds it.
type Held struct {
	Dir    string                  // the folder that it is kept in
	Cancel context.CancelCauseFunc // while it is carried out
}

// Holding is what the line needs of the errand.
func (h *Held) Holding() *Held { return h }

// Line is the errands that there are. Its lock guards them.
type Line[E Errand] struct {
	sync.Mutex
	All  map[string]E
	wake chan struct{} // capacity 1: there may be something to do
}

// NewLine returns a line without errands.
func NewLine[E Errand]() *Line[E] { return &Line[E]{All: map[string]E{}, wake: make(chan struct{}, 1)} }

// Read reads the errands whose folders a folder has. leftOut is told of those that cannot be read.
func (l *Line[E]) Read(dir string, read func(dir string) (E, error), leftOut func(name string, err error)) error {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range folders {
		if !f.IsDir() || !store.ValidID(f.Name()) {
			continue
		}
		if e, err := read(filepath.Join(dir, f.Name())); err != nil {
			leftOut(f.Name(), err)
		} else {
			l.All[f.Name()] = e
		}
	}
	return nil
}

// Put makes the folder of an errand, has it saved there, and takes it into the line, unless that has most errands, or so
// many that have not ended: then the error is many. It is [lab.ErrShare] if its owner has its share of them.
func (l *Line[E]) Put(e E, most, going int, many error, save func() error) error {
	l.Lock()
	defer l.Unlock()
	if err := l.room(e.Owner(), most, many, func(string) bool { return true }); err != nil {
		return err
	}
	if err := l.RoomToGo(e.Owner(), going, many); err != nil {
		return err
	}
	if err := os.Mkdir(e.Holding().Dir, 0o700); err != nil {
		return err
	}
	if err := save(); err != nil {
		return errors.Join(err, os.RemoveAll(e.Holding().Dir))
	}
	id, _, _ := e.About()
	l.All[id] = e
	l.Stir()
	return nil
}

// Cancel ends an errand by end, and what it does now. The error is store.ErrNotFound, or over.
func (l *Line[E]) Cancel(id string, over error, end func(E) error) error {
	l.Lock()
	defer l.Unlock()
	e, ok := l.All[id]
	if !ok {
		return store.ErrNotFound
	}
	if _, state, _ := e.About(); !IsGoing(state) {
		return over
	}
	if cancel := e.Holding().Cancel; cancel != nil {
		cancel(ErrCancelled)
	}
	return end(e)
}

// Remove removes an errand that has ended, with its folder. The error is store.ErrNotFound, or going.
func (l *Line[E]) Remove(id string, going error) error {
	l.Lock()
	defer l.Unlock()
	e, ok := l.All[id]
	if !ok {
		return store.ErrNotFound
	}
	if _, state, _ := e.About(); IsGoing(state) || e.Holding().Cancel != nil {
		return going
	}
	if err := os.RemoveAll(e.Holding().Dir); err != nil {
		return err
	}
	delete(l.All, id)
	return nil
}

// Work carries errands out, one after another in the order in which they were made, until ctx is done.
func (l *Line[E]) Work(ctx context.Context, carryOut func(context.Context, E)) error {
	for ctx.Err() == nil {
		if e, ok := l.next(); ok {
			carryOut(ctx, e)
			continue
		}
		select {
		case <-ctx.Done():
		case <-l.wake:
		}
	}
	return nil
}

// next returns the oldest errand that waits.
func (l *Line[E]) next() (oldest E, ok bool) {
	l.Lock()
	defer l.Unlock()
	var since time.Time
	for _, e := range l.All {
		if _, state, made := e.About(); state == StateWaiting && (!ok || made.Before(since)) {
			oldest, since, ok = e, made, true
		}
	}
	return oldest, ok
}

// Stir makes Work look for something to do.
func (l *Line[E]) Stir() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// RoomToGo says whether one more errand of an owner may go on, where so many may; if not, the error is many or
// [lab.ErrShare]. Who calls it holds the lock.
func (l *Line[E]) RoomToGo(owner string, most int, many error) error {
	return l.room(owner, most, many, IsGoing)
}

// room says whether there is room for one more errand of an owner among those whose state counts.
func (l *Line[E]) room(owner string, most int, many error, counts func(state string) bool) error {
	all, own := 0, 0
	for _, e := range l.All {
		if _, state, _ := e.About(); !counts(state) {
			continue
		}
		if all++; e.Owner() == owner {
			own++
		}
	}
	return lab.Room(all, own, most, many)
}

// Needs says since when runs may be those of an errand that has not ended; the zero time is that there is none.
func (l *Line[E]) Needs() (since time.Time) {
	l.Lock()
	defer l.Unlock()
	for _, e := range l.All {
		if _, state, made := e.About(); IsGoing(state) && (since.IsZero() || made.Before(since)) {
			since = made
		}
	}
	return since
}

// Holds names an errand that has not ended and needs the recording of a name. It is "" if there is none.
func (l *Line[E]) Holds(name string) (first string) {
	l.Lock()
	defer l.Unlock()
	for _, e := range l.All {
		if id, state, _ := e.About(); IsGoing(state) && e.Replays(name) && (first == "" || id < first) {
			first = id
		}
	}
	return first
}

// ReadFile reads a file of an errand in JSON, of at most so many bytes. Numbers keep their digits.
func ReadFile(name string, most int64, into any) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return err
	}
	if int64(len(text)) > most {
		return fmt.Errorf("%s has more than %d MiB", filepath.Base(name), most>>20)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}
