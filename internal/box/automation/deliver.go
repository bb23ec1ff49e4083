package automation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"eidetic/internal/box/mail"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Bounds of deliveries.
const (
	mostWaiting = 500  // for one webhook
	mostEnded   = 2000 // that the log keeps
	mostAtOnce  = 4    // attempts, at most one of a webhook
)

// Pauses are the times between the attempts of a delivery, those that Standard Webhooks
// gives as an example: ten attempts within three and a half days.
func Pauses() []time.Duration {
	return []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
}

// The states of a delivery.
const (
	DeliveryWaits  = "waiting"
	DeliveryDone   = "delivered"
	DeliveryFailed = "failed"
)

// Delivery is one event on its way to one webhook.
type Delivery struct {
	Number   int64           `json:"number" doc:"Counts the deliveries"`
	ID       string          `json:"id" doc:"Identifier of the event: the header webhook-id, the same in all attempts"`
	Webhook  string          `json:"webhook" doc:"Identifier of the webhook"`
	Event    string          `json:"event" example:"run.finished"`
	Made     time.Time       `json:"made" doc:"When it happened"`
	State    string          `json:"state" enum:"waiting,delivered,failed"`
	Attempts int             `json:"attempts"`
	Tried    *time.Time      `json:"tried,omitempty" doc:"When the last attempt was made"`
	Next     *time.Time      `json:"next,omitempty" doc:"When it is tried again, while it waits"`
	Status   int             `json:"status,omitempty" doc:"Of the last answer; absent if there was none"`
	Error    string          `json:"error,omitempty" doc:"Why the last attempt failed"`
	Body     json.RawMessage `json:"body" doc:"What is posted"`
}

const deliveryColumns = `seq, id, hook, event, body, made, state, attempts, tried, next, status, error`

func scanDelivery(row interface{ Scan(...any) error }) (d Delivery, err error) {
	var made, tried, next int64
	var body string
	err = row.Scan(&d.Number, &d.ID, &d.Webhook, &d.Event, &body, &made, &d.State, &d.Attempts, &tried, &next, &d.Status, &d.Error)
	if err != nil {
		return d, err
	}
	d.Made, d.Tried, d.Body = timeOf(made), timeIf(tried), json.RawMessage(body)
	if d.State == DeliveryWaits {
		d.Next = timeIf(next)
	}
	return d, nil
}

// Deliveries lists deliveries, the newest first: those before the number, if it is not 0, of
// one webhook, if it is not empty, and in one state, if that is not empty.
func (k *Keeper) Deliveries(ctx context.Context, hook, state string, before int64, limit int) ([]Delivery, error) {
	rows, err := k.db.QueryContext(ctx, `SELECT `+deliveryColumns+` FROM deliveries
		WHERE (?1 = '' OR hook = ?1) AND (?2 = '' OR state = ?2) AND (?3 = 0 OR seq < ?3) ORDER BY seq DESC LIMIT ?4`, hook, state, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	defer rows.Close()
	all := []Delivery{}
	for rows.Next() {
		d, err := scanDelivery(rows)
		if err != nil {
			return nil, fmt.Errorf("list deliveries: %w", err)
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

func (k *Keeper) delivery(ctx context.Context, seq int64) (Delivery, error) {
	d, err := scanDelivery(k.db.QueryRowContext(ctx, `SELECT `+deliveryColumns+` FROM deliveries WHERE seq = ?`, seq))
	if errors.Is(err, sql.ErrNoRows) {
		return d, store.ErrNotFound
	}
	if err != nil {
		return d, fmt.Errorf("read delivery: %w", err)
	}
	return d, nil
}

// postman carries deliveries out, several at once and one of a webhook at a time.
type postman struct {
	*Keeper
	pause time.Duration // between attempts to note what came of a delivery
	mu    sync.Mutex
	busy  map[string]bool // webhooks to which an attempt is going on
	all   sync.WaitGroup
}

// deliver starts the attempts that are due, and returns when the next one is.
func (m *postman) deliver(ctx context.Context) (next time.Time, err error) {
	now := stamp(m.Now())
	// What was made or tried after now was so before the clock was put back: its pause cannot be told.
	rows, err := m.db.QueryContext(ctx, `SELECT d.seq, d.hook, d.next, d.next > ?1 AND d.tried <= ?1 AND d.made <= ?1
		FROM deliveries d JOIN hooks h ON h.id = d.hook WHERE d.state = ?2 AND h.paused = 0 ORDER BY d.next, d.seq`, now, DeliveryWaits)
	if err != nil {
		return next, fmt.Errorf("read deliveries: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var seq, at int64
		var hook string
		var later bool
		if err := rows.Scan(&seq, &hook, &at, &later); err != nil {
			return next, fmt.Errorf("read deliveries: %w", err)
		}
		switch {
		case later && next.IsZero():
			next = timeOf(at)
		case !later && m.take(hook):
			m.all.Go(func() {
				defer m.Stir()
				defer m.leave(hook)
				if err := m.try(ctx, seq); err != nil && ctx.Err() == nil {
					m.Log.Error("an event cannot be delivered", "delivery", seq, "error", err)
				}
			})
		}
	}
	return next, rows.Err()
}

func (m *postman) take(hook string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[hook] || len(m.busy) >= mostAtOnce {
		return false
	}
	m.busy[hook] = true
	return true
}

func (m *postman) leave(hook string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.busy, hook)
}

// try makes one attempt and notes what came of it. Until that is noted (the disk may be full) nothing else is sent to the
// webhook: else the event would be sent again and again. What a stopped or killed process has not noted is sent again by
// the next one.
func (m *postman) try(ctx context.Context, seq int64) error {
	p := webhook.Post{At: m.Now()}
	var hook, way, path, secret string
	var attempts int
	err := m.db.QueryRowContext(ctx, `SELECT d.id, d.hook, h.way, h.url, d.path, h.secret, d.body, d.attempts FROM deliveries d JOIN hooks h ON h.id = d.hook
		WHERE d.seq = ? AND d.state = ? AND h.paused = 0`, seq, DeliveryWaits).Scan(&p.ID, &hook, &way, &p.URL, &path, &secret, &p.Body, &attempts)
	if errors.Is(err, sql.ErrNoRows) { // the webhook was removed or paused meanwhile
		return nil
	}
	if err != nil {
		return fmt.Errorf("read delivery: %w", err)
	}
	p.Secret = lab.NewSecret(secret)
	answer, err := m.tell(ctx, way, path, p)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	state, reason, gone := DeliveryWaits, "", false
	switch {
	case err != nil:
		reason = shorten(err.Error())
	case answer.Good():
		state = DeliveryDone
	case answer.Status/100 == 3:
		reason = fmt.Sprintf("the answer is %d: redirects are not followed", answer.Status)
	default:
		reason = fmt.Sprintf("the answer is %d %s", answer.Status, http.StatusText(answer.Status))
	}
	now := m.Now()
	next := now
	switch {
	case state == DeliveryDone:
	case answer.Status == http.StatusGone:
		state, gone = DeliveryFailed, true
	case attempts >= len(m.Pauses):
		state = DeliveryFailed
	default:
		pause := m.Pauses[attempts]
		pause += time.Duration(rand.Float64() * 0.1 * float64(pause)) // so that the events of an outage do not come all at once
		next = now.Add(max(pause, min(answer.RetryAfter, m.Pauses[len(m.Pauses)-1])))
	}
	all := []statement{{`UPDATE deliveries SET state = ?, attempts = ?, tried = ?, next = ?, status = ?, error = ? WHERE seq = ? AND state = ?`,
		[]any{state, attempts + 1, stamp(now), stamp(next), answer.Status, reason, seq, DeliveryWaits}}}
	if gone {
		all = append(all, statement{`UPDATE hooks SET paused = 1, reason = 'it answered 410 Gone' WHERE id = ?`, []any{hook}})
	}
	for {
		err := m.in(context.WithoutCancel(ctx), "note a delivery", func(tx *sql.Tx) error {
			return execAll(context.WithoutCancel(ctx), tx, all)
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
		m.Log.Error("an event was sent, and that cannot be noted: its webhook gets no other until it is", "delivery", seq, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(m.pause):
		}
	}
}

// tell makes one attempt in the way of a webhook. A mail that was handed in counts as an answer.
func (m *postman) tell(ctx context.Context, way, path string, p webhook.Post) (webhook.Answer, error) {
	switch way {
	case AsEvents:
		return m.Sender.Post(ctx, p)
	case AsMail:
		if m.Mail == nil {
			return webhook.Answer{}, errors.New("the configuration names no mail server any more (mail.server)")
		}
		subject, text, err := message(p.Body)
		if err != nil {
			return webhook.Answer{}, err
		}
		letter := mail.Message{To: strings.TrimPrefix(p.URL, "mailto:"), Subject: subject, Text: text, ID: p.ID, At: p.At}
		if err := m.Mail(ctx, letter); err != nil {
			return webhook.Answer{}, err
		}
		return webhook.Answer{Status: http.StatusOK}, nil
	}
	p.URL, p.Header, p.Secret = strings.TrimSuffix(p.URL, "/")+path, header(way, p.Secret), lab.Secret{}
	return m.Sender.Post(ctx, p)
}

// DeliveryCounts counts the deliveries that are kept, by state.
func (k *Keeper) DeliveryCounts(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{DeliveryWaits: 0, DeliveryDone: 0, DeliveryFailed: 0}
	rows, err := k.db.QueryContext(ctx, `SELECT state, count(*) FROM deliveries GROUP BY state`)
	if err != nil {
		return nil, fmt.Errorf("count deliveries: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var state string
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			return nil, fmt.Errorf("count deliveries: %w", err)
		}
		counts[state] = n
	}
	return counts, rows.Err()
}
