package service

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// The data folder is its owner's alone, also one that an earlier version made for everybody.
func TestDataFolderIsPrivate(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	mode := func(dir string) os.FileMode {
		t.Helper()
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	fresh := filepath.Join(t.TempDir(), "a", "b")
	if DataFolder(fresh, log); mode(fresh) != 0o700 {
		t.Errorf("a new data folder has the mode %v, want 0700", mode(fresh))
	}
	for name, want := range map[string]os.FileMode{queueFile: 0o700, "notes.txt": 0o755} {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if DataFolder(dir, log); mode(dir) != want {
			t.Errorf("a folder with %s has the mode %v, want %v", name, mode(dir), want)
		}
	}
}
