package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// beats is how often a lease's time is divided by: a head says that it lives, and looks for leases that ran out, so
// often.
const beats = 10

// Sweep gives back the parts of leases that ran out, and forgets what nobody needs. Work calls it.
func (l *Ledger) Sweep(ctx context.Context) error {
	if err := l.wake(ctx); err != nil {
		return err
	}
	lapsed, err := l.reader().expired(ctx, at(l.now()), "")
	if err != nil {
		return named("list leases that ran out", err)
	}
	return errors.Join(
		l.giveBackAll(ctx, lapsed, "its lease ran out: the box was not heard of"),
		l.closeQueues(ctx),
		l.update(ctx, "forget series", func(tx *tx) error { return tx.forgetSeries(ctx) }),
	)
}

// wake says that a head lives. If none has lived for a while, all leases last anew: no box could renew. The same is done
// when the clock was put back by more than a lease, since what was written before lies in the future.
func (l *Ledger) wake(ctx context.Context) error {
	return l.update(ctx, "say that a head lives", func(tx *tx) error {
		var last int64
		if err := tx.lock(ctx, `SELECT n FROM fleet_state WHERE name = 'alive'`).Scan(&last); err != nil {
			return err
		}
		if tx.now.Sub(time.Unix(0, last)) > 2*l.lease/beats {
			until := at(tx.now.Add(l.lease))
			if _, err := tx.exec(ctx, `UPDATE fleet_attempts SET until = ? WHERE state = 'live' AND until < ?`, until, until); err != nil {
				return err
			}
		}
		ahead := at(tx.now.Add(l.lease))
		if last > ahead {
			if err := tx.putBack(ctx, ahead); err != nil {
				return err
			}
		}
		_, err := tx.exec(ctx, `UPDATE fleet_state SET n = ? WHERE name = 'alive' AND (n < ? OR n > ?)`, at(tx.now), at(tx.now), ahead)
		return err
	})
}

// putBack moves what a clock that was ahead has written to where the clock is now: else a box that has gone keeps its
// parts, and counts as seen, until the clock is there again.
func (tx *tx) putBack(ctx context.Context, ahead int64) error {
	for _, change := range []struct {
		text  string
		to    int64
		after int64
	}{
		{`UPDATE fleet_attempts SET until = ? WHERE state = 'live' AND until > ?`, ahead, ahead},
		{`UPDATE fleet_boxes SET seen = ? WHERE seen > ?`, at(tx.now), at(tx.now)},
		{`UPDATE fleet_runs SET due = ? WHERE state = 'assembling' AND due > ?`, at(tx.now), ahead},
	} {
		if _, err := tx.exec(ctx, change.text, change.to, change.after); err != nil {
			return err
		}
	}
	return nil
}

// lapse is a lease that has run out.
type lapse struct {
	part    string
	attempt int
}

// mostLapses bounds the leases that one sweep gives back.
const mostLapses = 1000

// expired lists leases that ran out before a time, of one box or, without a name, of all.
func (q querier) expired(ctx context.Context, before int64, box string) (all []lapse, err error) {
	where, args := "", []any{before}
	if box != "" {
		where, args = " AND box = ?", append(args, box)
	}
	err = q.each(ctx, func(scan func(...any) error) error {
		var one lapse
		err := scan(&one.part, &one.attempt)
		all = append(all, one)
		return err
	}, `SELECT part, attempt FROM fleet_attempts WHERE state = 'live' AND until < ?`+where+` ORDER BY until LIMIT ?`, append(args, mostLapses)...)
	return all, err
}

// giveBackAll gives parts back whose leases are still as they were listed.
func (l *Ledger) giveBackAll(ctx context.Context, all []lapse, why string) error {
	for _, one := range all {
		err := l.update(ctx, "give a part back", func(tx *tx) error {
			p, err := tx.hold(ctx, one.part)
			if err != nil {
				return err
			}
			a, _, err := tx.attempt(ctx, `part = ? AND attempt = ? AND state = 'live' AND until < ?`, one.part, one.attempt, at(tx.now))
			if errors.Is(err, ErrLost) {
				return nil // it was renewed
			}
			if err != nil {
				return err
			}
			return tx.giveBack(ctx, p, a, attemptVanished, why)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// closeQueues forgets the needs for which nothing waits, so that claims look at those alone for which something does.
func (l *Ledger) closeQueues(ctx context.Context) error {
	var idle []string
	err := l.reader().each(ctx, func(scan func(...any) error) error {
		idle = append(idle, "")
		return scan(&idle[len(idle)-1])
	}, `SELECT n.queue FROM fleet_needs n WHERE (SELECT 1 FROM fleet_parts p WHERE p.queue = n.queue AND p.state = 'queued' LIMIT 1) IS NULL`)
	if err != nil {
		return named("list queues", err)
	}
	for _, queue := range idle {
		// Who adds a part to the queue holds its row, so a part that was added meanwhile is seen by the second
		// statement.
		err := l.update(ctx, fmt.Sprintf("close queue %s", queue), func(tx *tx) error {
			if err := tx.lock(ctx, `SELECT queue FROM fleet_needs WHERE queue = ?`, queue).Scan(&queue); err != nil {
				return found(err, nil)
			}
			_, err := tx.exec(ctx, `DELETE FROM fleet_needs WHERE queue = ? AND NOT EXISTS (
				SELECT 1 FROM fleet_parts p WHERE p.queue = fleet_needs.queue AND p.state = 'queued')`, queue)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
