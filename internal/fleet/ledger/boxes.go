package ledger

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"eidetic/internal/fleet"
)

// Box is a box of the fleet.
type Box struct {
	ID          string
	Name        string
	Fingerprint string // SHA-256 of its certificate
	Joined      time.Time
	Seen        time.Time
	// Offer is what the box says of itself, with the labels that the head's people gave it in place of its own.
	Offer   fleet.Offer
	Labels  map[string]string // that the head's people gave it
	Health  string            // one of fleet.Health…
	Reason  string            // for its health
	Removed bool
}

// Bounds on codes and texts about boxes.
const (
	mostCodes       = 1000
	longestValid    = 30 * 24 * time.Hour
	maxReason       = 1000
	maxFingerprint  = 200
	seenEvery       = 15 * time.Second // a box's contact is written down so often
	keptAfterExpiry = 24 * time.Hour
)

// NewCode makes a code with which one box can join. Only its SHA-256 is kept.
func (l *Ledger) NewCode(ctx context.Context, by string, valid time.Duration) (code string, err error) {
	if valid <= 0 || valid > longestValid {
		return "", fmt.Errorf("%w: a code is valid for more than nothing and at most %v, not %v", errInvalid, longestValid, valid)
	}
	code = rand.Text() // 130 bits
	return code, l.update(ctx, "make a code", func(tx *tx) error {
		if _, err := tx.exec(ctx, `DELETE FROM fleet_codes WHERE until < ?`, at(tx.now.Add(-keptAfterExpiry))); err != nil {
			return err
		}
		var n int
		if err := tx.row(ctx, `SELECT count(*) FROM fleet_codes`).Scan(&n); err != nil {
			return err
		}
		if n >= mostCodes {
			return fmt.Errorf("%w: there are %d codes already, which is the most: wait until some are too old", errInvalid, n)
		}
		_, err := tx.exec(ctx, `INSERT INTO fleet_codes (hash, maker, made, until) VALUES (?, ?, ?, ?)`,
			hashOf(code), by, at(tx.now), at(tx.now.Add(valid)))
		return err
	})
}

// Join makes a box of the fleet of who has a code. It returns ErrCode or ErrNameTaken. The same code with the same name
// and fingerprint is answered alike, because the first answer may have been lost. A box that joins again with another
// code keeps its identifier.
func (l *Ledger) Join(ctx context.Context, code, name, fingerprint string, o fleet.Offer) (Box, error) {
	if err := errors.Join(fleet.CheckBoxName(name), o.Check()); err != nil {
		return Box{}, fmt.Errorf("%w: %w", errInvalid, err)
	}
	if fingerprint == "" || len(fingerprint) > maxFingerprint {
		return Box{}, fmt.Errorf("%w: the certificate's fingerprint is missing or too long", errInvalid)
	}
	var b Box
	err := l.update(ctx, "join", func(tx *tx) error {
		var until int64
		var used string
		err := tx.lock(ctx, `SELECT until, box FROM fleet_codes WHERE hash = ?`, hashOf(code)).Scan(&until, &used)
		if err != nil {
			return found(err, ErrCode)
		}
		if used != "" {
			b, err = tx.box(ctx, `id = ? AND removed = 0`, used)
			if err != nil || b.Name != name || b.Fingerprint != fingerprint {
				return ErrCode
			}
			return nil
		}
		if until < at(tx.now) {
			return ErrCode
		}
		if b, err = tx.admit(ctx, name, fingerprint, o); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `UPDATE fleet_codes SET box = ? WHERE hash = ?`, b.ID, hashOf(code))
		return err
	})
	return b, err
}

// admit makes a box, or renames the one that has the certificate.
func (tx *tx) admit(ctx context.Context, name, fingerprint string, o fleet.Offer) (Box, error) {
	known, err := tx.box(ctx, `fingerprint = ? AND removed = 0`, fingerprint)
	if err != nil && !errors.Is(err, ErrUnknownBox) {
		return Box{}, err
	}
	var taken int
	if err := tx.row(ctx, `SELECT count(*) FROM fleet_boxes WHERE name = ? AND removed = 0 AND fingerprint <> ?`, name, fingerprint).Scan(&taken); err != nil {
		return Box{}, err
	}
	if taken > 0 {
		return Box{}, ErrNameTaken
	}
	if known.ID == "" {
		known = Box{ID: "box-" + rand.Text()[:16]}
		_, err = tx.exec(ctx, `INSERT INTO fleet_boxes (id, name, fingerprint, joined, seen, offer, health) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			known.ID, name, fingerprint, at(tx.now), at(tx.now), text(o), fleet.HealthUnknown)
	} else {
		_, err = tx.exec(ctx, `UPDATE fleet_boxes SET name = ?, offer = ?, seen = ? WHERE id = ?`, name, text(o), at(tx.now), known.ID)
	}
	if err != nil {
		return Box{}, err
	}
	return tx.box(ctx, `id = ?`, known.ID)
}

const boxColumns = `SELECT id, name, fingerprint, joined, seen, offer, labels, health, reason, removed FROM fleet_boxes`

// box reads one box, or returns ErrUnknownBox.
func (q querier) box(ctx context.Context, where string, args ...any) (Box, error) {
	b, err := scanBox(q.row(ctx, boxColumns+` WHERE `+where, args...).Scan)
	return b, found(err, ErrUnknownBox)
}

// holdBox reads a box that is not removed, and keeps it from others until the transaction ends: what one box asks is
// done one after the other.
func (tx *tx) holdBox(ctx context.Context, id string) (Box, error) {
	b, err := scanBox(tx.lock(ctx, boxColumns+` WHERE id = ? AND removed = 0`, id).Scan)
	if err != nil {
		return b, found(err, ErrUnknownBox)
	}
	if tx.now.Sub(b.Seen) < seenEvery {
		return b, nil
	}
	_, err = tx.exec(ctx, `UPDATE fleet_boxes SET seen = ? WHERE id = ?`, at(tx.now), id)
	return b, err
}

func scanBox(scan func(...any) error) (Box, error) {
	var b Box
	var joined, seen, removed int64
	var offer, labels string
	if err := scan(&b.ID, &b.Name, &b.Fingerprint, &joined, &seen, &offer, &labels, &b.Health, &b.Reason, &removed); err != nil {
		return b, err
	}
	b.Joined, b.Seen, b.Removed = from(joined), from(seen), removed != 0
	if err := errors.Join(json.Unmarshal([]byte(offer), &b.Offer), json.Unmarshal([]byte(labels), &b.Labels)); err != nil {
		return b, fmt.Errorf("box %s: %w", b.Name, err)
	}
	if len(b.Labels) > 0 && b.Offer.Labels == nil {
		b.Offer.Labels = map[string]string{}
	}
	maps.Copy(b.Offer.Labels, b.Labels)
	return b, nil
}

// BoxOf returns the box with a certificate, or ErrUnknownBox.
func (l *Ledger) BoxOf(ctx context.Context, fingerprint string) (Box, error) {
	b, err := l.reader().box(ctx, `fingerprint = ? AND removed = 0`, fingerprint)
	return b, named("find a box", err)
}

// Box returns the box with a name, or ErrUnknownBox.
func (l *Ledger) Box(ctx context.Context, name string) (Box, error) {
	b, err := l.reader().box(ctx, `name = ? AND removed = 0`, name)
	return b, named("find a box", err)
}

// Boxes lists the boxes that are not removed, by name.
func (l *Ledger) Boxes(ctx context.Context) ([]Box, error) {
	all, err := l.reader().boxes(ctx)
	return all, named("list boxes", err)
}

func (q querier) boxes(ctx context.Context) (all []Box, err error) {
	err = q.each(ctx, func(scan func(...any) error) error {
		b, err := scanBox(scan)
		all = append(all, b)
		return err
	}, boxColumns+` WHERE removed = 0 ORDER BY name`)
	return all, err
}

// Describe keeps what a box says of itself.
func (l *Ledger) Describe(ctx context.Context, boxID string, o fleet.Offer) error {
	if err := o.Check(); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	return l.changeBox(ctx, boxID, `offer = ?, seen = ?`, text(o), at(l.now()))
}

// SetHealth says how far the numbers of a box can be trusted, and why.
func (l *Ledger) SetHealth(ctx context.Context, boxID, health, reason string) error {
	if err := checkHealth(health, reason); err != nil {
		return err
	}
	return l.changeBox(ctx, boxID, `health = ?, reason = ?`, health, reason)
}

func checkHealth(health, reason string) error {
	switch health {
	case fleet.HealthUnknown, fleet.HealthGood, fleet.HealthDrifting, fleet.HealthBad, fleet.HealthMaintenance:
	default:
		return fmt.Errorf("%w: %.40q is no health of a box", errInvalid, health)
	}
	if len(reason) > maxReason {
		return fmt.Errorf("%w: the reason has more than %d bytes", errInvalid, maxReason)
	}
	return nil
}

// SetLabels replaces the labels that the head's people gave a box. They win over the box's own.
func (l *Ledger) SetLabels(ctx context.Context, boxID string, labels map[string]string) error {
	if err := (fleet.Offer{Labels: labels}).Check(); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	if labels == nil {
		labels = map[string]string{}
	}
	return l.changeBox(ctx, boxID, `labels = ?`, text(labels))
}

func (l *Ledger) changeBox(ctx context.Context, boxID, set string, args ...any) error {
	return l.update(ctx, "change a box", func(tx *tx) error {
		rows, err := tx.exec(ctx, `UPDATE fleet_boxes SET `+set+` WHERE id = ? AND removed = 0`, append(args, boxID)...)
		if err == nil && rows == 0 {
			return ErrUnknownBox
		}
		return err
	})
}

// RemoveBox takes a box out of the fleet: its certificate is a stranger's from now on, and what it was carrying out
// goes back into the queue.
func (l *Ledger) RemoveBox(ctx context.Context, boxID string) error {
	var leased []lapse
	err := l.update(ctx, "remove a box", func(tx *tx) (err error) {
		if _, err := tx.holdBox(ctx, boxID); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `UPDATE fleet_boxes SET removed = ? WHERE id = ?`, at(tx.now), boxID); err != nil {
			return err
		}
		// The sweep gives back what a crash here leaves leased.
		if _, err := tx.exec(ctx, `UPDATE fleet_attempts SET until = 0 WHERE box = ? AND state = 'live'`, boxID); err != nil {
			return err
		}
		leased, err = tx.expired(ctx, at(tx.now), boxID)
		return err
	})
	if err != nil {
		return err
	}
	return l.giveBackAll(ctx, leased, "the box was removed from the fleet")
}
