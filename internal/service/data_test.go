package service

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/testlab"
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
	testlab.NeedRoot(t)
	dir := t.TempDir()
	done := make(chan [3]string, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread's mounts end with it
		var got [3]string
		defer func() { done <- got }()
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
			got[0] = err.Error()
			return
		}
		mount := func(flags uintptr, options string) error { return unix.Mount("tmpfs", dir, "tmpfs", flags, options) }
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			got[0] = err.Error()
			return
		}
		for i, m := range []struct {
			flags   uintptr
			options string
		}{{0, "size=200m"}, {0, "size=1m"}, {unix.MS_RDONLY, "size=200m"}} {
			if err := mount(m.flags, m.options); err != nil {
				got[i] = err.Error()
				return
			}
			_, err := (&runner{data: dir, devices: &deviceList{}}).Accept(t.Context(), lab.Plan{})
			got[i] = err.Error()
		}
	}()
	for i, got := range <-done {
		if want := []string{"there is no device", "the disk is full (1 MB free", "is read-only"}[i]; !strings.Contains(got, want) {
			t.Errorf("case %d: %q, want %q", i, got, want)
		}
	}
}
