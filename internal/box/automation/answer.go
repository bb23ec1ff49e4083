package automation

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"eidetic/internal/keep/store"
)

// Acknowledge notes that somebody has taken note of an alert. The first does; for others the
// error is [ErrDone]. It stays bad.
func (k *Keeper) Acknowledge(ctx context.Context, id int64, by, note string, tags []string) (Alert, error) {
	if err := checkTags(tags); err != nil {
		return Alert{}, err
	}
	return k.say(ctx, id, EventAcknowledged, func(a *Alert) error {
		if a.Done != nil {
			return ErrDone
		}
		if a.Tags = merged(a.Tags, tags); len(a.Tags) > mostTags {
			return wrong("tags: with those that it has, %d are too many, at most %d", len(a.Tags), mostTags)
		}
		a.Done = &Acknowledgement{By: by, At: k.Now().UTC(), Note: note}
		return nil
	})
}

// Resolve notes that an alert is over: it was mended, or is none. Once; for others the error is [ErrResolved].
func (k *Keeper) Resolve(ctx context.Context, id int64, by, note string) (Alert, error) {
	return k.say(ctx, id, EventResolved, func(a *Alert) error {
		if a.Resolved != nil {
			return ErrResolved
		}
		a.Resolved = &Acknowledgement{By: by, At: k.Now().UTC(), Note: note}
		return nil
	})
}

// mostAccepted is for how long an alert may be accepted.
const mostAccepted = 366 * 24 * time.Hour

// Accept notes that an alert may stay until a time, and why. It may be accepted anew.
func (k *Keeper) Accept(ctx context.Context, id int64, by, reason string, until time.Time) (Alert, error) {
	now := k.Now().UTC()
	switch {
	case strings.TrimSpace(reason) == "":
		return Alert{}, wrong("reason: say why it may stay")
	case !until.After(now) || until.Sub(now) > mostAccepted:
		return Alert{}, wrong("until: %s: a time from now on, within a year", until.Format(time.RFC3339))
	}
	return k.say(ctx, id, EventAccepted, func(a *Alert) error {
		if a.Resolved != nil {
			return ErrResolved
		}
		a.Accepted = &Acceptance{By: by, At: now, Reason: reason, Until: until.UTC().Truncate(time.Second)}
		return nil
	})
}

// dateOf is a time as an acceptance's end is stored, which sorts as text.
func dateOf(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// say changes an alert and publishes that.
func (k *Keeper) say(ctx context.Context, id int64, event string, change func(*Alert) error) (a Alert, err error) {
	err = k.in(ctx, "change alert", func(tx *sql.Tx) error {
		a, err = scanAlert(tx.QueryRowContext(ctx, `SELECT alert FROM alerts WHERE id = ?`, id))
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return store.ErrNotFound
		case err != nil:
			return err
		}
		if err := change(&a); err != nil {
			return err
		}
		if err := saveAlert(ctx, tx, a); err != nil {
			return err
		}
		return k.publish(ctx, tx, Event{event, k.Now().UTC(), a})
	})
	k.Stir()
	return a, err
}
