package automation

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// The events that webhooks are told of.
const (
	EventFinished     = "run.finished"
	EventRaised       = "alert.raised"
	EventAcknowledged = "alert.acknowledged"
	EventTest         = "webhook.test" // on request, to one webhook
	// What is told to those who are told of raised alerts.
	EventResolved = "alert.resolved"
	EventAccepted = "alert.accepted"
	EventBisected = "alert.bisected"
)

// EventTypes lists the events that a webhook can be for.
func EventTypes() []string { return []string{EventFinished, EventRaised, EventAcknowledged} }

const mostHooks = 50

// Hook is an address that is told of events.
type Hook struct {
	ID     string    `json:"id" example:"k3v7m2qxab"`
	Name   string    `json:"name" example:"chat"`
	URL    string    `json:"url" doc:"Where events are posted to" example:"https://hooks.shop.example/eidetic"`
	As     string    `json:"as,omitempty" enum:"mail,github,gitlab,gerrit" doc:"How it is told: mail to a mailto: address, a commit status of GitHub or GitLab, a comment of Gerrit; without it events as JSON, signed"`
	Events []string  `json:"events" doc:"What it is told of"`
	Paused bool      `json:"paused" doc:"Whether nothing is posted; events that come meanwhile wait"`
	Reason string    `json:"reason,omitempty" doc:"Why the box paused it by itself"`
	Made   time.Time `json:"made"`
	By     string    `json:"by" doc:"Name of the token that made it"`
}

// MakeHook makes a webhook, and returns its secret, which cannot be read again. An empty
// secret lets the box draw one; no events mean all.
func (k *Keeper) MakeHook(
	ctx context.Context, name, as, url string, secret lab.Secret, events []string, by string,
) (Hook, lab.Secret, error) {
	if err := CheckName(name); err != nil {
		return Hook{}, lab.Secret{}, err
	}
	if len(events) == 0 {
		events = EventTypes()
	}
	for _, e := range events {
		if !slices.Contains(EventTypes(), e) {
			return Hook{}, lab.Secret{}, wrong("events: there is no %.40q; there are: %s", e, strings.Join(EventTypes(), ", "))
		}
	}
	secret, err := k.checkWay(as, url, secret)
	if err != nil {
		return Hook{}, lab.Secret{}, err
	}
	if as != AsMail {
		if err := k.Sender.CheckHost(ctx, url); err != nil {
			return Hook{}, lab.Secret{}, wrong("url: %w", err)
		}
	}
	h := Hook{ID: strings.ToLower(rand.Text()[:12]), Name: name, As: as, URL: url, Events: merged(events), Made: k.Now().UTC(), By: by}
	text, err := json.Marshal(h.Events)
	if err != nil {
		return Hook{}, lab.Secret{}, err
	}
	err = k.in(ctx, "keep webhook", func(tx *sql.Tx) error {
		var all, same int
		if err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(name = ?), 0) FROM hooks`, name).Scan(&all, &same); err != nil {
			return err
		}
		switch {
		case same > 0:
			return ErrExists
		case all >= mostHooks:
			return ErrMany
		}
		return execAll(ctx, tx, []statement{{`INSERT INTO hooks (id, name, way, url, events, secret, paused, reason, made, by) VALUES (?, ?, ?, ?, ?, ?, 0, '', ?, ?)`,
			[]any{h.ID, name, as, url, string(text), secret.Reveal(), stamp(h.Made), by}}})
	})
	return h, secret, err
}

// Hooks lists the webhooks by name, without their secrets.
func (k *Keeper) Hooks(ctx context.Context) ([]Hook, error) {
	rows, err := k.db.QueryContext(ctx, `SELECT id, name, way, url, events, paused, reason, made, by FROM hooks ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	defer rows.Close()
	all := []Hook{}
	for rows.Next() {
		var h Hook
		var events string
		var made int64
		if err := rows.Scan(&h.ID, &h.Name, &h.As, &h.URL, &events, &h.Paused, &h.Reason, &made, &h.By); err != nil {
			return nil, fmt.Errorf("list webhooks: %w", err)
		}
		if err := json.Unmarshal([]byte(events), &h.Events); err != nil {
			return nil, fmt.Errorf("list webhooks: %w", err)
		}
		h.Made = timeOf(made)
		all = append(all, h)
	}
	return all, rows.Err()
}

// Hook returns a webhook, or store.ErrNotFound.
func (k *Keeper) Hook(ctx context.Context, id string) (Hook, error) {
	all, err := k.Hooks(ctx)
	if err != nil {
		return Hook{}, err
	}
	if i := slices.IndexFunc(all, func(h Hook) bool { return h.ID == id }); i >= 0 {
		return all[i], nil
	}
	return Hook{}, store.ErrNotFound
}

// PauseHook stops the posting to a webhook, or lets it go on.
func (k *Keeper) PauseHook(ctx context.Context, id string, paused bool) (Hook, error) {
	if _, err := k.db.ExecContext(ctx, `UPDATE hooks SET paused = ?, reason = '' WHERE id = ?`, paused, id); err != nil {
		return Hook{}, fmt.Errorf("change webhook: %w", store.AsKnown(err))
	}
	k.Stir()
	return k.Hook(ctx, id)
}

// RemoveHook removes a webhook with what waits for it. What was delivered stays in the log.
func (k *Keeper) RemoveHook(ctx context.Context, id string) (gone Hook, err error) {
	if gone, err = k.Hook(ctx, id); err != nil {
		return gone, err
	}
	return gone, k.in(ctx, "remove webhook", func(tx *sql.Tx) error {
		return execAll(ctx, tx, []statement{
			{`DELETE FROM hooks WHERE id = ?`, []any{id}},
			{`UPDATE deliveries SET state = ?, error = 'the webhook was removed' WHERE hook = ? AND state = ?`,
				[]any{DeliveryFailed, id, DeliveryWaits}},
		})
	})
}

// TestHook posts an event to one webhook, and returns its delivery.
func (k *Keeper) TestHook(ctx context.Context, id, by string) (d Delivery, err error) {
	h, err := k.Hook(ctx, id)
	if err != nil {
		return d, err
	}
	if h.As != AsEvents && h.As != AsMail {
		return d, &WrongError{errNoTest}
	}
	var seq int64
	err = k.in(ctx, "test webhook", func(tx *sql.Tx) error {
		event := Event{Type: EventTest, Time: k.Now().UTC(), Data: TestData{h.Name, by}}
		if err := k.post(ctx, tx, event, []string{id}); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT max(seq) FROM deliveries WHERE hook = ?`, id).Scan(&seq)
	})
	if err != nil {
		return d, err
	}
	k.Stir()
	return k.delivery(ctx, seq)
}

// TestData is what a webhook.test says.
type TestData struct {
	Webhook string `json:"webhook"`
	By      string `json:"by"`
}

// Event is what is posted: the body's form is that of Standard Webhooks.
type Event struct {
	Type string    `json:"type"`
	Time time.Time `json:"timestamp"`
	Data any       `json:"data"`
}

// publish puts an event into the queue of every webhook that is for it. Who is told of an alert is told of what becomes
// of it.
func (k *Keeper) publish(ctx context.Context, tx *sql.Tx, e Event) error {
	subscribed := e.Type
	switch e.Type {
	case EventResolved, EventAccepted, EventBisected:
		subscribed = EventRaised
	}
	rows, err := tx.QueryContext(ctx, `SELECT id FROM hooks WHERE EXISTS (SELECT 1 FROM json_each(events) WHERE value = ?)`, subscribed)
	if err != nil {
		return err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(ids) == 0 {
		return err
	}
	return k.post(ctx, tx, e, ids)
}

// post puts an event into the queues of webhooks, all with one ID. What there is no room for
// is in the log, as failed.
func (k *Keeper) post(ctx context.Context, tx *sql.Tx, e Event, hooks []string) error {
	id, now := "msg_"+rand.Text(), stamp(k.Now())
	for _, hook := range hooks {
		var way string
		if err := tx.QueryRowContext(ctx, `SELECT way FROM hooks WHERE id = ?`, hook).Scan(&way); err != nil {
			return err
		}
		path, said, ok := e.payload(way)
		if !ok {
			continue
		}
		body, err := json.Marshal(said)
		if err != nil {
			return err
		}
		var waiting int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM deliveries WHERE state = ? AND hook = ?`, DeliveryWaits, hook).Scan(&waiting); err != nil {
			return err
		}
		state, reason := DeliveryWaits, ""
		if waiting >= mostWaiting {
			state, reason = DeliveryFailed, fmt.Sprintf("%d events wait for this webhook, which is the most", mostWaiting)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO deliveries (id, hook, event, path, body, made, state, attempts, tried, next, status, error)
			VALUES (?1, ?2, ?3, ?8, ?4, ?5, ?6, 0, 0, ?5, 0, ?7)`, id, hook, e.Type, string(body), now, state, reason, path); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM deliveries WHERE state <> ?1 AND seq <= (
		SELECT seq FROM deliveries WHERE state <> ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`, DeliveryWaits, mostEnded)
	return err
}

// Secrets lists the keys and addresses of all webhooks, so that they can be removed from what
// leaves the box.
func (k *Keeper) Secrets(ctx context.Context) (all []string, err error) {
	rows, err := k.db.QueryContext(ctx, `SELECT secret, url FROM hooks`)
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var secret, url string
		if err := rows.Scan(&secret, &url); err != nil {
			return nil, fmt.Errorf("list secrets: %w", err)
		}
		all = append(all, secret, url)
	}
	return all, rows.Err()
}
