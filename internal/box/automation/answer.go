package automation

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
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

// Keeping is who looks after an alert, and where it is written about. An absent field stays as it is.
type Keeping struct {
	Owner *string `json:"owner,omitempty" maxLength:"100" doc:"Who looks after it; empty for nobody" example:"ada"`
	Bug   *string `json:"bug,omitempty" maxLength:"2000" doc:"Address of what is written about it elsewhere, https:// or http://; empty for none" example:"https://bugs.shop.example/4711"`
}

// Assign notes who looks after an alert, and where it is written about.
func (k *Keeper) Assign(ctx context.Context, id int64, to Keeping) (Alert, error) {
	if to.Bug != nil && *to.Bug != "" {
		if u, err := url.Parse(*to.Bug); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
			return Alert{}, wrong("bug: an address that begins with https:// or http:// and a host")
		}
	}
	return k.say(ctx, id, "", func(a *Alert) error {
		if to.Owner != nil {
			a.Owner = strings.TrimSpace(*to.Owner)
		}
		if to.Bug != nil {
			a.Bug = *to.Bug
		}
		return nil
	})
}

// say changes an alert, and publishes that as an event unless it is "".
func (k *Keeper) say(ctx context.Context, id int64, event string, change func(*Alert) error) (a Alert, err error) {
	err = k.in(ctx, "change alert", func(tx *sql.Tx) error {
		a, err = whole(ctx, tx, id)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return store.ErrNotFound
		case err != nil:
			return err
		}
		if err := change(&a); err != nil {
			return err
		}
		if err := saveWhole(ctx, tx, a); err != nil || event == "" {
			return err
		}
		return k.publish(ctx, tx, Event{event, k.Now().UTC(), a})
	})
	k.Stir()
	return a, err
}
