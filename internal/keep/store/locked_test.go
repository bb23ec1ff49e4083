package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// impatient opens a database as [OpenQueue] does, but waits for a lock for a millisecond instead of seconds.
func impatient(t *testing.T, path string) *sql.DB {
	t.Helper()
	source := dsn(path, "FULL")
	db, err := sql.Open("sqlite", strings.Replace(source, "busy_timeout%285000%29", "busy_timeout%281%29", 1))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(source, "5000") != 1 {
		t.Fatalf("the source %s has no busy timeout of 5 s", source)
	}
	return db
}

// While another program has the queue's file locked, nothing is taken from or put into the queue; the error says so and
// that it is worth asking again, and afterwards everything is as it was.
func TestLockedQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	q, err := openQueue(t.Context(), impatient(t, path), path)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	job := func(id string) Job { return Job{ID: id, Device: "port", Created: time.Unix(1, 0)} }
	if err := q.Add(t.Context(), job("first")); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	held, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := held.ExecContext(t.Context(), `BEGIN EXCLUSIVE`); err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func(context.Context) error{
		"Add":     func(ctx context.Context) error { return q.Add(ctx, job("second")) },
		"AddOnce": func(ctx context.Context) error { _, err := q.AddOnce(ctx, job("second"), Once{"k", "r"}); return err },
		"Finish":  func(ctx context.Context) error { return q.Finish(ctx, "first") },
		"Claim":   func(ctx context.Context) error { _, err := q.Claim(ctx, Once{"c", "r"}, time.Unix(1, 0)); return err },
		"open":    func(ctx context.Context) error { _, err := openQueue(ctx, impatient(t, path), path); return err },
	} {
		err := try(t.Context())
		var away *lab.AwayError
		if !errors.As(err, &away) || Damaged(err) || !strings.Contains(away.Error(), "another program has locked") {
			t.Errorf("%s while the file is locked: %v; want an error that says so, and not that it is damaged", what, err)
		}
	}
	if _, err := held.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := q.Add(t.Context(), job("second")); err != nil {
		t.Error(err)
	}
	all, err := q.Jobs(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != "second" || all[1].State != StateQueued {
		t.Errorf("afterwards the queue has %+v, %v; want the two jobs", all, err)
	}
}
