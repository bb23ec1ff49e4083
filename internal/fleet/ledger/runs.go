package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// stateAssembling is the state of a run whose parts have all ended; the others are those of package store.
const stateAssembling = "assembling"

// Bounds of the queue.
const (
	MaxWaiting  = 50_000 // runs
	maxParts    = 100    // of a run
	keysKept    = 24 * time.Hour
	costliest   = 100_000 // trials of a part, as far as fairness counts them
	maxSeries   = 300
	maxPlanText = 8 << 20
)

// NewRun is a run to be carried out.
type NewRun struct {
	ID     string
	Plan   lab.Plan
	Series string // runs of a series take turns with those of others
	// Priority is 1 for what comes first to 3; 0 is 2.
	Priority int
	Once     store.Once
	// Reference is what a reference run measures, as BOX/DEVICE, or "". Reference runs come before all others.
	Reference string
	Parts     []NewPart
}

// NewPart is what one box is to carry out of a run.
type NewPart struct {
	Plan     lab.Plan
	Need     fleet.Need
	Archives []fleet.ArchiveFile
}

// Run is a run of the fleet.
type Run struct {
	ID        string
	Plan      lab.Plan
	Series    string
	Priority  int
	Reference string
	State     string // queued, running, assembling, done, failed or interrupted
	Error     string
	Created   time.Time
	Started   time.Time // when its first part was claimed
	Ended     time.Time // when it was assembled
	Cancel    bool
	Parts     []Part // in their order; empty in lists
}

// Part is what one box carries out of a run.
type Part struct {
	ID       string
	Run      string
	Index    int
	Plan     lab.Plan
	Need     fleet.Need
	Archives []fleet.ArchiveFile
	State    string // queued, running, done, failed or interrupted
	Attempt  int
	// BoxID, Box (its name) and Device are of the newest attempt, and once the part has ended of the one it ended with.
	BoxID, Box, Device string
	Progress           fleet.Progress
	Outcome            *fleet.Outcome // nil until the part has ended
	Attempts           []Attempt      // that were given back, in their order
}

// Attempt is a lease that was given back.
type Attempt struct {
	Attempt            int
	BoxID, Box, Device string
	Claimed, Ended     time.Time
	Why                string
	Files              []fleet.File // that were handed in
}

// fullError is store.ErrFull in words that are true of a fleet.
type fullError struct{}

func (fullError) Error() string {
	return fmt.Sprintf("%d runs wait already, which is the most: cancel some of them, or ask again when one has ended", MaxWaiting)
}

func (fullError) Is(target error) bool { return target == store.ErrFull }

// rank is 1 for reference runs and 2 to 4 for the others.
func (r NewRun) rank() int {
	if r.Reference != "" {
		return 1
	}
	return cmp.Or(r.Priority, 2) + 1
}

func (r NewRun) check() error {
	switch {
	case len(r.Parts) == 0 || len(r.Parts) > maxParts:
		return fmt.Errorf("%w: a run has 1 to %d parts, not %d", errInvalid, maxParts, len(r.Parts))
	case !store.ValidID(r.ID) || len(r.Parts) > 1 && !store.ValidID(partID(r.ID, len(r.Parts)-1, len(r.Parts))):
		return fmt.Errorf("%w: %.140q is no name of a run", errInvalid, r.ID)
	case r.Priority < 0 || r.Priority > 3:
		return fmt.Errorf("%w: priority %d is not 1 to 3", errInvalid, r.Priority)
	case len(r.Series) > maxSeries:
		return fmt.Errorf("%w: the name of the series has more than %d bytes", errInvalid, maxSeries)
	}
	return nil
}

func partID(run string, n, of int) string {
	if of == 1 {
		return run
	}
	return fmt.Sprintf("%s.%02d", run, n+1)
}

// AddRuns puts one or more runs into the queue, all or none. Its errors are store.ErrExists, store.ErrFull and
// store.ErrKeyUsed. If the key of the first run is known, none is added again: AddRuns returns the identifier that the
// first had then.
func (l *Ledger) AddRuns(ctx context.Context, all ...NewRun) (id string, err error) {
	for _, r := range all {
		if err := r.check(); err != nil {
			return "", err
		}
	}
	err = l.update(ctx, "add runs", func(tx *tx) error {
		// Runs are added one after the other: their places in the queue depend on each other.
		var n int64
		if err := tx.lock(ctx, `SELECT n FROM fleet_state WHERE name = 'adding'`).Scan(&n); err != nil {
			return err
		}
		if once := all[0].Once; once.Key != "" {
			if id, err = tx.known(ctx, once); !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		if err := l.room(ctx, tx, n, len(all)); err != nil {
			return err
		}
		for _, r := range all {
			if err := tx.addRun(ctx, r, &n); err != nil {
				return err
			}
		}
		id = all[0].ID
		_, err := tx.exec(ctx, `UPDATE fleet_state SET n = ? WHERE name = 'adding'`, n)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// addRun adds a run. n counts the parts that were ever added.
func (tx *tx) addRun(ctx context.Context, r NewRun, n *int64) error {
	if r.Once.Key != "" {
		if _, err := tx.exec(ctx, `INSERT INTO fleet_keys (key, request, run, made) VALUES (?, ?, ?, ?)`,
			r.Once.Key, r.Once.Request, r.ID, at(tx.now)); err != nil {
			return err
		}
	}
	r.Plan.Files = nil // its parts have them; runs are listed by the thousand
	plan := text(r.Plan)
	if len(plan) > maxPlanText {
		return fmt.Errorf("%w: the plan has more than %d bytes", errInvalid, maxPlanText)
	}
	rows, err := tx.exec(ctx, `INSERT INTO fleet_runs (id, plan, series, priority, reference, state, created, open)
		VALUES (?, ?, ?, ?, ?, 'queued', ?, ?) ON CONFLICT (id) DO NOTHING`,
		r.ID, plan, r.Series, r.rank(), r.Reference, at(tx.now), len(r.Parts))
	if err != nil {
		return err
	}
	if rows == 0 {
		return store.ErrExists
	}
	for i, p := range r.Parts {
		*n++
		if err := tx.addPart(ctx, r, i, p, *n); err != nil {
			return err
		}
	}
	return nil
}

func (tx *tx) known(ctx context.Context, o store.Once) (id string, err error) {
	var request string
	err = tx.row(ctx, `SELECT run, request FROM fleet_keys WHERE key = ? AND made >= ?`, o.Key, at(tx.now.Add(-keysKept))).Scan(&id, &request)
	if err == nil && request != o.Request {
		return "", store.ErrKeyUsed
	}
	if err = found(err, store.ErrNotFound); errors.Is(err, store.ErrNotFound) {
		if _, err := tx.exec(ctx, `DELETE FROM fleet_keys WHERE made < ?`, at(tx.now.Add(-keysKept))); err != nil {
			return "", err
		}
	}
	return id, err
}

// room returns an error if too many runs would wait. n counts the parts that were ever added.
func (l *Ledger) room(ctx context.Context, tx *tx, n int64, more int) error {
	l.counted.mu.Lock()
	defer l.counted.mu.Unlock()
	// What waited then and what any head has added since are at least what waits: a long queue is seldom counted.
	if l.counted.n > 0 && l.counted.waiting+n-l.counted.n+int64(more) <= MaxWaiting {
		return nil
	}
	var waiting int64
	if err := tx.row(ctx, `SELECT count(*) FROM fleet_runs WHERE state = 'queued'`).Scan(&waiting); err != nil {
		return err
	}
	l.counted.n, l.counted.waiting = n, waiting
	if waiting+int64(more) > MaxWaiting {
		return fullError{}
	}
	return nil
}

// addPart adds part i of a run, the nth of all.
func (tx *tx) addPart(ctx context.Context, r NewRun, i int, p NewPart, n int64) error {
	queue, need := p.Need.Key(), text(p.Need)
	if err := tx.openQueue(ctx, queue, need, `[]`); err != nil {
		return err
	}
	tag, err := tx.tag(ctx, r.Series, queue, r.rank(), min(max(p.Plan.Total(), 1), costliest))
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, `INSERT INTO fleet_parts (id, run, idx, plan, archives, need, queue, state, priority, tag, n)
		VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?)`,
		partID(r.ID, i, len(r.Parts)), r.ID, i, text(p.Plan), text(p.Archives), need, queue, r.rank(), tag, n)
	return err
}

// openQueue says that parts wait in a queue, and keeps the sweep from closing it before the transaction ends.
func (tx *tx) openQueue(ctx context.Context, queue, need, bars string) error {
	_, err := tx.exec(ctx, `INSERT INTO fleet_needs (queue, need, bars) VALUES (?, ?, ?)
		ON CONFLICT (queue) DO UPDATE SET need = excluded.need`, queue, need, bars)
	return err
}

const runColumns = `SELECT id, plan, series, priority, reference, state, error, created, started, ended, cancel, ends FROM fleet_runs`

func scanRun(scan func(...any) error) (r Run, ends int64, err error) {
	var plan string
	var created, started, ended, cancel int64
	err = scan(&r.ID, &plan, &r.Series, &r.Priority, &r.Reference, &r.State, &r.Error, &created, &started, &ended, &cancel, &ends)
	if err != nil {
		return r, 0, err
	}
	r.Created, r.Started, r.Ended, r.Cancel = from(created), from(started), from(ended), cancel != 0
	if r.Priority--; r.Reference != "" {
		r.Priority = 0
	}
	if err := json.Unmarshal([]byte(plan), &r.Plan); err != nil {
		return r, 0, fmt.Errorf("the plan of run %s: %w", r.ID, err)
	}
	return r, ends, nil
}

// Run returns a run with its parts, or store.ErrNotFound.
func (l *Ledger) Run(ctx context.Context, id string) (Run, error) {
	r, err := l.reader().run(ctx, id)
	return r, named("read a run", err)
}

func (q querier) run(ctx context.Context, id string) (Run, error) {
	r, _, err := scanRun(q.row(ctx, runColumns+` WHERE id = ?`, id).Scan)
	if err != nil {
		return r, found(err, store.ErrNotFound)
	}
	r.Parts, err = q.parts(ctx, `p.run = ?`, id)
	return r, err
}

// Filter chooses runs of a list.
type Filter struct {
	States []string // any of these; without, all
	Before string   // only runs that are older than the run of this name
	// Reference lists only runs that measure a box.
	Reference bool
	Limit     int // 0 is 100
}

// Runs lists runs, the newest first, without their parts.
func (l *Ledger) Runs(ctx context.Context, f Filter) (all []Run, err error) {
	where, args := "1 = 1", []any{}
	if len(f.States) > 0 {
		where, args = anyOf(f.States)
		where = "state IN " + where
	}
	if f.Reference {
		where += " AND reference <> ''"
	}
	if f.Before != "" {
		var created int64
		if err := l.reader().row(ctx, `SELECT created FROM fleet_runs WHERE id = ?`, f.Before).Scan(&created); err != nil {
			return nil, named("list runs", found(err, store.ErrNotFound))
		}
		where += " AND (created < ? OR created = ? AND id < ?)"
		args = append(args, created, created, f.Before)
	}
	args = append(args, cmp.Or(f.Limit, 100))
	err = l.reader().each(ctx, func(scan func(...any) error) error {
		r, _, err := scanRun(scan)
		all = append(all, r)
		return err
	}, runColumns+` WHERE `+where+` ORDER BY created DESC, id DESC LIMIT ?`, args...)
	return all, named("list runs", err)
}

// mostEnds bounds what EndedSince returns at once.
const mostEnds = 200

// EndedSince returns runs that have ended after a place in the order of all ends, in this order, and the place of the
// last. It returns at most some hundred at once: call it until it returns none.
func (l *Ledger) EndedSince(ctx context.Context, seq int64) (all []Run, last int64, err error) {
	last = seq
	err = l.reader().each(ctx, func(scan func(...any) error) error {
		r, ends, err := scanRun(scan)
		all, last = append(all, r), ends
		return err
	}, runColumns+` WHERE ends > ? AND ends > 0 ORDER BY ends LIMIT ?`, seq, mostEnds)
	if err != nil {
		return nil, seq, named("list ended runs", err)
	}
	return all, last, nil
}

// CancelRun ends parts that wait as interrupted, and tells the boxes that carry out the others when they renew. It
// returns store.ErrNotFound for an unknown run; a run that has ended stays as it is.
func (l *Ledger) CancelRun(ctx context.Context, id string) error {
	return l.update(ctx, "cancel a run", func(tx *tx) error {
		held, err := tx.holdParts(ctx, id)
		if err != nil {
			return err
		}
		rows, err := tx.exec(ctx, `UPDATE fleet_runs SET cancel = 1 WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if rows == 0 {
			return store.ErrNotFound
		}
		for _, p := range held {
			if p.state == store.StateQueued {
				if err := tx.endWith(ctx, p, store.StateInterrupted, "the run was cancelled"); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Thin forgets the files of an ended run that keep is false for, and the recordings that it replayed, so that nothing
// refers to their content any more.
func (l *Ledger) Thin(ctx context.Context, id string, keep func(path string) bool) error {
	return l.update(ctx, "thin a run", func(tx *tx) error {
		var ended int64
		if err := tx.lock(ctx, `SELECT ended FROM fleet_runs WHERE id = ?`, id).Scan(&ended); err != nil {
			return found(err, store.ErrNotFound)
		}
		if ended == 0 {
			return store.ErrHeld
		}
		type attempt struct {
			part string
			n    int
		}
		kept := map[attempt]string{} // lists of files
		if err := tx.each(ctx, func(scan func(...any) error) error {
			var a attempt
			var list string
			if err := scan(&a.part, &a.n, &list); err != nil {
				return err
			}
			list, err := thinned(list, keep)
			kept[a] = list
			return err
		}, `SELECT part, attempt, files FROM fleet_attempts WHERE part IN (SELECT id FROM fleet_parts WHERE run = ?)`, id); err != nil {
			return err
		}
		for a, list := range kept {
			if _, err := tx.exec(ctx, `UPDATE fleet_attempts SET files = ? WHERE part = ? AND attempt = ?`, list, a.part, a.n); err != nil {
				return err
			}
		}
		var list string
		if err := tx.row(ctx, `SELECT files FROM fleet_runs WHERE id = ?`, id).Scan(&list); err != nil {
			return err
		}
		list, err := thinned(list, keep)
		if err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `UPDATE fleet_runs SET files = ? WHERE id = ?`, list, id); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `DELETE FROM fleet_wants WHERE part IN (SELECT id FROM fleet_parts WHERE run = ?)`, id); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `UPDATE fleet_parts SET archives = '[]' WHERE run = ?`, id)
		return err
	})
}

// thinned is a list of files, as JSON, without those that keep is false for.
func thinned(list string, keep func(path string) bool) (string, error) {
	var files []fleet.File
	if err := json.Unmarshal([]byte(list), &files); err != nil {
		return "", fmt.Errorf("files of a run: %w", err)
	}
	return text(orEmpty(slices.DeleteFunc(files, func(f fleet.File) bool { return !keep(f.Path) }))), nil
}

// RemoveRun removes a run that has ended; of another one it returns store.ErrHeld.
func (l *Ledger) RemoveRun(ctx context.Context, id string) error {
	return l.update(ctx, "remove a run", func(tx *tx) error {
		var ended int64
		if err := tx.lock(ctx, `SELECT ended FROM fleet_runs WHERE id = ?`, id).Scan(&ended); err != nil {
			return found(err, store.ErrNotFound)
		}
		if ended == 0 {
			return store.ErrHeld
		}
		for _, statement := range []string{
			`DELETE FROM fleet_wants WHERE part IN (SELECT id FROM fleet_parts WHERE run = ?)`,
			`DELETE FROM fleet_attempts WHERE part IN (SELECT id FROM fleet_parts WHERE run = ?)`,
			`DELETE FROM fleet_parts WHERE run = ?`,
			`DELETE FROM fleet_runs WHERE id = ?`,
		} {
			if _, err := tx.exec(ctx, statement, id); err != nil {
				return err
			}
		}
		return nil
	})
}
