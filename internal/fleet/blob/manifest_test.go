package blob_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/blob/blobtest"
	"eidetic/internal/rigs/testlab"
)

func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManifest(t *testing.T) {
	dir := t.TempDir()
	large := strings.Repeat("v", 8<<20)
	writeFiles(t, dir, map[string]string{
		"run.json": "{}", "report.html": "<p>", "archive.wacz": "zip", "trials/001/trial.json": "{}", "trials/001/screen.reel": "reel",
		"trials/001/evidence.webm": "small", "trials/002/evidence.webm": large, "trials/001/filmstrip/strip-000.jpg": "",
		".lock": "x", "trials/.new/x": "x", "trials/001/.screen.reel.tmp": "x",
	})
	for _, err := range []error{
		os.Symlink("/etc/passwd", filepath.Join(dir, "passwd")), os.Symlink("trials", filepath.Join(dir, "same")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	l := blob.Lister{Stays: func(name string, bytes int64) bool { return path.Ext(name) == ".reel" || bytes >= 8<<20 }}
	var want []fleet.File
	for _, f := range []struct {
		name, content string
		stays         bool
	}{
		{"archive.wacz", "zip", false}, {"report.html", "<p>", false}, {"run.json", "{}", false}, {"trials/001/evidence.webm", "small", false},
		{"trials/001/filmstrip/strip-000.jpg", "", false}, {"trials/001/screen.reel", "reel", true}, {"trials/001/trial.json", "{}", false},
		{"trials/002/evidence.webm", large, true},
	} {
		want = append(want, fleet.File{Path: f.name, Bytes: int64(len(f.content)), SHA256: blobtest.Digest([]byte(f.content)), Stays: f.stays})
	}
	for range 2 {
		got, err := l.Manifest(t.Context(), dir)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Manifest() = %v and differs by (-want +got):\n%s", err, diff)
		}
	}
}

// A growing run is not read anew: a file that was read once need not be readable.
func TestManifestRemembers(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"run.json": "{}", "old.reel": "old"})
	past := time.Now().Add(-time.Hour)
	for _, name := range []string{"run.json", "old.reel"} {
		if err := os.Chtimes(filepath.Join(dir, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	var l blob.Lister
	manifest := func() map[string]string {
		t.Helper()
		files, err := l.Manifest(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		digests := map[string]string{}
		for _, f := range files {
			digests[f.Path] = f.SHA256
		}
		return digests
	}
	// The change time cannot be set: wait until it is old enough to be trusted.
	testlab.Await(t, "two known digests", func() bool { manifest(); return l.Known() >= 2 })
	// The same length and time, other content, as a program makes that sets times: the change time tells.
	if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "run.json"), past, past); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{"new.json": "new"})
	want := map[string]string{"run.json": blobtest.Digest([]byte("[]")), "old.reel": blobtest.Digest([]byte("old")), "new.json": blobtest.Digest([]byte("new"))}
	if diff := cmp.Diff(want, manifest()); diff != "" {
		t.Errorf("Manifest() of a changed folder differs (-want +got):\n%s", diff)
	}
}

func TestManifestRefuses(t *testing.T) {
	for name, want := range map[string]string{"back\\slash": "is no path", "new\nline": "is no path"} {
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{name: "x"})
		if _, err := new(blob.Lister).Manifest(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Manifest(a file %q) = %v; want an error with %q", name, err, want)
		}
	}
	if _, err := new(blob.Lister).Manifest(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Manifest(no folder) = %v; want fs.ErrNotExist", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a": "a"})
	if _, err := new(blob.Lister).Manifest(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("Manifest() after the context's end = %v; want %v", err, context.Canceled)
	}
}

func TestManifestOfTooMany(t *testing.T) {
	dir := t.TempDir()
	for i := range fleet.MaxFiles + 1 {
		f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if _, err := new(blob.Lister).Manifest(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("Manifest(%d files) = %v; want that they are too many", fleet.MaxFiles+1, err)
	}
}
