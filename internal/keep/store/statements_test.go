package store

import (
	"path/filepath"
	"testing"
)

// A statement is kept from its second use on, also where rows of it are open, its table changes, or it fails.
func TestStatementsAreKept(t *testing.T) {
	db, _, err := OpenDatabase(t.Context(), filepath.Join(t.TempDir(), "x.db"), []string{`CREATE TABLE t (n INTEGER PRIMARY KEY)`})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	sum := func() (n int) {
		t.Helper()
		if err := db.QueryRow(`SELECT sum(n) FROM t WHERE n > ?`, 0).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for n := range 10 {
		if _, err := db.Exec(`INSERT INTO t (n) VALUES (?)`, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(`INSERT INTO t (n) VALUES (?)`, 3); err == nil {
		t.Error("a second row 3 is no error")
	}
	for range 3 {
		if got := sum(); got != 45 {
			t.Errorf("sum = %d; want 45", got)
		}
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	outer, err := tx.Query(`SELECT n FROM t ORDER BY n LIMIT ?`, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	rows := 0
	for outer.Next() {
		var first int
		if err := tx.QueryRow(`SELECT n FROM t ORDER BY n LIMIT ?`, 1).Scan(&first); err != nil || first != 0 {
			t.Errorf("the first row = %d, %v; want 0, nil", first, err)
		}
		rows++
	}
	if rows != 3 || outer.Err() != nil {
		t.Errorf("%d rows, %v; want 3, nil", rows, outer.Err())
	}
	if _, err := tx.Exec(`ALTER TABLE t ADD COLUMN m INTEGER DEFAULT 1`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := sum(); got != 45 {
		t.Errorf("sum after a change of the table = %d; want 45", got)
	}
}
