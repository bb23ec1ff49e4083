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

// made makes a database of a file of SQL.
func made(t *testing.T, path, script string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/schemas", script))
	if err != nil {
		t.Fatal(err)
	}
	change(t, path, string(text))
}

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

// A queue of each schema that was released opens with its jobs and keys, twice.
func TestQueueOfEachSchema(t *testing.T) {
	for _, script := range []string{"queue-1.sql", "queue-2.sql", "queue-3.sql"} {
		t.Run(script, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "queue.db")
			made(t, path, script)
			for range 2 {
				checkOldQueue(t, path, script != "queue-1.sql")
			}
		})
	}
}

func checkOldQueue(t *testing.T, path string, keys bool) {
	t.Helper()
	q, err := OpenQueue(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	all, err := q.Jobs(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("Jobs() = %d jobs, %v; want 3", len(all), err)
	}
	for i, want := range []struct{ id, device, state, page string }{
		{"20260101-120000-failed", "air", StateFailed, "https://x.test/"},
		{"20260101-110000-runs", "laptop", StateInterrupted, "https://x.test/"},
		{"20260101-100000-waits", "laptop", StateQueued, "https://x.test/"},
	} {
		if j := all[i]; j.ID != want.id || j.Device != want.device || j.State != want.state || j.Plan.Page != want.page || j.PlanError != nil {
			t.Errorf("job %+v, want %+v and its plan", j, want)
		}
	}
	if p := all[2].Plan; p.Trials != 7 || p.Link != "4g" || p.Name != "waits" || !all[2].Created.Equal(time.Unix(1_767_261_600, 0)) {
		t.Errorf("plan %+v of %v; want 7 trials over 4g", p, all[2].Created)
	}
	id, err := q.Known(t.Context(), Once{"nightly-7", "digest"})
	if known := err == nil && id == "20260101-100000-waits"; known != keys {
		t.Errorf("Known() = %q, %v; want the key known: %v", id, err, keys)
	}
}

// A queue of a later version is refused, and stays as it is, byte for byte.
func TestLaterQueueIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	made(t, path, "queue-3.sql")
	change(t, path, fmt.Sprintf(`PRAGMA journal_mode=WAL; PRAGMA user_version = %d; ALTER TABLE jobs ADD COLUMN colour TEXT`, len(queueSteps())+1))
	before := sumOf(t, path)
	_, err := OpenQueue(t.Context(), path)
	if err == nil || !strings.Contains(err.Error(), "its version is 4, and this appliance knows 3: it was written by a newer one") || Damaged(err) {
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
func TestIndexOfEachSchema(t *testing.T) {
	scripts, err := filepath.Glob("testdata/schemas/index-*.sql")
	if err != nil || len(scripts) != 5 {
		t.Fatalf("%d scripts (%v), want 5", len(scripts), err)
	}
	for _, script := range scripts {
		for _, later := range []bool{false, true} {
			root := t.TempDir()
			f, err := Create(root, &lab.Run{ID: "20260101-100000-a", State: StateDone, Wall: time.Unix(1, 0).UTC(), Page: "https://x.test/"})
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(root, "index.db")
			made(t, path, filepath.Base(script))
			if later {
				change(t, path, fmt.Sprintf(`PRAGMA user_version = %d`, schemaVersion+1))
			}
			s, err := Open(t.Context(), root, nil)
			if err != nil {
				t.Fatalf("%s: %v", script, err)
			}
			all, err := s.Runs(t.Context(), "", 0)
			if err != nil || len(all) != 1 || all[0].ID != "20260101-100000-a" || s.index.memory {
				t.Errorf("%s (later: %v): Runs() = %+v, %v; want the run, from a file", script, later, all, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
