package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestNamedFileIsWhole: a file that cannot be written to its end leaves what was there, and nothing where nothing was.
func TestNamedFileIsWhole(t *testing.T) {
	dir := t.TempDir()
	old, none := filepath.Join(dir, "old.trace"), filepath.Join(dir, "none.trace")
	if err := os.WriteFile(old, []byte("1\n2\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	half := func(w io.Writer) error {
		_, _ = io.WriteString(w, "1\n")
		return full
	}
	for _, path := range []string{old, none} {
		if err := writeNamed(path, half); !errors.Is(err, full) {
			t.Errorf("writeNamed(%s) = %v, want %v", path, err, full)
		}
	}
	entries, err := os.ReadDir(dir)
	if content, _ := os.ReadFile(old); string(content) != "1\n2\n3\n" || len(entries) != 1 || err != nil {
		t.Errorf("the older file has %q, and the folder %v, %v; want it as it was, alone", content, entries, err)
	}
	whole := func(w io.Writer) error { _, err := io.WriteString(w, "4\n"); return err }
	if err := errors.Join(writeNamed(old, whole), writeNamed(none, whole)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(none)
	if content, _ := os.ReadFile(old); string(content) != "4\n" || err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the files have %q and the mode %v, %v; want 4 and 0644", content, info.Mode(), err)
	}
}
