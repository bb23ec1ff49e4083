package automation

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
)

// old makes the file of a box of version 1, with one of everything; testdata/automation-1.sql
// is the schema as it was released.
func old(t *testing.T, more ...string) (path string) {
	t.Helper()
	text, err := os.ReadFile("testdata/automation-1.sql")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "automation.db")
	db, _, err := store.OpenDatabase(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statements := range append([]string{string(text)}, more...) {
		if _, err := db.ExecContext(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestFileOfEachSchema(t *testing.T) {
	runs, err := store.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	k, err := Open(t.Context(), Config{File: old(t), Store: runs})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if w, err := k.Workflow(t.Context(), "checkout", 1); err != nil || w.Plan.Trials != 5 || w.Tags[0] != "team-checkout" {
		t.Errorf("Workflow() = %+v, %v; want version 1, with 5 trials and its tag", w, err)
	}
	if s, err := k.Schedule(t.Context(), "nightly"); err != nil || s.Cron != "30 2 * * 1-5" {
		t.Errorf("Schedule() = %+v, %v; want its times", s, err)
	}
	if f, err := k.Firings(t.Context(), "nightly", 10); err != nil || len(f) != 1 || f[0].Run != "20260101-100000-a" {
		t.Errorf("Firings() = %+v, %v; want one", f, err)
	}
	if h, err := k.Hook(t.Context(), "abc"); err != nil || h.URL != "https://127.0.0.1:1/" {
		t.Errorf("Hook() = %+v, %v; want its address", h, err)
	}
	if d, err := k.Deliveries(t.Context(), "abc", "waiting", 0, 10); err != nil || len(d) != 1 {
		t.Errorf("Deliveries() = %+v, %v; want one that waits", d, err)
	}
	if a, err := k.Alerts(t.Context(), Filter{Open: true, Limit: 10}); err != nil || len(a) != 1 || a[0].Run != "20260101-100000-a" {
		t.Errorf("Alerts() = %+v, %v; want one that is open", a, err)
	}
}

// A file of a later version is refused, and stays as it is.
func TestLaterFileIsRefused(t *testing.T) {
	path := old(t, `PRAGMA user_version = 2; CREATE TABLE colours (name TEXT)`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	err = CheckFile(t.Context(), path)
	if err == nil || !strings.Contains(err.Error(), "its version is 2, and this appliance knows 1") || store.Damaged(err) {
		t.Errorf("CheckFile() = %v (damaged: %v); want a refusal that names both versions", err, store.Damaged(err))
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed (%v)", err)
	}
}
