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

// Bounds of schedules.
const (
	mostSchedules = 100
	mostFirings   = 500 // of one schedule that are kept
)

// Timing is what a schedule starts, and when.
type Timing struct {
	Workflow string `json:"workflow" maxLength:"60" doc:"Name of the workflow whose newest version is started" example:"checkout"`
	Every    string `json:"every,omitempty" maxLength:"40" doc:"How often, from 1m to 31d, counted from when the schedule was made" example:"2h"`
	Cron     string `json:"cron,omitempty" maxLength:"200" doc:"When, as the five fields of cron: minute, hour, day of the month, month, day of the week" example:"30 2 * * 1-5"`
	Zone     string `json:"zone,omitempty" maxLength:"60" doc:"Time zone of cron; without it UTC" example:"Europe/Berlin"`
	Paused   bool   `json:"paused,omitempty" doc:"Whether it starts nothing. Times that pass meanwhile are not made up for"`
	// Bisect is nil for a schedule whose alerts are not bisected.
	Bisect *Bisecting `json:"bisect,omitempty" doc:"Deploys a revision before each run, and finds the revision that an alert comes from"`
}

// Schedule starts runs of a workflow.
type Schedule struct {
	Name     string `json:"name" example:"nightly"`
	Revision int    `json:"revision" doc:"Counts its changes; it is also the ETag"`
	Timing
	Changed time.Time  `json:"changed"`
	By      string     `json:"by" doc:"Name of the token that changed it last"`
	Next    *time.Time `json:"next,omitempty" doc:"When it is due next, by the box's clock; absent while it is paused"`
	Last    *Firing    `json:"last,omitempty" doc:"What became of the last time"`
}

// What became of a time at which a schedule was due.
const (
	FiringWaits   = "waiting" // the queue has not accepted the run yet
	FiringRun     = "run"
	FiringSkipped = "skipped"
	FiringRefused = "refused"
	FiringClock   = "clock" // not a time that was due: the clock was put back
)

// Firing is one time at which a schedule was due, and what became of it.
type Firing struct {
	Due time.Time `json:"due" doc:"When it was due"`
	At  time.Time `json:"at" doc:"When the box dealt with it"`
	// Missed counts what one run stands for besides its own time.
	Missed int    `json:"missed,omitempty" doc:"How many times before this one passed while the box was off or stopped; one run stands for all of them"`
	State  string `json:"state" enum:"waiting,run,skipped,refused,clock" doc:"run: a run was started. skipped: the last one was still queued or running. refused: the reason says why there is none. waiting: the queue is asked again for five minutes. clock: the box's clock was put back, and the times are counted anew"`
	Run    string `json:"run,omitempty" doc:"Identifier of the run that was started, or that was still going on"`
	Reason string `json:"reason,omitempty"`
}

// PutSchedule makes or changes a schedule.
func (k *Keeper) PutSchedule(ctx context.Context, name string, t Timing, by string, expect Expect) (Schedule, error) {
	if err := CheckName(name); err != nil {
		return Schedule{}, err
	}
	now := k.Now()
	times, err := ParseTimes(t.Every, t.Cron, t.Zone, now)
	if err != nil {
		return Schedule{}, &WrongError{err}
	}
	flow, err := k.Workflow(ctx, t.Workflow, 0)
	if errors.Is(err, store.ErrNotFound) {
		return Schedule{}, wrong("workflow: there is no %.60q: keep its plan first", t.Workflow)
	} else if err != nil {
		return Schedule{}, err
	}
	if err := k.checkBisecting(ctx, name, t.Bisect, flow.Plan); err != nil {
		return Schedule{}, err
	}
	asked, err := json.Marshal(t)
	if err != nil {
		return Schedule{}, err
	}
	next := int64(0)
	if !t.Paused {
		next = stamp(times.Next(now))
	}
	err = k.in(ctx, "keep schedule", func(tx *sql.Tx) error {
		var revision, others, own int
		err := tx.QueryRowContext(ctx, `SELECT revision FROM schedules WHERE name = ?`, name).Scan(&revision)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := expect.met(revision); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(by = ?2), 0) FROM schedules WHERE name <> ?1`, name, by).
			Scan(&others, &own); err != nil {
			return err
		}
		if revision == 0 {
			if err := lab.Room(others, own, mostSchedules, ErrMany); err != nil {
				return err
			}
		}
		return execAll(ctx, tx, []statement{{`INSERT INTO schedules (name, revision, asked, made, by, anchor, next, handled, run)
			VALUES (?1, ?2, ?3, ?4, ?5, ?4, ?6, 0, '') ON CONFLICT (name) DO UPDATE
			SET revision = ?2, asked = ?3, made = ?4, by = ?5, anchor = ?4, next = ?6, handled = 0`,
			[]any{name, revision + 1, string(asked), stamp(now), by, next}}})
	})
	if err != nil {
		return Schedule{}, err
	}
	k.Stir()
	return k.Schedule(ctx, name)
}

// checkBisecting returns an error for a repository that there is not, or that another schedule deploys: it cannot have
// two revisions at the same time.
func (k *Keeper) checkBisecting(ctx context.Context, name string, b *Bisecting, plan *lab.Plan) error {
	if b == nil {
		return nil
	}
	if k.Bisector == nil {
		return wrong("bisect: the box makes no bisects")
	}
	if err := k.Bisector.CheckRepository(b.Repository); err != nil {
		return wrong("bisect.repository: %w", err)
	}
	if _, err := k.Bisector.PlanAt(b.Repository, "0", *plan); err != nil {
		return wrong("workflow: %w", err)
	}
	all, err := k.schedules(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Name != name && s.Bisect != nil && s.Bisect.Repository == b.Repository {
			return wrong("bisect.repository: the schedule %s deploys %s already: name another clone for this one", s.Name, b.Repository)
		}
	}
	return nil
}

// scheduleRow is a schedule with what the box notes of it.
type scheduleRow struct {
	Schedule
	anchor, next, handled time.Time
	run                   string
}

// times are when it is due.
func (s scheduleRow) times() (*Times, error) { return ParseTimes(s.Every, s.Cron, s.Zone, s.anchor) }

const scheduleColumns = `name, revision, asked, made, by, anchor, next, handled, run`

func scanSchedule(row interface{ Scan(...any) error }) (s scheduleRow, err error) {
	var made, anchor, next, handled int64
	var asked string
	if err := row.Scan(&s.Name, &s.Revision, &asked, &made, &s.By, &anchor, &next, &handled, &s.run); err != nil {
		return s, err
	}
	s.Changed, s.anchor, s.next, s.handled = timeOf(made), timeOf(anchor), timeOf(next), timeOf(handled)
	if err := json.Unmarshal([]byte(asked), &s.Timing); err != nil {
		return s, err
	}
	if !s.Paused && next != 0 {
		s.Next = timeIf(next)
	}
	return s, nil
}

// Schedule returns a schedule, or store.ErrNotFound.
func (k *Keeper) Schedule(ctx context.Context, name string) (Schedule, error) {
	s, err := scanSchedule(k.db.QueryRowContext(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE name = ?`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return s.Schedule, store.ErrNotFound
	}
	if err != nil {
		return s.Schedule, fmt.Errorf("read schedule: %w", err)
	}
	last, err := k.Firings(ctx, name, 1)
	if len(last) > 0 {
		s.Last = &last[0]
	}
	return s.Schedule, err
}

func (k *Keeper) schedules(ctx context.Context) ([]scheduleRow, error) {
	rows, err := k.db.QueryContext(ctx, `SELECT `+scheduleColumns+` FROM schedules ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	defer rows.Close()
	var all []scheduleRow
	for rows.Next() {
		s, err := scanSchedule(rows)
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// Schedules lists the schedules by name.
func (k *Keeper) Schedules(ctx context.Context) ([]Schedule, error) {
	rows, err := k.schedules(ctx)
	if err != nil {
		return nil, err
	}
	all := []Schedule{}
	for _, s := range rows {
		last, err := k.Firings(ctx, s.Name, 1)
		if err != nil {
			return nil, err
		}
		if len(last) > 0 {
			s.Last = &last[0]
		}
		all = append(all, s.Schedule)
	}
	return all, nil
}

// RemoveSchedule removes a schedule with its history. Runs that it started stay.
func (k *Keeper) RemoveSchedule(ctx context.Context, name string, expect Expect) error {
	return k.in(ctx, "remove schedule", func(tx *sql.Tx) error {
		var revision int
		err := tx.QueryRowContext(ctx, `SELECT revision FROM schedules WHERE name = ?`, name).Scan(&revision)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return store.ErrNotFound
		case err != nil:
			return err
		case !expect.Any && expect.Version != revision:
			return ErrChanged
		}
		return execAll(ctx, tx, []statement{
			{`DELETE FROM schedules WHERE name = ?`, []any{name}}, {`DELETE FROM firings WHERE schedule = ?`, []any{name}},
		})
	})
}

// Firings lists the newest times of a schedule, the newest first.
func (k *Keeper) Firings(ctx context.Context, name string, limit int) ([]Firing, error) {
	rows, err := k.db.QueryContext(ctx, `SELECT due, at, missed, state, run, reason FROM firings WHERE schedule = ? ORDER BY seq DESC LIMIT ?`,
		name, limit)
	if err != nil {
		return nil, fmt.Errorf("list times of a schedule: %w", err)
	}
	defer rows.Close()
	all := []Firing{}
	for rows.Next() {
		var f Firing
		var due, at int64
		if err := rows.Scan(&due, &at, &f.Missed, &f.State, &f.Run, &f.Reason); err != nil {
			return nil, fmt.Errorf("list times of a schedule: %w", err)
		}
		f.Due, f.At = timeOf(due), timeOf(at)
		all = append(all, f)
	}
	return all, rows.Err()
}
