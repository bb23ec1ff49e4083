// Package ownruns has runs made for what the box measures by itself over many runs: bisects and suites. Plans flow in
// and go through the queue like any other, so they take their turns; the records of the runs that ended flow out.
//
// A [Line] carries such errands out, one at a time.
//
// A request for a run has a key: a box that was killed asks for no run twice. While a device or the fleet's database is
// away, the queue is asked again.
package ownruns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Queue is the queue of runs.
type Queue interface {
	Add(ctx context.Context, plan lab.Plan, once store.Once) (id string, err error)
	Get(ctx context.Context, id string) (store.Job, error)
	Cancel(ctx context.Context, id string) error
	Events() *runqueue.Events
}

// ErrCancelled is the cause of the end of a context that a person asked for: the run that is followed is cancelled.
var ErrCancelled = errors.New("it was cancelled") // constant

// lookPeriod is how often a run is looked at of which there is no news.
const lookPeriod = 2 * time.Second

// Maker has runs made.
type Maker struct {
	Queue    Queue
	Store    *store.Store
	Patience time.Duration // how long the queue may refuse a run
	Log      *slog.Logger
}

// Add puts a run into the queue, or returns that which was asked for with the same key and plan, before the box was
// killed.
func (m Maker) Add(ctx context.Context, p lab.Plan, key string) (id string, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	// The digest is part of the key: a run that was asked for and not yet noted when the box was killed may be of no
	// use any more.
	once := store.Once{Key: key + " " + digest[:16], Request: digest}
	limited, done := context.WithTimeout(ctx, m.Patience)
	defer done()
	for {
		id, err = m.Queue.Add(ctx, p, once)
		var rejected *runqueue.RejectedError
		var away *lab.AwayError
		switch {
		case err == nil:
			return id, nil
		case ctx.Err() != nil:
			return "", ctx.Err()
		case !errors.As(err, &rejected) && !errors.As(err, &away) && !errors.Is(err, store.ErrFull):
			return "", fmt.Errorf("ask for a run: %w", err)
		}
		wait := time.NewTimer(min(lookPeriod, m.Patience))
		select {
		case <-limited.Done():
			wait.Stop()
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", fmt.Errorf("the queue takes no run: %w", err)
		case <-wait.C:
		}
	}
}

// Follow waits for the end of a run; it returns nil for one that there is not. If the context ends by [ErrCancelled],
// the run is cancelled.
func (m Maker) Follow(ctx context.Context, id string) (*lab.Run, error) {
	news := m.Queue.Events().Listen(id)
	defer news.Close()
	look := time.NewTicker(lookPeriod)
	defer look.Stop()
	for {
		run, over, err := m.look(ctx, id)
		switch {
		case ctx.Err() != nil:
			if errors.Is(context.Cause(ctx), ErrCancelled) {
				if err := m.Queue.Cancel(context.WithoutCancel(ctx), id); err != nil && !errors.Is(err, store.ErrNotFound) {
					m.Log.Warn("a run that is not needed any more goes on", "run", id, "error", err)
				}
			}
			return nil, ctx.Err()
		case err != nil:
			return nil, fmt.Errorf("look at run %s: %w", id, err)
		case over:
			return run, nil
		}
		select {
		case <-ctx.Done():
		case <-news.Wake():
			news.Take()
		case <-look.C:
		}
	}
}

// look reads a run, and says whether it is over.
func (m Maker) look(ctx context.Context, id string) (run *lab.Run, over bool, err error) {
	job, err := m.Queue.Get(ctx, id)
	switch {
	case err == nil && (job.State == store.StateQueued || job.State == store.StateRunning):
		return nil, false, nil
	case err == nil && !m.Store.Has(id): // it came to nothing, and left no folder
		return &lab.Run{ID: id, State: store.StateInterrupted, Error: job.Error}, true, nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return nil, false, err
	}
	run, err = m.Store.Run(id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return run, run.State != store.StateRunning, nil
}
