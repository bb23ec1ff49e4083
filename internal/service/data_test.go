package service

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
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

// A run is refused while the disk takes none.
func TestRunsAreRefusedOnAFullDisk(t *testing.T) {
	for want, st := range map[string]unix.Statfs_t{
		"":                            {Bsize: 4096, Bavail: 1 << 20},
		"the disk is full (1 MB free": {Bsize: 4096, Bavail: 256},
		"is read-only":                {Bsize: 4096, Bavail: 1 << 20, Flags: unix.ST_RDONLY},
	} {
		if got := problemOf(st); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("problemOf(%+v) = %q, want %q", st, got, want)
		}
	}
	gone := filepath.Join(t.TempDir(), "gone")
	r := &runner{data: gone, devices: &deviceList{}}
	if _, err := r.Accept(t.Context(), lab.Plan{}); err == nil || !strings.Contains(err.Error(), "the data folder cannot be used") {
		t.Errorf("Accept() = %v, want that the data folder cannot be used", err)
	}
	r.data = t.TempDir()
	if _, err := r.Accept(t.Context(), lab.Plan{}); err == nil || !strings.Contains(err.Error(), "there is no device") {
		t.Errorf("Accept() on a disk with room = %v, want that there is no device", err)
	}
}
