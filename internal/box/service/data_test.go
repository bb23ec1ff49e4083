package service

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
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

// A data folder that cannot be made is told with the reason, unless there is room in memory.
func TestDataFolderCannotBeMade(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RUNTIME_DIRECTORY", "")
	for _, dir := range []string{file, filepath.Join(file, "data")} {
		if _, err := DataFolder(dir, log); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("DataFolder(%s) = %v; want that this is no folder", dir, err)
		}
	}
	t.Setenv("RUNTIME_DIRECTORY", "/run/appliance")
	if dir, err := DataFolder(filepath.Join(file, "data"), log); err != nil || dir != "/run/appliance" {
		t.Errorf("DataFolder() of a service of systemd = %q, %v; want its folder in memory", dir, err)
	}
}
