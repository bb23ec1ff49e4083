package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/tell/report/reporttest"
)

// A box's run comes out of it, and into another data folder.
func TestBackupAndRestoreCommands(t *testing.T) {
	b := newTestBox(t, alone)
	f, err := store.Create(b.data, reporttest.Run(1, 6))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) (status int, out, err string) {
		var stdout, stderr bytes.Buffer
		status = run(t.Context(), args, &streams{strings.NewReader(""), &stdout, &stderr})
		return status, stdout.String(), stderr.String()
	}
	t.Setenv(tokenVariable, b.token)
	file := filepath.Join(t.TempDir(), "box.tar")
	if status, out, said := command("backup", "--box", b.url(), "--out", file); status != exitGood || !strings.Contains(said, "1 runs") || out != "" {
		t.Fatalf("backup: status %d, %q, %q; want a run", status, out, said)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup's mode is %v (%v), want 0600: recordings are in it", info.Mode(), err)
	}
	if status, out, _ := command("backup", "--box", b.url()); status != exitGood || !strings.HasPrefix(out, "backup.json") {
		t.Errorf("backup to the standard output: status %d, %.20q", status, out)
	}
	if status, out, said := command("restore", "--check", file); status != exitGood || !strings.Contains(out, "1 runs") {
		t.Errorf("restore --check: status %d, %q, %q", status, out, said)
	}
	data := filepath.Join(t.TempDir(), "new")
	if status, _, said := command("restore", file, "--data", data); status != exitGood {
		t.Fatalf("restore: status %d, %q", status, said)
	}
	if _, err := os.Stat(filepath.Join(data, "runs", "20261121-091400-demo", "run.json")); err != nil {
		t.Error(err)
	}
	if status, _, said := command("restore", file, "--data", data); status != exitUsage || !strings.Contains(said, "--replace") {
		t.Errorf("restore into a folder that is not empty: status %d, %q; want wrong usage that names --replace", status, said)
	}
	if status, _, said := command("restore", file, "--data", data, "--replace"); status != exitGood {
		t.Errorf("restore --replace: status %d, %q", status, said)
	}
	half, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, half[:len(half)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, said := command("restore", file, "--data", data, "--replace"); status != exitFailed || !strings.Contains(said, "nothing was changed") {
		t.Errorf("restore of half a file: status %d, %q; want a failure that says that nothing was changed", status, said)
	}
	fresh := filepath.Join(t.TempDir(), "fresh")
	if status, _, said := command("restore", file, "--data", fresh); status != exitFailed {
		t.Errorf("restore of half a file into a new folder: status %d, %q", status, said)
	}
	if _, err := os.Lstat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made and left: %v", err)
	}
	if status, _, said := command("restore", file); status != exitUsage || !strings.Contains(said, "--check") {
		t.Errorf("restore without a folder: status %d, %q", status, said)
	}
}
