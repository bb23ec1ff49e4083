package blob_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/blob/blobtest"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveEnv); dir != "" {
		serveUploads(dir)
	}
	if url := os.Getenv(sendEnv); url != "" {
		sendAsBox(url)
	}
	testlab.NoLeaks(m)
}

// inFolder is a store in a folder, with the folder.
type inFolder struct {
	*blob.Folder
	dir string
}

func openFolder(t testing.TB) inFolder {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "blobs")
	f, err := blob.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return inFolder{f, dir}
}

func (f inFolder) path(digest string) string {
	return filepath.Join(f.dir, digest[:2], digest[2:4], digest)
}

func damage(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], 10_000); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b[0] ^ 1}, 10_000); err != nil {
		t.Fatal(err)
	}
}

func TestFolder(t *testing.T) {
	dirs := map[blob.Store]inFolder{}
	blobtest.Suite{
		Open: func(t *testing.T) blob.Store {
			f := openFolder(t)
			dirs[f.Folder] = f
			return f.Folder
		},
		Large:  5 << 20,
		Damage: func(t *testing.T, s blob.Store, digest string) { damage(t, dirs[s].path(digest)) },
		Age: func(t *testing.T, s blob.Store, digest string, at time.Time) {
			if err := os.Chtimes(dirs[s].path(digest), at, at); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// A run's folder costs no second copy.
func TestPlaceLinks(t *testing.T) {
	f := openFolder(t)
	digest, content := blobtest.Content(1, 1000)
	blobtest.Put(t, f, digest, content)
	path := filepath.Join(f.dir, "of-a-run")
	if err := blob.Place(t.Context(), f.Folder, digest, path); err != nil {
		t.Fatal(err)
	}
	a, errA := os.Stat(path)
	b, errB := os.Stat(f.path(digest))
	if errA != nil || errB != nil || !os.SameFile(a, b) || a.Mode() != 0o600 {
		t.Errorf("the placed file is %v, %v, and the blob %v, %v; want one file of mode 0600", a, errA, b, errB)
	}
}

// A file system of its own cannot share files with the store.
func TestPlaceCopiesAcrossFileSystems(t *testing.T) {
	f := openFolder(t)
	other, err := os.MkdirTemp("/dev/shm", "eidetic-test-")
	testlab.Need(t, err == nil, "a second file system at /dev/shm; mount it with: mount -t tmpfs tmpfs /dev/shm")
	defer os.RemoveAll(other)
	digest, content := blobtest.Content(1, 1000)
	blobtest.Put(t, f, digest, content)
	path := filepath.Join(other, "of-a-run")
	if err := blob.Place(context.Background(), f.Folder, digest, path); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || blobtest.Digest(got) != digest {
		t.Errorf("the copy has %d bytes, %v; want the content", len(got), err)
	}
}
