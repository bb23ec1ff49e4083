package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// ErrUnanswered is returned if the first request with a key has no answer yet.
var ErrUnanswered = errors.New("the first request with this key has no answer yet")

// answerSchema keeps what was answered to requests with a key that made no job. Their rows in keys have no job.
const answerSchema = `
CREATE TABLE answers (
	key    TEXT PRIMARY KEY,
	status INTEGER NOT NULL,
	head   TEXT NOT NULL,
	body   BLOB NOT NULL
) STRICT;
`

// Answer is what was answered to a request.
type Answer struct {
	Status int
	Head   string // header fields, as the caller writes them
	Body   []byte
}

// Claim keeps the key of a request that is about to be carried out: then the answer is nil. For a key that is known it
// returns the first answer, or ErrUnanswered, or ErrKeyUsed. A claim ends with [Queue.Answer] or [Queue.Unclaim]; one
// whose process was killed never does, as nobody knows whether the request was carried out.
func (q *Queue) Claim(ctx context.Context, o Once, now time.Time) (*Answer, error) {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("claim a key: %w", asKnown(err))
	}
	defer tx.Rollback()
	switch _, err := known(ctx, tx, o); {
	case err == nil:
		a := &Answer{}
		err := tx.QueryRowContext(ctx, `SELECT status, head, body FROM answers WHERE key = ?`, o.Key).Scan(&a.Status, &a.Head, &a.Body)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, ErrUnanswered
		} else if err != nil {
			return nil, fmt.Errorf("look up an answer: %w", err)
		}
		return a, nil
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	if err := keep(ctx, tx, o, "", now); err != nil {
		return nil, fmt.Errorf("claim a key: %w", asKnown(err))
	}
	if err := tx.Commit(); err != nil {
		return nil, fmt.Errorf("claim a key: %w", asKnown(err))
	}
	return nil, nil
}

// Answer keeps the answer to a request that was claimed.
func (q *Queue) Answer(ctx context.Context, key string, a Answer) error {
	_, err := q.db.ExecContext(ctx, `INSERT OR REPLACE INTO answers (key, status, head, body) VALUES (?, ?, ?, ?)`, key, a.Status, a.Head, a.Body)
	if err != nil {
		return fmt.Errorf("keep an answer: %w", asKnown(err))
	}
	return nil
}

// Unclaim forgets the key of a request that was claimed and not carried out.
func (q *Queue) Unclaim(ctx context.Context, key string) error {
	if _, err := q.db.ExecContext(ctx, `DELETE FROM keys WHERE key = ? AND job = ''`, key); err != nil {
		return fmt.Errorf("release a key: %w", asKnown(err))
	}
	return nil
}

// keep keeps a key, and forgets those that are too old: of one token it keeps its share of the newest.
func keep(ctx context.Context, tx *sql.Tx, o Once, job string, now time.Time) error {
	whose, afterAll := o.Key[:strings.LastIndexByte(o.Key, ' ')+1], "\U0010ffff"
	if whose != "" {
		afterAll = strings.TrimSuffix(whose, " ") + "!" // what follows a blank
	}
	for _, s := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO keys (key, request, job, created) VALUES (?, ?, ?, ?)`, []any{o.Key, o.Request, job, now.UnixNano()}},
		{`DELETE FROM keys WHERE created < ?`, []any{now.Add(-keysKept).UnixNano()}},
		{`DELETE FROM keys WHERE seq IN (SELECT seq FROM keys WHERE key >= ? AND key < ? AND instr(substr(key, ?), ' ') = 0
			ORDER BY seq DESC LIMIT -1 OFFSET ?)`, []any{whose, afterAll, len(whose) + 1, lab.ShareOf(mostKeys)}},
		{`DELETE FROM keys WHERE seq IN (SELECT seq FROM keys ORDER BY seq DESC LIMIT -1 OFFSET ?)`, []any{mostKeys}},
		{`DELETE FROM answers WHERE key NOT IN (SELECT key FROM keys)`, nil},
	} {
		if _, err := tx.ExecContext(ctx, s.text, s.args...); err != nil {
			return err
		}
	}
	return nil
}
