package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ErrKeyUsed is returned if an idempotency key was used before for a different request.
var ErrKeyUsed = errors.New("this key came with another request before")

// Bounds on how long and how many idempotency keys are kept. A client repeats a request
// within minutes of losing the answer.
const (
	keysKept = 24 * time.Hour
	mostKeys = 10_000
)

// keysSchema keeps keys in a table of their own: jobs are removed when they are done.
const keysSchema = `
CREATE TABLE keys (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	key     TEXT NOT NULL UNIQUE,
	request TEXT NOT NULL,    -- digest
	job     TEXT NOT NULL,    -- ID
	created INTEGER NOT NULL  -- Unix ns
) STRICT;
`

// Once identifies a request that its client may repeat because the answer was lost. What stands before the key's last
// blank names whose it is.
// Request is a digest of the request. Requests without a key are never repetitions.
type Once struct{ Key, Request string }

// Known returns the ID of the job that was created with the key. It returns ErrNotFound
// for a new key, and ErrKeyUsed for a key that was used for another request.
func (q *Queue) Known(ctx context.Context, o Once) (string, error) {
	return known(ctx, q.db, o)
}

func known(ctx context.Context, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, o Once) (id string, err error) {
	var request string
	err = db.QueryRowContext(ctx, `SELECT job, request FROM keys WHERE key = ?`, o.Key).Scan(&id, &request)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", ErrNotFound
	case err != nil:
		return "", fmt.Errorf("look up a key: %w", err)
	case request != o.Request:
		return "", ErrKeyUsed
	}
	return id, nil
}

// AddOnce is [Queue.Add] for a request with a key. It stores the job and the key in one
// transaction, or returns the ID of the existing job if the key is known.
func (q *Queue) AddOnce(ctx context.Context, j Job, o Once) (id string, err error) {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("add job: %w", asKnown(err))
	}
	defer tx.Rollback()
	if id, err := known(ctx, tx, o); !errors.Is(err, ErrNotFound) {
		return id, err
	}
	if err := add(ctx, tx, j); err != nil {
		return "", err
	}
	if err := keep(ctx, tx, o, j.ID, j.Created); err != nil {
		return "", fmt.Errorf("add job: %w", asKnown(err))
	}
	if err := tx.Commit(); err != nil {
		return "", fmt.Errorf("add job: %w", asKnown(err))
	}
	return j.ID, nil
}
