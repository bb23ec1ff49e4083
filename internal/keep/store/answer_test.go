package store

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// A key is claimed once; its answer outlives a restart, and a claim without an answer is never given again.
func TestClaim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	q, err := OpenQueue(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	ctx, now := t.Context(), time.Unix(1_800_000_000, 0)
	mine, cut, refused := Once{"k1", "r1"}, Once{"k2", "r2"}, Once{"k3", "r3"}
	for _, o := range []Once{mine, cut, refused} {
		if a, err := q.Claim(ctx, o, now); a != nil || err != nil {
			t.Fatalf("Claim(%s) = %v, %v; want nil, nil", o.Key, a, err)
		}
		if a, err := q.Claim(ctx, o, now); a != nil || !errors.Is(err, ErrUnanswered) {
			t.Errorf("Claim(%s) again = %v, %v; want ErrUnanswered", o.Key, a, err)
		}
	}
	if _, err := q.AddOnce(ctx, onceJob("a", now), Once{"k1", "another"}); !errors.Is(err, ErrKeyUsed) {
		t.Errorf("AddOnce() with a key that was claimed: %v; want ErrKeyUsed", err)
	}
	if err := errors.Join(q.Answer(ctx, "k1", Answer{201, "h", []byte("body")}), q.Unclaim(ctx, "k3"), q.Close()); err != nil {
		t.Fatal(err)
	}
	if q, err = OpenQueue(ctx, path); err != nil {
		t.Fatal(err)
	}
	if a, err := q.Claim(ctx, mine, now); err != nil || a == nil || a.Status != 201 || a.Head != "h" || string(a.Body) != "body" {
		t.Errorf("Claim() after a restart = %+v, %v; want the answer", a, err)
	}
	if a, err := q.Claim(ctx, cut, now); a != nil || !errors.Is(err, ErrUnanswered) {
		t.Errorf("Claim() of what a restart cut off = %+v, %v; want ErrUnanswered", a, err)
	}
	if a, err := q.Claim(ctx, refused, now); a != nil || err != nil {
		t.Errorf("Claim() of what was released = %+v, %v; want nil, nil", a, err)
	}
	if _, err := q.Claim(ctx, Once{"k1", "another"}, now); !errors.Is(err, ErrKeyUsed) {
		t.Errorf("Claim() by another request: %v; want ErrKeyUsed", err)
	}
	later := now.Add(keysKept + time.Second)
	if _, err := q.Claim(ctx, Once{"k4", "r4"}, later); err != nil {
		t.Fatal(err)
	}
	if a, err := q.Claim(ctx, mine, later); a != nil || err != nil {
		t.Errorf("Claim() of a key that has expired = %+v, %v; want nil, nil", a, err)
	}
}

// A token that uses keys without number drives out its own: those of others are answered as before.
func TestOneTokenTakesItsShareOfTheKeys(t *testing.T) {
	q, err := OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	ctx, now := t.Context(), time.Unix(1_800_000_000, 0)
	claim := func(key string) (known bool) {
		t.Helper()
		a, err := q.Claim(ctx, Once{key, "r"}, now)
		if err != nil {
			t.Fatal(err)
		}
		if a != nil {
			return true
		}
		if err := q.Answer(ctx, key, Answer{Status: 201, Body: []byte{}}); err != nil {
			t.Fatal(err)
		}
		return false
	}
	others := []string{"nightly k", "a k", "a flood of k", "k"}
	for _, key := range others {
		claim(key)
	}
	// The queue as it is after so many requests; the next is a real one.
	if _, err := q.db.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO keys (key, request, job, created) SELECT 'a flood k' || i, 'r', '', ? FROM n`, 2*mostKeys, now.UnixNano()); err != nil {
		t.Fatal(err)
	}
	claim("a flood last")
	claim("a flood of k2")
	for _, key := range append(others, "a flood last", "a flood of k2") {
		if !claim(key) {
			t.Errorf("the answer to %q is forgotten, want that a flood drives out its own", key)
		}
	}
	var left int
	if err := q.db.QueryRowContext(ctx, `SELECT count(*) FROM keys WHERE key LIKE 'a flood k%' OR key = 'a flood last'`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != lab.ShareOf(mostKeys) {
		t.Errorf("%d keys of the flood are kept, want %d", left, lab.ShareOf(mostKeys))
	}
}
