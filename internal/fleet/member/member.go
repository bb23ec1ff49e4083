// Package member is a box's side of a fleet: it joins a head by a link that a person copied, tells it what devices the
// box has, claims parts of runs for those that are free, has the box's own queue carry them out, and hands in what they
// left.
//
// In go a head that may be down, slow, restarted or hostile, and a box that may be killed at any point. Out comes each
// part ended once: whatever the box is about to do is on its disk before it does it (leases/PART.json), every call can
// be repeated, and a part is forgotten only after the head has said that it ended, or that another box has it. While
// the head is out of reach the box goes on measuring, keeps the results, and hands them in later.
//
// The lease's token is the fence: the head refuses calls with an old one, and the box that learns so stops, and keeps
// its run to itself (package fleet has the source). Waits between attempts are exponential with jitter, as in Brooker,
// "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
package member

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Archives are the recordings of the box.
type Archives interface {
	// Open opens a recording; the error is of any kind where there is none.
	Open(name string) (*os.File, error)
	// Put reads a recording, judges it, and gives it its name; another one of the name is replaced.
	Put(ctx context.Context, name string, content io.Reader) error
	// Remove deletes a recording.
	Remove(name string) error
	// Names lists the recordings.
	Names() ([]string, error)
}

// Config is what a member is made of.
type Config struct {
	Dir      string // DATA/fleet: its identity, and the parts that it holds
	Queue    *runqueue.Queue
	Store    *store.Store
	Archives Archives
	// Offer describes the box.
	Offer func(ctx context.Context) fleet.Offer
	// Same says whether a run is of a plan, and Resumable why it cannot go on, or nil.
	Same      func(run *lab.Run, plan lab.Plan) bool
	Resumable func(run *lab.Run) error
	Updater   Updater          // nil where there is none: on a machine that does not run from the image
	Log       *slog.Logger     // nil discards
	Now       func() time.Time // the wall clock; nil is time.Now
	Times     Times
}

// Updater is the box's own, which the panel's POST /api/v1/update uses.
type Updater interface {
	// Update checks who signed a bundle and has it installed, which restarts the box.
	Update(ctx context.Context, bundle io.Reader) error
	Status() (UpdateStatus, error)
}

// UpdateStatus is the state of the box's software.
type UpdateStatus struct {
	Running    string // version of the image
	Installing bool   // an update waits for the restart
	Last       string // version of the last update
	Error      string // why it was not installed
	FellBack   bool   // it was, and did not become healthy
}

// Times are the periods of a member; the zero value has those of a box.
type Times struct {
	Describe time.Duration // between two descriptions of the box: 30 s
	Progress time.Duration // at least, between two renewals, which a new trial brings forward: 5 s
	HandIn   time.Duration // at least, between two lists of the files of whole trials: 20 s
	Claim    time.Duration // how long the head may keep a claim open: 25 s
	Look     time.Duration // between two looks at the queue and the devices, where no event says that they changed: 5 s
	First    time.Duration // the first wait after a failed call: 1 s
	Most     time.Duration // the longest: 1 min
	Call     time.Duration // how long a call may take, and a transfer be without a byte: 30 s
}

func (t Times) withDefaults() Times {
	for _, one := range []struct {
		have *time.Duration
		want time.Duration
	}{
		{&t.Describe, 30 * time.Second}, {&t.Progress, 5 * time.Second},
		{&t.HandIn, 20 * time.Second}, {&t.Claim, 25 * time.Second}, {&t.Look, 5 * time.Second},
		{&t.First, time.Second}, {&t.Most, time.Minute}, {&t.Call, 30 * time.Second},
	} {
		if *one.have <= 0 {
			*one.have = one.want
		}
	}
	return t
}

// Keeper is the box's place in a fleet, if it has one.
type Keeper struct {
	Config

	mu      sync.Mutex
	session *session      // while it works as a member
	leaving bool          // it must not begin to
	changed chan struct{} // capacity 1: it has joined or left
}

// Open returns a keeper that does nothing yet.
func Open(c Config) (*Keeper, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Times = c.Times.withDefaults()
	for _, dir := range []string{c.Dir, filepath.Join(c.Dir, leasesDir)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return &Keeper{Config: c, changed: make(chan struct{}, 1)}, nil
}

var (
	// ErrNotJoined is of a box that belongs to no head, and ErrJoined of one that belongs to another one.
	ErrNotJoined = errors.New("this box belongs to no head")        // constant
	ErrJoined    = errors.New("this box belongs to a head already") // constant
)

// Work is a member of the fleet, whenever the box belongs to a head, until the context ends.
func (k *Keeper) Work(ctx context.Context) error {
	ticker := time.NewTicker(k.Times.Look)
	defer ticker.Stop()
	said := ""
	for ctx.Err() == nil {
		err := k.workOnce(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotJoined) && err.Error() != said {
			said = err.Error()
			k.Log.Error("the box is not a member of its fleet", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-k.changed:
		case <-ticker.C: // "appliance join" may have written the file
		}
	}
	return nil
}

// workOnce works for the head that the box belongs to now, until it leaves.
func (k *Keeper) workOnce(ctx context.Context) error {
	id, err := readIdentity(k.Dir)
	if err != nil {
		return err
	}
	call, err := Dial(k.Dir, id, k.Times.Call)
	if err != nil {
		return err
	}
	defer call.Close()
	own, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := newSession(k.Config, id, call, stop)
	if err := s.load(); err != nil {
		return err
	}
	k.mu.Lock()
	leaving := k.leaving
	if !leaving {
		k.session = s
	}
	k.mu.Unlock()
	if leaving {
		return ErrNotJoined
	}
	defer func() {
		k.mu.Lock()
		k.session = nil
		k.mu.Unlock()
		close(s.ended)
	}()
	k.Log.Info("the box is a member of a fleet", "head", id.Head, "as", id.Name, "parts", len(s.parts))
	s.work(own)
	return nil
}

// Joined says whether the box belongs to a head.
func (k *Keeper) Joined() bool {
	_, err := readIdentity(k.Dir)
	return err == nil
}

// Needed says which runs of the box's store are needed for the fleet, and why, by their IDs.
func (k *Keeper) Needed() map[string]string { return neededIn(k.Dir) }
