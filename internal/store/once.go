package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ErrKeyUsed is returned for a key that came with another request.
var ErrKeyUsed = errors.New("this key came with another request before")

// Keys of requests are kept for so long, and so many of them: they are for
// asking again when an answer was lost, which is a matter of minutes.
const (
	keysKept = 24 * time.Hour
	mostKeys = 10_000
)

// onceSchema keeps keys apart from the jobs, which are removed when they are done.
const onceSchema = `
CREATE TABLE IF NOT EXISTS keys (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	key     TEXT NOT NULL UNIQUE,
	request TEXT NOT NULL,    -- digest
	job     TEXT NOT NULL,    -- ID
	created INTEGER NOT NULL  -- Unix ns
) STRICT;
`

// Once names a request that may be made again by one who did not hear the
// answer. Request is a digest of what was asked for; without a key every request is another one.
type Once struct{ Key, Request string }

// Known returns the ID of the job that the key made. It is ErrNotFound for a
// new key, and ErrKeyUsed for one that came with another request.
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

// AddOnce is [Queue.Add] for a request that has a key: the job and the key come
// in together or not at all. Where the key is known already it returns the ID of its job.
func (q *Queue) AddOnce(ctx context.Context, j Job, o Once) (id string, err error) {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("add job: %w", full(err))
	}
	defer tx.Rollback()
	if id, err := known(ctx, tx, o); !errors.Is(err, ErrNotFound) {
		return id, err
	}
	if err := add(ctx, tx, j); err != nil {
		return "", err
	}
	for _, s := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO keys (key, request, job, created) VALUES (?, ?, ?, ?)`, []any{o.Key, o.Request, j.ID, j.Created.UnixNano()}},
		{`DELETE FROM keys WHERE created < ? OR seq <= (SELECT max(seq) FROM keys) - ?`, []any{j.Created.Add(-keysKept).UnixNano(), mostKeys}},
	} {
		if _, err := tx.ExecContext(ctx, s.text, s.args...); err != nil {
			return "", fmt.Errorf("add job: %w", full(err))
		}
	}
	if err := tx.Commit(); err != nil {
		return "", fmt.Errorf("add job: %w", full(err))
	}
	return j.ID, nil
}
