package ledger

import (
	"context"
	"encoding/json"
	"fmt"
)

// Bounds of what is kept of what reference runs say of a device.
const (
	mostReadings = 2000 // of one device
	maxReading   = 256 << 10
)

// AddReading keeps what a reference run says of a device of a box, as JSON, in place of the oldest of too many.
func (l *Ledger) AddReading(ctx context.Context, boxID, device string, reading json.RawMessage) error {
	if len(reading) > maxReading || !json.Valid(reading) {
		return fmt.Errorf("%w: a reading is JSON of at most %d bytes", errInvalid, maxReading)
	}
	return l.update(ctx, "keep a reading", func(tx *tx) error {
		if _, err := tx.holdBox(ctx, boxID); err != nil {
			return err
		}
		var n int64
		if err := tx.row(ctx, `SELECT coalesce(max(n), 0) + 1 FROM fleet_readings WHERE box = ? AND device = ?`, boxID, device).Scan(&n); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `INSERT INTO fleet_readings (box, device, n, at, reading) VALUES (?, ?, ?, ?, ?)`,
			boxID, device, n, at(tx.now), string(reading)); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `DELETE FROM fleet_readings WHERE box = ? AND device = ? AND n <= ?`, boxID, device, n-mostReadings)
		return err
	})
}

// Readings lists what reference runs said of a device of a box, the newest first.
func (l *Ledger) Readings(ctx context.Context, boxID, device string, limit int) (all []json.RawMessage, err error) {
	err = l.reader().each(ctx, func(scan func(...any) error) error {
		var reading string
		err := scan(&reading)
		all = append(all, json.RawMessage(reading))
		return err
	}, `SELECT reading FROM fleet_readings WHERE box = ? AND device = ? ORDER BY n DESC LIMIT ?`, boxID, device, limit)
	return all, named("list readings", err)
}
