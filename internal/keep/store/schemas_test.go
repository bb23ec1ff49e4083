package store

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// change carries out statements in a database file.
func change(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), statements)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// A queue of a later version is refused, and stays as it is, byte for byte.
func TestLaterQueueIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	q, err := OpenQueue(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	change(t, path, fmt.Sprintf(`PRAGMA journal_mode=WAL; PRAGMA user_version = %d; ALTER TABLE jobs ADD COLUMN colour TEXT`, len(queueSteps())+1))
	before := sumOf(t, path)
	_, err = OpenQueue(t.Context(), path)
	if err == nil || !strings.Contains(err.Error(), "its version is 2, and this appliance knows 1: it was written by a newer one") || Damaged(err) {
		t.Errorf("OpenQueue() = %v (damaged: %v); want a refusal that names both versions", err, Damaged(err))
	}
	if after := sumOf(t, path); after != before {
		t.Error("the file was changed")
	}
}

func sumOf(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

// An index of any version, also of a later one, is made anew of the folders, and shows every run.
func TestIndexOfAnotherVersion(t *testing.T) {
	for _, version := range []int{1, schemaVersion + 1} {
		root := t.TempDir()
		f, err := Create(root, &lab.Run{ID: "20260101-100000-a", State: StateDone, Wall: time.Unix(1, 0).UTC(), Page: "https://x.test/"})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		change(t, filepath.Join(root, "index.db"), fmt.Sprintf(`CREATE TABLE runs (id TEXT); PRAGMA user_version = %d`, version))
		s, err := Open(t.Context(), root, nil)
		if err != nil {
			t.Fatalf("Open() with an index of version %d = %v; want a new index", version, err)
		}
		all, err := s.Runs(t.Context(), "", 0)
		if err != nil || len(all) != 1 || all[0].ID != "20260101-100000-a" || s.index.memory {
			t.Errorf("version %d: Runs() = %+v, %v; want the run, from a file", version, all, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
