package blob_test

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/blob/blobtest"
)

func refer(err error, digests ...string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, d := range digests {
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

func TestCollect(t *testing.T) {
	f := openFolder(t)
	now := time.Now()
	digests := map[string]string{} // name: digest
	for i, name := range []string{"old", "old and in use", "young", "told of"} {
		digest, content := blobtest.Content(uint64(i), 100)
		blobtest.Put(t, f, digest, content)
		digests[name] = digest
		if name != "young" {
			if err := os.Chtimes(f.path(digest), now.Add(-30*time.Hour), now.Add(-30*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Whoever was told of a blob is about to refer to it. It happens after the blobs were listed.
	references := func(yield func(string, error) bool) {
		if _, has, err := f.Has(t.Context(), digests["told of"]); !has || err != nil {
			t.Errorf("Has() = %v, %v; want true, nil", has, err)
		}
		yield(digests["old and in use"], nil)
	}
	left := func() (names []string) {
		for name, digest := range digests {
			if slices.ContainsFunc(blobtest.List(t, f), func(i blob.Info) bool { return i.Digest == digest }) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	database := errors.New("the database is away")
	for name, references := range map[string]iter.Seq2[string, error]{
		"references that break off": refer(database, digests["told of"]), "a reference that is none": refer(nil, "x"),
	} {
		if c, err := blob.Collect(t.Context(), f.Folder, references, now, 24*time.Hour, false, nil); err == nil || c.Removed != 0 || len(left()) != 4 {
			t.Errorf("Collect(%s) = %+v, %v and leaves %q; want an error and all", name, c, err, left())
		}
	}
	if _, err := blob.Collect(t.Context(), f.Folder, refer(nil), now, time.Minute, false, nil); err == nil || !strings.Contains(err.Error(), "grace") {
		t.Errorf("Collect(a minute) = %v; want that the grace time is too short", err)
	}
	var said []string
	say := func(i blob.Info) { said = append(said, i.Digest) }
	c, err := blob.Collect(t.Context(), f.Folder, refer(nil, digests["told of"], digests["old and in use"]), now, 24*time.Hour, true, say)
	if want := (blob.Collection{Removed: 1, RemovedBytes: 100, Kept: 3, KeptBytes: 300}); c != want || err != nil || len(left()) != 4 {
		t.Errorf("Collect(dry) = %+v, %v and leaves %q; want %+v and all", c, err, left(), want)
	}
	c, err = blob.Collect(t.Context(), f.Folder, references, now, 24*time.Hour, false, say)
	if want := (blob.Collection{Removed: 1, RemovedBytes: 100, Kept: 3, KeptBytes: 300}); c != want || err != nil {
		t.Errorf("Collect() = %+v, %v; want %+v, nil", c, err, want)
	}
	if want := []string{"old and in use", "told of", "young"}; !slices.Equal(left(), want) {
		t.Errorf("Collect() leaves %q; want %q", left(), want)
	}
	if want := []string{digests["old"], digests["old"]}; !slices.Equal(said, want) {
		t.Errorf("Collect() said that it removes %q; want %q", said, want)
	}
}

// What a crash leaves in the folder's tmp goes, and a blob that was half removed is there again.
func TestCollectAfterCrash(t *testing.T) {
	f := openFolder(t)
	digest, content := blobtest.Content(1, 100)
	blobtest.Put(t, f, digest, content)
	past := time.Now().Add(-30 * time.Hour)
	if err := os.Rename(f.path(digest), filepath.Join(f.dir, "tmp", digest+".gone")); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, filepath.Join(f.dir, "tmp"), map[string]string{"0123.put": "half", "new.put": "half"})
	for _, name := range []string{digest + ".gone", "0123.put"} {
		if err := os.Chtimes(filepath.Join(f.dir, "tmp", name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := blob.Collect(t.Context(), f.Folder, refer(nil, digest), time.Now(), 24*time.Hour, false, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := blobtest.Read(t.Context(), f, digest); err != nil || len(got) != len(content) {
		t.Errorf("read %d bytes, %v; want the blob that was half removed", len(got), err)
	}
	if left, err := os.ReadDir(filepath.Join(f.dir, "tmp")); err != nil || len(left) != 1 || left[0].Name() != "new.put" {
		t.Errorf("tmp has %v, %v; want what is being put", left, err)
	}
}

// Whoever was told that a blob is there finds it, however close a Remove is.
func TestRemoveBesideHas(t *testing.T) {
	f := openFolder(t)
	digest, content := blobtest.Content(1, 10)
	blobtest.Put(t, f, digest, content)
	long, before := time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	told := 0
	for range 5000 {
		if err := os.WriteFile(f.path(digest), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(f.path(digest), long, long); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := f.Remove(t.Context(), digest, before)
			done <- err
		}()
		_, has, err := f.Has(t.Context(), digest)
		if removed := <-done; err != nil || removed != nil {
			t.Fatalf("Has() and Remove() at once = %v and %v; want nil", err, removed)
		}
		if has {
			told++
			if _, err := os.Stat(f.path(digest)); err != nil {
				t.Fatalf("Has() said that there is a blob, and Remove() removed it: %v", err)
			}
		}
	}
	if told == 0 {
		t.Error("Has() never found the blob; want that it does now and then")
	}
}
