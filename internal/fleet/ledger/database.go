package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// querier is a database or a transaction of it.
type querier struct {
	db interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}
	postgres bool
}

// rebind writes the placeholders of a statement as the database has them. No text in our statements has a question
// mark.
func (q querier) rebind(text string) string {
	if !q.postgres {
		return text
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		text = after
	}
}

func (q querier) exec(ctx context.Context, text string, args ...any) (rows int64, err error) {
	done, err := q.db.ExecContext(ctx, q.rebind(text), args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

func (q querier) row(ctx context.Context, text string, args ...any) *sql.Row {
	return q.db.QueryRowContext(ctx, q.rebind(text), args...)
}

// lock is row for a row that the transaction keeps from others.
func (q querier) lock(ctx context.Context, text string, args ...any) *sql.Row {
	return q.row(ctx, text+q.forUpdate(), args...)
}

// forUpdate is the end of a query for rows that the transaction keeps from others. On SQLite a transaction has the
// database to itself.
func (q querier) forUpdate() string {
	if q.postgres {
		return " FOR UPDATE"
	}
	return ""
}

// skipLocked is forUpdate for rows that no other transaction has locked.
func (q querier) skipLocked() string {
	if q.postgres {
		return " FOR UPDATE SKIP LOCKED"
	}
	return ""
}

// anyOf is a list of at least one text for IN, with its arguments.
func anyOf(texts []string) (list string, args []any) {
	for _, t := range texts {
		args = append(args, t)
	}
	return "(?" + strings.Repeat(", ?", len(texts)-1) + ")", args
}

// each calls f for each row. It has read all rows before it returns, so that the connection is free; f must not query.
func (q querier) each(ctx context.Context, f func(scan func(...any) error) error, text string, args ...any) error {
	rows, err := q.db.QueryContext(ctx, q.rebind(text), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// tx is a transaction.
type tx struct {
	querier
	now      time.Time
	allEnded bool // it ended the last part of a run
}

// reader reads outside of a transaction.
func (l *Ledger) reader() querier { return querier{l.read, l.postgres} }

// mostTries bounds how often a transaction is tried that PostgreSQL ended in favour of another one.
const mostTries = 10

// update carries out f in a transaction. f may be called several times.
func (l *Ledger) update(ctx context.Context, what string, f func(*tx) error) error {
	var err error
	for range mostTries {
		if err = l.once(ctx, f); !isConflict(err) {
			break
		}
	}
	return named(what, err)
}

func (l *Ledger) once(ctx context.Context, f func(*tx) error) error {
	began, err := l.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer began.Rollback()
	one := &tx{querier: querier{began, l.postgres}, now: l.now()}
	if err := f(one); err != nil {
		return err
	}
	if err := began.Commit(); err != nil {
		return err
	}
	if one.allEnded {
		select {
		case l.allEnded <- struct{}{}:
		default: // it is rung for already
		}
	}
	return nil
}

// isConflict says whether PostgreSQL ended a transaction because of another one: serialization_failure,
// deadlock_detected.
func isConflict(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")
}

// named says where an error came from, unless it is one that callers know.
func named(what string, err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{
		ErrNothing, ErrLost, ErrUnknownBox, ErrCode, ErrNameTaken, ErrChanged,
		store.ErrNotFound, store.ErrExists, store.ErrFull, store.ErrKeyUsed, store.ErrHeld, errInvalid,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	err = fmt.Errorf("the fleet's database: %s: %w", what, store.AsKnown(err))
	if isAway(err) {
		return &lab.AwayError{What: "the fleet's database", Err: err}
	}
	return err
}

// isAway says whether PostgreSQL cannot be reached, starts, stops or has no room for connections. A wrong password or a
// database that does not exist is for a person to put right.
func isAway(err error) bool {
	var answer *pgconn.PgError
	var connect *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, sql.ErrConnDone):
		return false
	case errors.As(err, &answer): // connection exceptions, too many connections, operator intervention
		return strings.HasPrefix(answer.Code, "08") || answer.Code == "53300" || strings.HasPrefix(answer.Code, "57P")
	case errors.As(err, &connect):
		return true
	case errors.As(err, &network):
		return !errors.Is(err, context.DeadlineExceeded) // the caller's
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}

// errInvalid marks errors about what a caller passed in.
var errInvalid = errors.New("invalid")

// found turns a missing row into another error.
func found(err, missing error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return missing
	}
	return err
}

// at and from change times to and from what the tables hold; 0 is no time.
func at(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func from(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// text is a value as JSON. The values are of our own types, which JSON can hold.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("ledger: %T as JSON: %v", v, err))
	}
	return string(b)
}

// hashOf is the SHA-256 of a secret, in hexadecimal.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
