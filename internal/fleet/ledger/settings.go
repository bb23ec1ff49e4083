package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// maxSetting bounds a setting.
const maxSetting = 8 << 20

// Setting returns what people decided for the whole fleet, as JSON, or store.ErrNotFound.
func (l *Ledger) Setting(ctx context.Context, name string) (json.RawMessage, error) {
	var value string
	err := l.reader().row(ctx, `SELECT value FROM fleet_settings WHERE name = ?`, name).Scan(&value)
	if err != nil {
		return nil, named("read a setting", found(err, store.ErrNotFound))
	}
	return json.RawMessage(value), nil
}

// SetSetting keeps a setting; nil forgets it.
func (l *Ledger) SetSetting(ctx context.Context, name string, value json.RawMessage) error {
	if len(value) > maxSetting || value != nil && !json.Valid(value) {
		return fmt.Errorf("%w: a setting is JSON of at most %d bytes", errInvalid, maxSetting)
	}
	return l.update(ctx, "keep a setting", func(tx *tx) error {
		if value == nil {
			_, err := tx.exec(ctx, `DELETE FROM fleet_settings WHERE name = ?`, name)
			return err
		}
		_, err := tx.exec(ctx, `INSERT INTO fleet_settings (name, value) VALUES (?, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, string(value))
		return err
	})
}

// BoxHealth is a health that a box gets, with its reason.
type BoxHealth struct{ BoxID, Health, Reason string }

// SwapSetting replaces a setting that is still what the caller has read, nil for none, and in the same transaction sets
// the health of boxes. It returns ErrChanged if somebody has changed the setting meanwhile, and then it changes
// nothing.
func (l *Ledger) SwapSetting(ctx context.Context, name string, from, to json.RawMessage, healths ...BoxHealth) error {
	if len(to) > maxSetting || !json.Valid(to) {
		return fmt.Errorf("%w: a setting is JSON of at most %d bytes", errInvalid, maxSetting)
	}
	for _, h := range healths {
		if err := checkHealth(h.Health, h.Reason); err != nil {
			return err
		}
	}
	return l.update(ctx, "change a setting", func(tx *tx) (err error) {
		var rows int64
		if from == nil {
			rows, err = tx.exec(ctx, `INSERT INTO fleet_settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`, name, string(to))
		} else {
			rows, err = tx.exec(ctx, `UPDATE fleet_settings SET value = ? WHERE name = ? AND value = ?`, string(to), name, string(from))
		}
		if err != nil {
			return err
		}
		if rows == 0 {
			return ErrChanged
		}
		for _, h := range healths { // a box that is removed has none
			if _, err := tx.exec(ctx, `UPDATE fleet_boxes SET health = ?, reason = ? WHERE id = ? AND removed = 0`, h.Health, h.Reason, h.BoxID); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetReadings replaces what is kept of a device, the oldest first: a person has decided something about it.
func (l *Ledger) SetReadings(ctx context.Context, boxID, device string, readings []json.RawMessage) error {
	if len(readings) > mostReadings {
		return fmt.Errorf("%w: more than %d readings", errInvalid, mostReadings)
	}
	return l.update(ctx, "replace readings", func(tx *tx) error {
		if _, err := tx.holdBox(ctx, boxID); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `DELETE FROM fleet_readings WHERE box = ? AND device = ?`, boxID, device); err != nil {
			return err
		}
		for i, r := range readings {
			if len(r) > maxReading || !json.Valid(r) {
				return fmt.Errorf("%w: a reading is JSON of at most %d bytes", errInvalid, maxReading)
			}
			if _, err := tx.exec(ctx, `INSERT INTO fleet_readings (box, device, n, at, reading) VALUES (?, ?, ?, ?, ?)`,
				boxID, device, i+1, at(tx.now), string(r)); err != nil {
				return err
			}
		}
		return nil
	})
}

// UnderWay is a part that a box carries out, and how far it is.
type UnderWay struct {
	Run, Part  string
	BoxID, Box string // identifier and name
	Device     string
	Progress   fleet.Progress
}

// UnderWay lists the parts that boxes carry out.
func (l *Ledger) UnderWay(ctx context.Context) ([]UnderWay, error) {
	all, err := l.reader().underWay(ctx)
	return all, named("list parts that are under way", err)
}

func (q querier) underWay(ctx context.Context) (all []UnderWay, err error) {
	err = q.each(ctx, func(scan func(...any) error) error {
		var one UnderWay
		var progress string
		if err := scan(&one.Run, &one.Part, &one.BoxID, &one.Box, &one.Device, &progress); err != nil {
			return err
		}
		all = append(all, one)
		return json.Unmarshal([]byte(progress), &all[len(all)-1].Progress)
	}, `SELECT p.run, p.id, b.id, b.name, a.device, a.progress FROM fleet_attempts a JOIN fleet_parts p ON p.id = a.part JOIN fleet_boxes b ON b.id = a.box
		WHERE a.state = 'live' ORDER BY p.id`) // a literal: the indexes are of these rows
	return all, err
}
