package ledger

import (
	"context"
	"fmt"
)

// The parts of a queue are given by priority and then by their tags, which are those of start-time fair queueing
// (Goyal, Vin, Cheng: "Start-time Fair Queueing", SIGCOMM 1996): the virtual time at which a part would start if all
// series had equal shares, counted in trials. A part is never passed over because of another one's tag for longer than
// the others' shares last.

// tag places a part of a series behind the parts of the same series, and beside those of other series that wait. The
// caller holds the row 'adding'.
func (tx *tx) tag(ctx context.Context, series, queue string, priority, cost int) (int64, error) {
	clock := fmt.Sprintf("clock-%d", priority)
	// Virtual time is the start of what was served last; it never goes back when runs are removed.
	var now int64
	if err := tx.row(ctx, `SELECT coalesce(max(v), 0) FROM (
			SELECT n AS v FROM fleet_state WHERE name = ?
			UNION ALL
			SELECT max(tag) AS v FROM fleet_parts WHERE priority = ? AND attempt > 0) AS times`, clock, priority).Scan(&now); err != nil {
		return 0, err
	}
	if _, err := tx.exec(ctx, `UPDATE fleet_state SET n = ? WHERE name = ? AND n < ?`, now, clock, now); err != nil {
		return 0, err
	}
	// A queue whose boxes are few lags behind the others. What is new there starts with what waits there, not behind
	// it.
	var first *int64
	if err := tx.row(ctx, `SELECT min(tag) FROM fleet_parts WHERE queue = ? AND priority = ? AND state = 'queued'`, queue, priority).
		Scan(&first); err != nil {
		return 0, err
	}
	if first != nil && *first < now {
		now = *first
	}
	var finish int64
	if err := tx.row(ctx, `SELECT coalesce(max(finish), 0) FROM fleet_series WHERE series = ? AND priority = ?`, series, priority).
		Scan(&finish); err != nil {
		return 0, err
	}
	start := max(now, finish)
	_, err := tx.exec(ctx, `INSERT INTO fleet_series (series, priority, finish) VALUES (?, ?, ?)
		ON CONFLICT (series, priority) DO UPDATE SET finish = excluded.finish`, series, priority, start+int64(cost))
	return start, err
}

// forgetSeries removes what no longer has an effect: series that would start at the present time.
func (tx *tx) forgetSeries(ctx context.Context) error {
	var n int
	if err := tx.lock(ctx, `SELECT n FROM fleet_state WHERE name = 'adding'`).Scan(&n); err != nil {
		return err
	}
	// When nothing waits any more, virtual time goes on to the end of what was served (rule 3 of the paper).
	if _, err := tx.exec(ctx, `UPDATE fleet_state SET n = (SELECT max(s.finish) FROM fleet_series s WHERE 'clock-' || s.priority = fleet_state.name)
		WHERE n < (SELECT max(s.finish) FROM fleet_series s WHERE 'clock-' || s.priority = fleet_state.name)
		AND NOT EXISTS (SELECT 1 FROM fleet_parts p WHERE p.state = 'queued' AND 'clock-' || p.priority = fleet_state.name)`); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `DELETE FROM fleet_series
		WHERE finish <= (SELECT n FROM fleet_state WHERE name = 'clock-' || fleet_series.priority)
		AND NOT EXISTS (SELECT 1 FROM fleet_runs r WHERE r.state IN ('queued', 'running') AND r.series = fleet_series.series)`)
	return err
}
