package bisects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"eidetic/internal/box/bisection"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// queueLab makes trials by runs of the queue. It is a bisection.Lab.
type queueLab struct {
	*Keeper
	bisect *kept

	counting sync.Mutex
	inVain   int // runs in a row that were interrupted before they had a valid trial
}

// takes is how often a run is asked for that is interrupted before it is of any use.
const takes = 3

// lookPeriod is how often a run is looked at of which there is no news.
const lookPeriod = 2 * time.Second

// Record implements bisection.Lab: the queue finds a recording by the run that made it.
func (l *queueLab) Record(ctx context.Context, revision string) (string, error) {
	recording, err := l.bisect.request.Plan.Recording(revision)
	if err != nil {
		return "", err
	}
	for take := 1; ; take++ {
		id, err := l.add(ctx, recording, fmt.Sprintf("record %s %d", revision, take))
		if err != nil {
			return "", err
		}
		run, err := l.follow(ctx, id)
		switch {
		case err != nil:
			return "", err
		case run == nil:
			return "", l.cannot("run %s was deleted", id)
		case run.State == store.StateDone:
			return id, nil
		case run.State != store.StateInterrupted:
			return "", fmt.Errorf("run %s %s: %s", id, run.State, run.Error)
		case take == takes:
			return "", l.cannot("run %s was interrupted, as the ones before it: %s", id, run.Error)
		}
	}
}

// Compare implements bisection.Lab.
func (l *queueLab) Compare(ctx context.Context, c bisection.Comparison, begun func(string) error) (*lab.Run, error) {
	// The seed is another one for each run of the bisect.
	comparison, err := l.bisect.request.Plan.Between(c)
	if err != nil {
		return nil, err
	}
	id, err := l.add(ctx, comparison, fmt.Sprintf("compare %d", c.Seed))
	if err != nil {
		return nil, err
	}
	if err := begun(id); err != nil {
		return nil, err
	}
	run, err := l.follow(ctx, id)
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, l.cannot("run %s was deleted", id)
	}
	if l.countVain(run) == takes {
		return nil, l.cannot("run %s was interrupted, as the ones before it: %s", id, run.Error)
	}
	return run, nil
}

// countVain returns how many runs in a row have come to nothing.
func (l *queueLab) countVain(run *lab.Run) int {
	l.counting.Lock()
	defer l.counting.Unlock()
	l.inVain++
	if run.State != store.StateInterrupted || hasValid(run) {
		l.inVain = 0
	}
	return l.inVain
}

func hasValid(run *lab.Run) bool {
	for _, t := range run.Trials {
		if t.Valid {
			return true
		}
	}
	return false
}

// Ended implements bisection.Lab: the queue goes on with a run after a restart of the box.
func (l *queueLab) Ended(ctx context.Context, id string) (*lab.Run, error) { return l.follow(ctx, id) }

// cannot is an error that says nothing about a revision.
func (l *queueLab) cannot(format string, args ...any) error {
	return &bisection.LabError{Err: fmt.Errorf(format, args...)}
}

// add puts a run into the queue, or returns that which was asked for with the same key, before the box was killed. The
// queue refuses runs while a device or the fleet's database is away: it is asked again for a while.
func (l *queueLab) add(ctx context.Context, asked plan.Request, key string) (id string, err error) {
	p := asked.WithDefaults()
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	// The digest is part of the key: a run that was asked for and not yet noted when the box was killed may be of no
	// use any more.
	once := store.Once{Key: "bisect " + l.bisect.ID + " " + key + " " + digest[:16], Request: digest}
	limited, done := context.WithTimeout(ctx, l.Patience)
	defer done()
	for {
		id, err = l.Runs.Add(ctx, p, once)
		var rejected *runqueue.RejectedError
		var away *lab.AwayError
		switch {
		case err == nil:
			l.change(l.bisect, func() {
				if !slices.Contains(l.bisect.runs, id) {
					l.bisect.runs = append(l.bisect.runs, id)
				}
			})
			return id, nil
		case ctx.Err() != nil:
			return "", ctx.Err()
		case !errors.As(err, &rejected) && !errors.As(err, &away) && !errors.Is(err, store.ErrFull):
			return "", l.cannot("ask for a run: %w", err)
		}
		wait := time.NewTimer(min(lookPeriod, l.Patience))
		select {
		case <-limited.Done():
			wait.Stop()
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", l.cannot("the queue takes no run: %w", err)
		case <-wait.C:
		}
	}
}

// follow waits for the end of a run; it returns nil for one that there is not. If the bisect is cancelled, so is the
// run.
func (l *queueLab) follow(ctx context.Context, id string) (*lab.Run, error) {
	l.change(l.bisect, func() { l.bisect.underWay, l.bisect.Run = append(l.bisect.underWay, id), id })
	defer l.change(l.bisect, func() {
		l.bisect.underWay = slices.DeleteFunc(l.bisect.underWay, func(one string) bool { return one == id })
		if l.bisect.Run = ""; len(l.bisect.underWay) > 0 {
			l.bisect.Run = l.bisect.underWay[0]
		}
	})
	news := l.Runs.Events().Listen(id)
	defer news.Close()
	look := time.NewTicker(lookPeriod)
	defer look.Stop()
	for {
		run, over, err := l.look(ctx, id)
		switch {
		case ctx.Err() != nil:
			if errors.Is(context.Cause(ctx), errCancelled) {
				if err := l.Runs.Cancel(context.WithoutCancel(ctx), id); err != nil && !errors.Is(err, store.ErrNotFound) {
					l.Log.Warn("the run of a bisect that was cancelled goes on", "bisect", l.bisect.ID, "run", id, "error", err)
				}
			}
			return nil, ctx.Err()
		case err != nil:
			return nil, l.cannot("look at run %s: %w", id, err)
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
func (l *queueLab) look(ctx context.Context, id string) (run *lab.Run, over bool, err error) {
	job, err := l.Runs.Get(ctx, id)
	switch {
	case err == nil && (job.State == store.StateQueued || job.State == store.StateRunning):
		return nil, false, nil
	case err == nil && !l.Store.Has(id): // it came to nothing, and left no folder
		return &lab.Run{ID: id, State: store.StateInterrupted, Error: job.Error}, true, nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return nil, false, err
	}
	run, err = l.Store.Run(id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return run, run.State != store.StateRunning, nil
}
