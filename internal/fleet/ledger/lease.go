package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// Lease is the right of a box to carry out a part.
type Lease struct{ BoxID, Part, Token string }

// The states of an attempt.
const (
	attemptLive     = "live"
	attemptVanished = "vanished" // its lease ran out; the box may take the part back while nobody else has it
	attemptReturned = "returned" // the box could not carry it out
	attemptEnded    = "ended"    // it ended the part
	attemptKept     = "kept"     // it vanished, and the part ended with what it had handed in
)

// Bounds of what boxes may do with a part.
const (
	mostAttempts = 3   // that vanish
	mostSame     = 3   // that one device gives back for the same reason
	mostClaims   = 100 // in all
	maxDoing     = 300
)

// held is a part that nobody else changes before the transaction ends.
type held struct {
	id, run, queue, need, bars, state string
	attempt                           int
	cancel                            bool
}

// attempt is a lease, past or present.
type attempt struct {
	attempt     int
	box, device string
	state       string
}

const heldColumns = `SELECT p.id, p.run, p.queue, p.need, p.bars, p.state, p.attempt, r.cancel FROM fleet_parts p JOIN fleet_runs r ON r.id = p.run`

func scanHeld(scan func(...any) error) (p held, err error) {
	var cancel int64
	err = scan(&p.id, &p.run, &p.queue, &p.need, &p.bars, &p.state, &p.attempt, &cancel)
	p.cancel = cancel != 0
	return p, err
}

// hold keeps a part from others. All transactions lock a box first, then parts in their order, then runs.
func (tx *tx) hold(ctx context.Context, part string) (held, error) {
	if err := tx.lock(ctx, `SELECT id FROM fleet_parts WHERE id = ?`, part).Scan(&part); err != nil {
		return held{}, found(err, store.ErrNotFound)
	}
	return scanHeld(tx.row(ctx, heldColumns+` WHERE p.id = ?`, part).Scan) // as it is behind the lock
}

// holdParts holds all parts of a run.
func (tx *tx) holdParts(ctx context.Context, run string) (all []held, err error) {
	if err := tx.each(ctx, func(func(...any) error) error { return nil },
		`SELECT id FROM fleet_parts WHERE run = ? ORDER BY n`+tx.forUpdate(), run); err != nil {
		return nil, err
	}
	err = tx.each(ctx, func(scan func(...any) error) error {
		p, err := scanHeld(scan)
		all = append(all, p)
		return err
	}, heldColumns+` WHERE p.run = ? ORDER BY p.idx`, run)
	return all, err
}

func (tx *tx) attempt(ctx context.Context, where string, args ...any) (a attempt, nonce string, err error) {
	err = tx.row(ctx, `SELECT attempt, box, device, state, nonce FROM fleet_attempts WHERE `+where, args...).
		Scan(&a.attempt, &a.box, &a.device, &a.state, &nonce)
	return a, nonce, found(err, ErrLost)
}

// leased holds the part of a lease. It returns ErrUnknownBox, store.ErrNotFound for an unknown part, and ErrLost for
// a token that never was one of this box and part.
func (tx *tx) leased(ctx context.Context, lease Lease) (held, attempt, error) {
	if _, err := tx.holdBox(ctx, lease.BoxID); err != nil {
		return held{}, attempt{}, err
	}
	p, err := tx.hold(ctx, lease.Part)
	if err != nil {
		return held{}, attempt{}, err
	}
	a, _, err := tx.attempt(ctx, `part = ? AND box = ? AND token = ?`, lease.Part, lease.BoxID, hashOf(lease.Token))
	return p, a, err
}

// newest says whether an attempt has the right to its part: it is the last one, and neither has ended.
func (a attempt) newest(p held) bool {
	return a.attempt == p.attempt && (a.state == attemptLive || a.state == attemptVanished) &&
		(p.state == store.StateRunning || p.state == store.StateQueued)
}

// keep makes a lease last from now, and takes the part back if the lease had run out and nobody has claimed it since.
func (l *Ledger) keep(ctx context.Context, tx *tx, p held, a attempt) error {
	if !a.newest(p) {
		return ErrLost
	}
	if a.state == attemptVanished {
		var busy int
		if err := tx.row(ctx, `SELECT count(*) FROM fleet_attempts WHERE box = ? AND device = ? AND state = 'live'`, a.box, a.device).Scan(&busy); err != nil {
			return err
		}
		if busy > 0 {
			return ErrLost // the box has begun something else on the device
		}
		if _, err := tx.exec(ctx, `UPDATE fleet_parts SET state = 'running' WHERE id = ?`, p.id); err != nil {
			return err
		}
	}
	_, err := tx.exec(ctx, `UPDATE fleet_attempts SET state = 'live', ended = 0, why = '', until = ? WHERE part = ? AND attempt = ?`,
		at(tx.now.Add(l.lease)), p.id, a.attempt)
	return err
}

// Renew makes a lease last from now, and keeps how far the box is. It returns ErrLost if the token is not the newest of
// the part or the part has ended.
func (l *Ledger) Renew(ctx context.Context, lease Lease, done fleet.Progress) (fleet.Renewal, error) {
	if len(done.Doing) > maxDoing {
		return fleet.Renewal{}, fmt.Errorf("%w: what the box is doing has more than %d bytes", errInvalid, maxDoing)
	}
	var r fleet.Renewal
	err := l.update(ctx, "renew a lease", func(tx *tx) error {
		p, a, err := tx.leased(ctx, lease)
		if err != nil {
			return err
		}
		if err := l.keep(ctx, tx, p, a); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `UPDATE fleet_attempts SET progress = ? WHERE part = ? AND attempt = ?`, text(done), p.id, a.attempt); err != nil {
			return err
		}
		wanted, err := tx.wanted(ctx, lease.BoxID)
		r = fleet.Renewal{LeaseFor: l.lease, Cancel: p.cancel, Wanted: wanted}
		return err
	})
	return r, err
}

// Hold keeps the list of files of whole trials that a box has handed in before the end.
func (l *Ledger) Hold(ctx context.Context, lease Lease, files []fleet.File) error {
	if err := fleet.CheckFiles(files); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	return l.update(ctx, "hold files", func(tx *tx) error {
		p, a, err := tx.leased(ctx, lease)
		if err != nil {
			return err
		}
		if err := l.keep(ctx, tx, p, a); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `UPDATE fleet_attempts SET files = ? WHERE part = ? AND attempt = ?`, text(orEmpty(files)), p.id, a.attempt)
		return err
	})
}

func orEmpty(files []fleet.File) []fleet.File {
	if files == nil {
		return []fleet.File{}
	}
	return files
}

// Return gives a part back that the box cannot carry out. It is not given to the same device of the box again unless
// nobody else could carry it out.
func (l *Ledger) Return(ctx context.Context, lease Lease, reason string) error {
	if len(reason) > maxReason {
		return fmt.Errorf("%w: the reason has more than %d bytes", errInvalid, maxReason)
	}
	return l.update(ctx, "return a part", func(tx *tx) error {
		p, a, err := tx.leased(ctx, lease)
		if err != nil {
			return err
		}
		if !a.newest(p) {
			return ErrLost
		}
		if p, err = tx.barred(ctx, p, bar{a.box, a.device}); err != nil {
			return err
		}
		return tx.giveBack(ctx, p, a, attemptReturned, reason)
	})
}

// barred moves a part into the queue of those that were given back by the same devices.
func (tx *tx) barred(ctx context.Context, p held, b bar) (held, error) {
	var bars []bar
	var need fleet.Need
	if err := errors.Join(json.Unmarshal([]byte(p.bars), &bars), json.Unmarshal([]byte(p.need), &need)); err != nil {
		return p, fmt.Errorf("part %s: %w", p.id, err)
	}
	bars = append(bars, b)
	slices.SortFunc(bars, func(a, b bar) int { return strings.Compare(a.Box+"/"+a.Device, b.Box+"/"+b.Device) })
	p.bars = text(slices.Compact(bars))
	digest := sha256.Sum256([]byte(p.bars))
	p.queue = need.Key() + "-not-" + hex.EncodeToString(digest[:10])
	_, err := tx.exec(ctx, `UPDATE fleet_parts SET bars = ?, queue = ? WHERE id = ?`, p.bars, p.queue, p.id)
	return p, err
}
