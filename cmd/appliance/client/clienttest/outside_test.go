package clienttest

import (
	"os"
	"path/filepath"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// TestOutside: a program of another module uses the client, as docs/api.md says.
func TestOutside(t *testing.T) {
	testlab.Long(t, "compiles the client and all that it imports once more, as a module of another does")
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/outside")); err != nil {
		t.Fatal(err)
	}
	do(t, dir, nil, "go", "mod", "init", "shop.example/outside")
	do(t, dir, nil, "go", "mod", "edit", "-require", "eidetic@v0.0.0", "-replace", "eidetic="+root)
	do(t, dir, nil, "go", "mod", "tidy")
	do(t, dir, nil, "go", "build", "-o", "outside", ".")
	b := start(t)
	if got := do(t, dir, nil, "./outside", b.URL, b.Fingerprint); got != "ok true\n" {
		t.Errorf("the program printed %q; want ok true", got)
	}
}

// start starts a box for a test.
func start(t *testing.T) *Box {
	t.Helper()
	b, err := Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}
