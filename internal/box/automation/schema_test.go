package automation

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
)

// A file of a later version is refused, and stays as it is.
func TestLaterFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "automation.db")
	db, _, err := store.OpenDatabase(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `PRAGMA user_version = 4; CREATE TABLE colours (name TEXT)`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	err = CheckFile(t.Context(), path)
	if err == nil || !strings.Contains(err.Error(), "its version is 4, and this appliance knows 3") || store.Damaged(err) {
		t.Errorf("CheckFile() = %v (damaged: %v); want a refusal that names both versions", err, store.Damaged(err))
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed (%v)", err)
	}
}
