package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// giveBack ends an attempt, and puts the part back at its place in the queue, or ends it if it was tried often enough.
func (tx *tx) giveBack(ctx context.Context, p held, a attempt, state, why string) error {
	if _, err := tx.exec(ctx, `UPDATE fleet_attempts SET state = ?, why = ?, ended = ? WHERE part = ? AND attempt = ?`,
		state, why, at(tx.now), p.id, a.attempt); err != nil {
		return err
	}
	var gone int
	if err := tx.row(ctx, `SELECT count(*) FROM fleet_attempts WHERE part = ? AND state = 'vanished'`, p.id).Scan(&gone); err != nil {
		return err
	}
	var same int
	if err := tx.row(ctx, `SELECT count(*) FROM fleet_attempts WHERE part = ? AND state = 'returned' AND box = ? AND device = ? AND why = ?`,
		p.id, a.box, a.device, why).Scan(&same); err != nil {
		return err
	}
	switch {
	case p.cancel:
		return tx.endWith(ctx, p, store.StateInterrupted, "the run was cancelled")
	case same >= mostSame: // every device that fits has tried it before one gets it again
		return tx.endWith(ctx, p, store.StateFailed, why)
	case gone >= mostAttempts:
		return tx.endWith(ctx, p, store.StateInterrupted, fmt.Sprintf("%d boxes vanished while they carried it out", gone))
	case p.attempt >= mostClaims:
		return tx.endWith(ctx, p, store.StateInterrupted, fmt.Sprintf("it was given back %d times, the last time because: %s", p.attempt, why))
	}
	if err := tx.openQueue(ctx, p.queue, p.need, p.bars); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `UPDATE fleet_parts SET state = 'queued' WHERE id = ?`, p.id)
	return err
}

// endWith ends a part that no box ends, with what the best of its attempts handed in.
func (tx *tx) endWith(ctx context.Context, p held, state, why string) error {
	best, o := 0, fleet.Outcome{State: state, Error: why, Files: []fleet.File{}}
	if err := tx.each(ctx, func(scan func(...any) error) error {
		var n int
		var list string
		var files []fleet.File
		if err := scan(&n, &list); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(list), &files); err != nil {
			return fmt.Errorf("files of part %s: %w", p.id, err)
		}
		if len(files) > len(o.Files) {
			best, o.Files = n, files
		}
		return nil
	}, `SELECT attempt, files FROM fleet_attempts WHERE part = ?`, p.id); err != nil {
		return err
	}
	for _, f := range o.Files {
		if strings.HasSuffix(f.Path, "/trial.json") {
			o.Trials++
		}
	}
	if best > 0 {
		if _, err := tx.exec(ctx, `UPDATE fleet_attempts SET state = ? WHERE part = ? AND attempt = ?`, attemptKept, p.id, best); err != nil {
			return err
		}
	}
	return tx.end(ctx, p, o)
}

// End ends a part. The same end again is no error; it returns ErrLost if the token is not the newest or another attempt
// ended the part.
func (l *Ledger) End(ctx context.Context, lease Lease, o fleet.Outcome) error {
	if err := fleet.CheckFiles(o.Files); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	if o.State != store.StateDone && o.State != store.StateFailed && o.State != store.StateInterrupted {
		return fmt.Errorf("%w: %.40q is no end of a part: use done, failed or interrupted", errInvalid, o.State)
	}
	o.Files = orEmpty(o.Files)
	return l.update(ctx, "end a part", func(tx *tx) error {
		p, a, err := tx.leased(ctx, lease)
		switch {
		case err != nil:
			return err
		case a.state == attemptEnded:
			return nil
		case !a.newest(p):
			return ErrLost
		}
		if _, err := tx.exec(ctx, `UPDATE fleet_attempts SET state = ?, why = '', ended = ?, files = ? WHERE part = ? AND attempt = ?`,
			attemptEnded, at(tx.now), text(o.Files), p.id, a.attempt); err != nil {
			return err
		}
		return tx.end(ctx, p, o)
	})
}

// end writes the outcome of a part; after the last one the run waits for its assembly.
func (tx *tx) end(ctx context.Context, p held, o fleet.Outcome) error {
	// The files are kept with the attempt.
	kept := o
	kept.Files = nil
	if _, err := tx.exec(ctx, `UPDATE fleet_parts SET state = ?, outcome = ?, ended = ? WHERE id = ?`, o.State, text(kept), at(tx.now), p.id); err != nil {
		return err
	}
	var open int
	if err := tx.row(ctx, `UPDATE fleet_runs SET open = open - 1, state = CASE open WHEN 1 THEN 'assembling' ELSE state END
		WHERE id = ? RETURNING open`, p.run).Scan(&open); err != nil {
		return err
	}
	tx.allEnded = tx.allEnded || open == 0
	return nil
}
