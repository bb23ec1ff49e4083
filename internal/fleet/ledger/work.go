package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

const (
	assembleTries   = 5
	assembleWorkers = 2
	assembleLimit   = time.Hour
	// assembleGlance is how often a head looks for runs whose last part another one ended, or whose next try is due.
	assembleGlance = time.Second
)

// assembly is a try to make one run of its parts. Its number is its fence: a head that lost it ends nothing.
type assembly struct {
	run string
	try int
}

// Work gives back leases that ran out and assembles runs, until the context ends.
func (l *Ledger) Work(ctx context.Context) error {
	var group errgroup.Group
	if l.assemble != nil {
		for range assembleWorkers {
			group.Go(func() error { l.assembleAll(ctx); return nil })
		}
	}
	group.Go(func() error {
		tick := time.NewTicker(l.beat())
		defer tick.Stop()
		for {
			if err := l.Sweep(ctx); err != nil && ctx.Err() == nil {
				l.log.Warn("fleet: sweep", "error", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
	return group.Wait()
}

// beat is how often a head says that it lives.
func (l *Ledger) beat() time.Duration { return max(l.lease/beats, time.Millisecond) }

// assembleAll assembles runs, one after the other.
func (l *Ledger) assembleAll(ctx context.Context) {
	tick := time.NewTicker(assembleGlance)
	defer tick.Stop()
	for ctx.Err() == nil {
		found, err := l.assembleNext(ctx)
		if err != nil && ctx.Err() == nil {
			var away *lab.AwayError
			if errors.As(err, &away) {
				err = away.Err // whoever reads the log may know where the database or the store is
			}
			l.log.Warn("fleet: assemble", "error", err)
		}
		if found && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-l.allEnded:
		}
	}
}

// assembleNext assembles a run whose parts have all ended, and says whether there was one.
func (l *Ledger) assembleNext(ctx context.Context) (found bool, err error) {
	var a assembly
	err = l.update(ctx, "find a run to assemble", func(tx *tx) error {
		// The head that assembles a run puts off the time at which others may, as long as it lives.
		err := tx.row(ctx, `UPDATE fleet_runs SET tries = tries + 1, due = ? WHERE id = (SELECT id FROM fleet_runs
			WHERE state = 'assembling' AND due <= ? ORDER BY due, id LIMIT 1`+tx.skipLocked()+`) RETURNING id, tries`,
			at(tx.now.Add(l.lease)), at(tx.now)).Scan(&a.run, &a.try)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil || a.run == "" {
		return false, err
	}
	r, err := l.Run(ctx, a.run)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil // removed
	}
	end := Assembled{State: store.StateFailed, Error: fmt.Sprintf("its parts could not be put together in %d tries: the head stopped each time", assembleTries)}
	if err == nil && a.try <= assembleTries {
		stop := l.touch(ctx, a)
		end, err = l.tryAssembly(ctx, r)
		stop()
	}
	var away *lab.AwayError
	switch {
	case err != nil && ctx.Err() != nil:
		return true, l.putOff(context.WithoutCancel(ctx), a, 0, uncounted)
	case errors.As(err, &away):
		return true, errors.Join(err, l.putOff(ctx, a, l.beat(), uncounted))
	case err != nil && a.try < assembleTries:
		l.log.Warn("fleet: a run cannot be assembled", "run", a.run, "try", a.try, "error", err)
		return true, l.putOff(ctx, a, time.Second<<(2*a.try), 0)
	case err != nil:
		end = Assembled{State: store.StateFailed, Error: fmt.Sprintf("its parts could not be put together: %v", err)}
	}
	return true, l.endRun(ctx, a, end)
}

// tryAssembly calls the head. What boxes handed in is of strangers: a panic is an error like others.
func (l *Ledger) tryAssembly(ctx context.Context, r Run) (end Assembled, err error) {
	ctx, cancel := context.WithTimeout(ctx, assembleLimit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("fleet: assembling a run panicked", "run", r.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	end, err = l.assemble(ctx, r)
	if err == nil && end.State != store.StateDone && end.State != store.StateFailed && end.State != store.StateInterrupted {
		err = fmt.Errorf("%q is no end of a run", end.State)
	}
	return end, err
}

// touch puts the next try off while this one goes on.
func (l *Ledger) touch(ctx context.Context, a assembly) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(l.beat())
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := l.putOff(ctx, a, l.lease, 0); err != nil && ctx.Err() == nil {
				l.log.Warn("fleet: put an assembly off", "run", a.run, "error", err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// uncounted is of a try that says nothing of the run: the head stops, or its store is away.
const uncounted = 1

// putOff says when the next try to assemble a run may begin, and by how many the tries so far are less.
func (l *Ledger) putOff(ctx context.Context, a assembly, by time.Duration, less int) error {
	return l.update(ctx, "put an assembly off", func(tx *tx) error {
		_, err := tx.exec(ctx, `UPDATE fleet_runs SET due = ?, tries = tries - ? WHERE id = ? AND tries = ? AND state = 'assembling'`,
			at(tx.now.Add(by)), less, a.run, a.try)
		return err
	})
}

// endRun writes the end of a run once, and gives it its place in the order of all ends.
func (l *Ledger) endRun(ctx context.Context, a assembly, end Assembled) error {
	return l.update(ctx, "end a run", func(tx *tx) error {
		rows, err := tx.exec(ctx, `UPDATE fleet_runs SET state = ?, error = ?, files = ?, ended = ? WHERE id = ? AND tries = ? AND state = 'assembling'`,
			end.State, end.Error, text(orEmpty(end.Files)), at(tx.now), a.run, a.try)
		if err != nil || rows == 0 {
			return err
		}
		// The counter's row is held until the end is written, so nobody sees a place before those in front of it.
		var place int64
		if err := tx.row(ctx, `UPDATE fleet_state SET n = n + 1 WHERE name = 'ends' RETURNING n`).Scan(&place); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `UPDATE fleet_runs SET ends = ? WHERE id = ?`, place, a.run)
		return err
	})
}

// RunFiles lists the files of an assembled run.
func (l *Ledger) RunFiles(ctx context.Context, run string) ([]fleet.File, error) {
	files, err := l.reader().runFiles(ctx, run)
	return files, named("list files", err)
}
