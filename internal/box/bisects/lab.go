package bisects

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"eidetic/internal/box/bisection"
	"eidetic/internal/box/ownruns"
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

// add puts a run into the queue, or returns that which was asked for with the same key, before the box was killed.
func (l *queueLab) add(ctx context.Context, asked plan.Request, key string) (id string, err error) {
	id, err = l.maker().Add(ctx, asked.WithDefaults(), "bisect "+l.bisect.ID+" "+key)
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
	}
	return "", l.cannot("%w", err)
}

func (l *queueLab) maker() ownruns.Maker {
	return ownruns.Maker{Queue: l.Runs, Store: l.Store, Patience: l.Patience, Log: l.Log}
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
	run, err := l.maker().Follow(ctx, id)
	if err != nil && ctx.Err() == nil {
		err = l.cannot("%w", err)
	}
	return run, err
}
