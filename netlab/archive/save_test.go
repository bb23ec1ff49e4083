package archive

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"

	"golang.org/x/sys/unix"
)

// Recordings hold cookies and passwords: whoever may read them stays the same.
func TestModesAreKept(t *testing.T) {
	defer unix.Umask(unix.Umask(0o027))
	path := filepath.Join(t.TempDir(), "a.wacz")
	if err := record1(t, path, sample()).Close(); err != nil {
		t.Fatal(err)
	}
	mode := func(want fs.FileMode) {
		t.Helper()
		if st, err := os.Stat(path); err != nil || st.Mode() != want {
			t.Errorf("mode %v, %v; want %v", st.Mode(), err, want)
		}
	}
	mode(0o640)
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []fs.FileMode{0o600, 0o664} {
		if err := errors.Join(os.Chmod(path, want), Save(path, a)); err != nil {
			t.Fatal(err)
		}
		mode(want)
	}
}

// A process that dies while it writes leaves its files, which block nobody.
func TestSaveAfterAKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.wacz")
	if err := record1(t, path, sample()).Close(); err != nil {
		t.Fatal(err)
	}
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := edit(path, a)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.file.Name()+".123.tmp", []byte("half a zip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Save(path, a); err == nil || !strings.Contains(err.Error(), "another process is writing it now") {
		t.Errorf("Save while another process writes: %v, want an error that says so", err)
	}
	if err := w.file.Close(); err != nil { // as the kernel does for a dead process
		t.Fatal(err)
	}
	if err := Save(path, a); err != nil {
		t.Errorf("Save after a process died in it: %v, want nil", err)
	}
	if names := dirNames(t, dir); len(names) != 1 {
		t.Errorf("the files %q are left, want the archive alone", names)
	}
	if again, err := Open(path); err != nil || len(again.Exchanges()) != len(a.Exchanges()) || len(again.Warnings()) > 0 {
		t.Errorf("Open after Save = %v, %v; want the same exchanges", again, err)
	}
}

// What is written can be read: the limits of both are the same.
func TestWriterKeepsTheLimits(t *testing.T) {
	limits := Limits{Decoded: 20_000, Record: 4000, Header: 1000}.withDefaults()
	get := func(name string, body int) *lab.Exchange {
		return &lab.Exchange{Wall: wall, Method: "GET", URL: "https://a.example/" + name, Protocol: "h2", Status: 200,
			Response: lab.Message{
				Header: []lab.HeaderField{{Name: "x", Value: strings.Repeat("y", 100)}},
				Body:   make([]byte, body),
			}, Chunks: []lab.Chunk{{Bytes: body}}}
	}
	path := filepath.Join(t.TempDir(), "a.wacz")
	w := record1(t, path, nil)
	w.limits = limits
	if err := w.Add(get("largest", 4000)); err != nil {
		t.Error(err)
	}
	for name, e := range map[string]*lab.Exchange{"a large body": get("body", 5100), "a long URL": get(strings.Repeat("u", 1000), 1)} {
		if err := w.Add(e); err == nil || !strings.Contains(err.Error(), "more than a reader takes") {
			t.Errorf("Add of %s: %v, want an error that it is more than a reader takes", name, err)
		}
	}
	n := 1
	for ; n < 10; n++ {
		if err := w.Add(get("more", 4000)); err != nil {
			if !strings.Contains(err.Error(), "record the rest to another one") {
				t.Error(err)
			}
			break
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := OpenReader(bytes.NewReader(data), int64(len(data)), limits)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Exchanges()) != n || n < 3 || n == 10 || len(a.Warnings()) > 0 {
		t.Errorf("%d exchanges are in the archive with the warnings %q; want %d (3 to 9), none", len(a.Exchanges()), a.Warnings(), n)
	}
}
