package automation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// smallStep is how far the clock may be put back without times being due again: a time server
// corrects a clock by less. What is put back further was wrong before.
const smallStep = time.Hour

// fireAll deals with every schedule that is due, and returns when the next one is.
func (k *Keeper) fireAll(ctx context.Context) (next time.Time, err error) {
	all, err := k.schedules(ctx)
	if err != nil {
		return next, err
	}
	var errs []error
	for _, s := range all {
		if s.Paused {
			continue
		}
		at, err := k.fire(ctx, s)
		if err != nil {
			errs = append(errs, fmt.Errorf("schedule %s: %w", s.Name, err))
			continue
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next, errors.Join(append(errs, k.launchAll(ctx))...)
}

// fire deals with one schedule, and returns when it is due next.
func (k *Keeper) fire(ctx context.Context, s scheduleRow) (next time.Time, err error) {
	times, err := s.times()
	if err != nil {
		return next, err
	}
	now := k.Now()
	if s.next.IsZero() {
		return k.plan(ctx, s, times.Next(now), s.handled, nil)
	}
	if now.Before(s.next) {
		return k.early(ctx, s, times, now)
	}
	due, missed := times.Latest(s.next, now)
	f := Firing{Due: due, At: now, Missed: missed, State: FiringWaits}
	if err := k.skip(ctx, s, &f); err != nil {
		return next, err
	}
	return k.plan(ctx, s, times.Next(now), due, &f)
}

// skip notes in a time why it is left out, if it is.
func (k *Keeper) skip(ctx context.Context, s scheduleRow, f *Firing) error {
	last, err := k.Firings(ctx, s.Name, 1)
	if err != nil {
		return err
	}
	if len(last) > 0 && last[0].State == FiringWaits {
		f.State, f.Reason = FiringSkipped, "the run of "+last[0].Due.Format(time.RFC3339)+" was not accepted yet: "+last[0].Reason
	} else if state, err := k.runGoesOn(ctx, s); err != nil {
		return err
	} else if state != "" {
		f.State, f.Run = FiringSkipped, s.run
		f.Reason = "the run before, " + s.run + ", is still " + state
	} else if id := k.busy(s); id != "" {
		f.State, f.Reason = FiringSkipped, "bisect "+id+" deploys revisions of "+s.Bisect.Repository
	}
	return nil
}

// FireNow starts what a schedule starts, also one that is paused, besides its times. The error is store.ErrNotFound, or
// a *WrongError if something of it is under way.
func (k *Keeper) FireNow(ctx context.Context, name string) (Firing, error) {
	s, err := scanSchedule(k.db.QueryRowContext(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE name = ?`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return Firing{}, store.ErrNotFound
	}
	now := k.Now()
	f := Firing{Due: now, At: now, State: FiringWaits}
	if err == nil {
		err = k.skip(ctx, s, &f)
	}
	if err != nil {
		return f, fmt.Errorf("start a schedule: %w", err)
	}
	if f.State == FiringSkipped {
		return f, wrong("%s", f.Reason)
	}
	_, err = k.plan(ctx, s, s.next, s.handled, &f)
	k.Stir()
	return f, err
}

// runGoesOn is the state of a schedule's last run while it is in the queue, or "".
func (k *Keeper) runGoesOn(ctx context.Context, s scheduleRow) (state string, err error) {
	if s.run == "" {
		return "", nil
	}
	job, err := k.Runs.Get(ctx, s.run)
	switch {
	case err == nil && (job.State == store.StateQueued || job.State == store.StateRunning):
		return job.State, nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return "", err
	}
	return "", nil
}

// goesOn says what a schedule has under way: a time that waits, or a run. It is "" for neither.
func (k *Keeper) goesOn(ctx context.Context, s scheduleRow) (state string, err error) {
	last, err := k.Firings(ctx, s.Name, 1)
	if err != nil || len(last) > 0 && last[0].State == FiringWaits {
		return FiringWaits, err
	}
	return k.runGoesOn(ctx, s)
}

// busy names the bisect that has the repository of a schedule, or "".
func (k *Keeper) busy(s scheduleRow) string {
	if s.Bisect == nil || k.Bisector == nil {
		return ""
	}
	return k.Bisector.Busy(s.Bisect.Repository)
}

// early looks at a schedule that is not due. Between now and then there is no other time,
// unless the clock was put back, or the rules of the time zone have changed.
func (k *Keeper) early(ctx context.Context, s scheduleRow, times *Times, now time.Time) (time.Time, error) {
	first := times.Next(now)
	if !first.Before(s.next) {
		return s.next, nil
	}
	if !s.handled.IsZero() && !first.After(s.handled) { // the clock showed this time before
		if s.handled.Sub(now) <= smallStep {
			return s.next, nil
		}
		return k.plan(ctx, s, first, time.Time{}, &Firing{Due: first, At: now, State: FiringClock,
			Reason: "the clock was put back from at least " + s.handled.Format(time.RFC3339) + ": the times are counted anew from now"})
	}
	return k.plan(ctx, s, first, s.handled, nil)
}

// plan notes when a schedule is due next and which time was dealt with last, and what became
// of that one.
func (k *Keeper) plan(ctx context.Context, s scheduleRow, next, handled time.Time, f *Firing) (time.Time, error) {
	return next, k.in(ctx, "note a time", func(tx *sql.Tx) error {
		// A schedule that somebody has changed meanwhile has times of its own.
		done, err := tx.ExecContext(ctx, `UPDATE schedules SET next = ?, handled = ? WHERE name = ? AND revision = ?`,
			stamp(next), stamp(handled), s.Name, s.Revision)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 || f == nil {
			return err
		}
		return execAll(ctx, tx, []statement{
			{`INSERT INTO firings (schedule, due, at, missed, state, run, reason) VALUES (?, ?, ?, ?, ?, ?, ?)`,
				[]any{s.Name, stamp(f.Due), stamp(f.At), f.Missed, f.State, f.Run, f.Reason}},
			{`DELETE FROM firings WHERE schedule = ?1 AND seq <= (SELECT seq FROM firings WHERE schedule = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`,
				[]any{s.Name, mostFirings}},
		})
	})
}

// waits is a time whose run the queue has not accepted yet.
type waits struct {
	seq      int64
	schedule string
	at       time.Time
	Timing
}

// launchAll adds the runs of the times that wait to the queue. The key of each is that of its
// time, so that it is one run, however often the process ends in between.
func (k *Keeper) launchAll(ctx context.Context) error {
	rows, err := k.db.QueryContext(ctx, `SELECT f.seq, f.schedule, f.at, s.asked FROM firings f
		JOIN schedules s ON s.name = f.schedule WHERE f.state = ? ORDER BY f.seq`, FiringWaits)
	if err != nil {
		return fmt.Errorf("read times that wait: %w", err)
	}
	defer rows.Close()
	var all []waits
	for rows.Next() {
		var w waits
		var at int64
		var asked string
		if err := rows.Scan(&w.seq, &w.schedule, &at, &asked); err != nil {
			return fmt.Errorf("read times that wait: %w", err)
		}
		if err := json.Unmarshal([]byte(asked), &w.Timing); err != nil {
			return fmt.Errorf("read times that wait: %w", err)
		}
		w.at = timeOf(at)
		all = append(all, w)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return fmt.Errorf("read times that wait: %w", err)
	}
	for _, w := range all {
		if err := k.launch(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// launch adds one run to the queue, or notes why there is none.
func (k *Keeper) launch(ctx context.Context, w waits) error {
	state, id, reason := FiringRun, "", ""
	revision := ""
	if w.Bisect != nil && k.Bisector != nil {
		d := k.deployed(ctx, w.seq, w.Bisect.Repository)
		if d == nil {
			return nil
		}
		revision, w.at = d.revision, d.at
		if d.reason != "" {
			return k.launched(ctx, w, FiringRefused, "", shorten(fmt.Sprintf("the revision %.40s cannot be deployed: %s", revision, d.reason)))
		}
	}
	flow, err := k.Workflow(ctx, w.Workflow, 0)
	if err == nil {
		key := fmt.Sprintf("schedule %s %d", w.schedule, w.seq) // with a space, which no client's key has
		plan := *flow.Plan
		if revision != "" {
			plan, err = k.Bisector.PlanAt(w.Bisect.Repository, revision, plan)
		}
		if err == nil {
			plan.From = &lab.Origin{Workflow: flow.Name, Version: flow.Version, Schedule: w.schedule, Revision: revision}
			id, err = k.Runs.Add(ctx, plan, store.Once{Key: key, Request: key})
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err() // the next process launches it
	case err != nil:
		state, reason = FiringRefused, shorten(err.Error())
		if waited := k.Now().Sub(w.at); waited >= 0 && waited < k.Patience {
			state = FiringWaits
		}
	}
	return k.launched(ctx, w, state, id, reason)
}

// launched notes what became of a time.
func (k *Keeper) launched(ctx context.Context, w waits, state, id, reason string) error {
	return k.in(ctx, "note a run", func(tx *sql.Tx) error {
		all := []statement{{`UPDATE firings SET state = ?, run = ?, reason = ? WHERE seq = ?`, []any{state, id, reason, w.seq}}}
		if id != "" {
			all = append(all, statement{`UPDATE schedules SET run = ? WHERE name = ?`, []any{id, w.schedule}})
		}
		return execAll(ctx, tx, all)
	})
}

// shorten bounds a reason.
func shorten(text string) string {
	const most = 500
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
