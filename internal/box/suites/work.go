package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"eidetic/internal/box/ownruns"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/suite"
)

// Work has the results measured, one after another in the order in which they were asked for, until ctx is done.
func (k *Keeper) Work(ctx context.Context) error { return k.line.Work(ctx, k.carryOut) }

// end notes how a result ended. Who calls it holds the lock.
func (k *Keeper) end(b *kept, state, reason string) error {
	now := k.Now().UTC()
	b.State, b.Error, b.Ended, b.Now, b.Doing = state, reason, &now, nil, ""
	return b.save()
}

// carryOut has a result measured until it ends or ctx does.
func (k *Keeper) carryOut(ctx context.Context, b *kept) {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k.line.Lock()
	err := b.open()
	if b.IsGoing() {
		b.State, b.Cancel = ownruns.StateRunning, cancel
	}
	k.line.Unlock()
	if err == nil {
		err = k.measure(own, b)
	}
	k.line.Lock()
	defer k.line.Unlock()
	b.Cancel = nil
	var failed error
	switch {
	case !b.IsGoing(): // it was stopped
	case err == nil:
		failed = k.end(b, ownruns.StateDone, "")
	case ctx.Err() != nil: // the box stops: it goes on after the next start
		b.State = ownruns.StateWaiting
		return
	default:
		failed = k.end(b, ownruns.StateFailed, err.Error())
	}
	if failed != nil {
		k.Log.Error("the end of a suite's result cannot be kept", "result", b.ID, "error", failed)
	}
	b.rest()
}

// measure carries out what a result lacks.
func (k *Keeper) measure(ctx context.Context, b *kept) error {
	if b.found.Appliance != k.Software {
		return fmt.Errorf("it was begun by %s, and this is %s: numbers of two programs are not mixed; measure the suite anew",
			b.found.Appliance, k.Software)
	}
	m := k.machine(ctx, b)
	jobs, err := m.Jobs()
	if err != nil {
		return err
	}
	if err := m.Work(ctx, jobs); err != nil {
		return err
	}
	return m.Keep(func() {
		if b.found.Ended.IsZero() && m.IsComplete() {
			b.found.Ended = k.Now().UTC()
		}
	})
}

// machine carries a result out by the queue.
func (k *Keeper) machine(ctx context.Context, b *kept) *Machine {
	return &Machine{
		Suite: b.suite, Result: b.found, Only: b.request.Only, Runs: k.Store.Root(), Sums: k.Sums, Spread: b.request.Spread,
		Lab: &queueLab{Keeper: k, kept: b, ctx: ctx},
		Keep: func(change func()) error {
			k.line.Lock()
			defer k.line.Unlock()
			change()
			b.told = nil
			b.count()
			return errors.Join(b.saveFound(), b.save())
		},
		Begins: func(j Job, n, of int) {
			k.line.Lock()
			defer k.line.Unlock()
			b.Doing = fmt.Sprintf("%s, %d of %d", j.Entry.Name, n, of)
		},
		Ended: func(o suite.Outcome) {
			if o.State != store.StateDone {
				k.Log.Warn("an entry of a suite has failed", "result", b.ID, "entry", o.Entry, "run", o.Run, "error", o.Error)
			}
		},
	}
}

// queueLab has the runs made by the queue. It is a Lab.
type queueLab struct {
	*Keeper
	*kept
	ctx context.Context // of Check
}

// Check implements Lab.
func (l *queueLab) Check(e suite.Entry, q *plan.Request) error {
	if l.request.Device != "" {
		if err := q.Set("device", l.request.Device); err != nil {
			return err
		}
	}
	if l.request.On != nil {
		if err := q.Set("on", l.request.On); err != nil {
			return err
		}
	}
	for _, name := range q.Archives() {
		if l.Archive != nil {
			file, err := l.Archive(name)
			if err == nil {
				err = suite.CheckRecording(file, e.SHA256)
			}
			if err != nil {
				return &lab.FieldError{Path: "archive", Err: err}
			}
		}
		if !slices.Contains(l.archives, name) {
			l.archives = append(l.archives, name)
		}
	}
	if l.Config.Check == nil {
		return nil
	}
	return l.Config.Check(l.ctx, l.planOf(*q))
}

// planOf is a run's plan with the notes of who asks for it.
func (l *queueLab) planOf(q plan.Request) lab.Plan {
	p := plan.AskedBy(q.WithDefaults(), l.request.Scope)
	if l.request.Opens {
		p = plan.Opening(p)
	}
	return p
}

// Make implements Lab: after a restart of the box the queue goes on with a run by itself.
func (l *queueLab) Make(ctx context.Context, j Job, earlier suite.Outcome, begun func(string) error) (string, error) {
	maker := ownruns.Maker{Queue: l.Config.Runs, Store: l.Store, Patience: l.Patience, Log: l.Log}
	if earlier.State == suite.StateBegun {
		run, err := maker.Follow(ctx, earlier.Run)
		if err != nil {
			return "", err
		}
		if run != nil && run.State == store.StateDone {
			return run.ID, nil
		}
	}
	// The key has the run that was of no use, so that another is made.
	id, err := maker.Add(ctx, l.planOf(j.Plan), "suite "+l.ID+" "+j.Entry.Name+" after "+earlier.Run)
	if err == nil {
		err = begun(id)
	}
	if err != nil {
		return "", err
	}
	run, err := maker.Follow(ctx, id)
	switch {
	case err != nil:
		return "", err
	case run == nil:
		return id, errors.New("the run was deleted")
	case run.Error != "":
		return id, errors.New(run.Error)
	}
	return id, nil
}
