// Package blobtest is the conformance suite of blob stores: in goes a way to make an empty store, out come failed
// tests.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"eidetic/internal/fleet/blob"
)

// Suite says how a kind of store is tried.
type Suite struct {
	// Open makes an empty store.
	Open func(t *testing.T) blob.Store
	// Large is the size of a blob that the store keeps in several pieces.
	Large int
	// Damage changes a byte of a blob behind the store's back.
	Damage func(t *testing.T, s blob.Store, digest string)
	// Age gives a blob an earlier time.
	Age func(t *testing.T, s blob.Store, digest string, at time.Time)
}

// Content makes bytes, always the same for a seed, and their digest.
func Content(seed uint64, n int) (digest string, content []byte) {
	content = make([]byte, n)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(n), byte(n >> 8), byte(n >> 16)})
	_, _ = random.Read(content) // never fails
	return Digest(content), content
}

// Digest is of content.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Put puts content and fails the test if that fails.
func Put(t testing.TB, s blob.Store, digest string, content []byte) {
	t.Helper()
	if err := s.Put(t.Context(), digest, int64(len(content)), bytes.NewReader(content)); err != nil {
		t.Fatalf("Put(%d bytes) = %v; want nil", len(content), err)
	}
}

// Read returns a blob's content.
func Read(ctx context.Context, s blob.Store, digest string) ([]byte, error) {
	b, err := s.Open(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return io.ReadAll(b)
}

// List returns all of a store's blobs.
func List(t testing.TB, s blob.Store) (all []blob.Info) {
	t.Helper()
	for info, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatalf("List() = %v; want no error", err)
		}
		all = append(all, info)
	}
	return all
}

// Run tries a kind of store.
func (c Suite) Run(t *testing.T) {
	for _, test := range []struct {
		name string
		f    func(t *testing.T, s blob.Store)
	}{
		{"put and read", c.putAndRead},
		{"seek", c.seek},
		{"refused content leaves nothing", c.refused},
		{"put again", c.again},
		{"put at once", c.atOnce},
		{"what has gone bad", c.damaged},
		{"names that are no digests", c.names},
		{"remove", c.remove},
		{"has renews the time", c.renew},
		{"list", c.list},
		{"place", c.place},
		{"the context's end", c.cancelled},
	} {
		t.Run(test.name, func(t *testing.T) { test.f(t, c.Open(t)) })
	}
}

func (c Suite) sizes() []int { return []int{0, 1, 1000, 300_000, c.Large} }

func (c Suite) putAndRead(t *testing.T, s blob.Store) {
	for i, n := range c.sizes() {
		digest, content := Content(uint64(i), n)
		if size, has, err := s.Has(t.Context(), digest); has || err != nil {
			t.Fatalf("Has() before Put = %d, %v, %v; want 0, false, nil", size, has, err)
		}
		Put(t, s, digest, content)
		if size, has, err := s.Has(t.Context(), digest); size != int64(n) || !has || err != nil {
			t.Errorf("Has() = %d, %v, %v; want %d, true, nil", size, has, err, n)
		}
		if got, err := Read(t.Context(), s, digest); err != nil || !bytes.Equal(got, content) {
			t.Errorf("read %d bytes, %v; want the %d that were put", len(got), err, n)
		}
	}
	missing, _ := Content(99, 10)
	if _, err := s.Open(t.Context(), missing); !errors.Is(err, blob.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open(missing) = %v; want ErrNotFound, which is fs.ErrNotExist", err)
	}
}

func (c Suite) seek(t *testing.T, s blob.Store) {
	digest, content := Content(1, 100_000)
	Put(t, s, digest, content)
	b, err := s.Open(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Size() != int64(len(content)) {
		t.Errorf("Size() = %d; want %d", b.Size(), len(content))
	}
	for _, c := range []struct {
		offset int64
		whence int
		want   int64
	}{{0, io.SeekEnd, 100_000}, {0, io.SeekStart, 0}, {70_000, io.SeekStart, 70_000}, {-10, io.SeekEnd, 99_990}, {5, io.SeekStart, 5}} {
		at, err := b.Seek(c.offset, c.whence)
		if err != nil || at != c.want {
			t.Fatalf("Seek(%d, %d) = %d, %v; want %d, nil", c.offset, c.whence, at, err, c.want)
		}
		want := content[at:min(int(at)+100, len(content))]
		got := make([]byte, len(want))
		if _, err := io.ReadFull(b, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("after Seek to %d: %v; want the bytes from there on", at, err)
		}
	}
	if _, err := b.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(b, content); err != nil {
		t.Error(err)
	}
}

func (c Suite) refused(t *testing.T, s blob.Store) {
	broken := errors.New("the network is down")
	for _, n := range c.sizes() {
		digest, content := Content(2, n)
		_, other := Content(3, n)
		size := int64(n)
		longer := append(bytes.Clone(content), 'x')
		for _, r := range []struct {
			name string
			from io.Reader
			size int64
			want error
		}{
			{"other content", bytes.NewReader(other), size, blob.ErrDigest},
			{"longer", bytes.NewReader(longer), size, blob.ErrDigest},
			{"longer, as said", bytes.NewReader(longer), size + 1, blob.ErrDigest},
			{"shorter", bytes.NewReader(content[:max(n-1, 0)]), size, blob.ErrDigest},
			{"breaks off", io.MultiReader(bytes.NewReader(content[:n/2]), iotest.ErrReader(broken)), size, broken},
		} {
			if n == 0 && (r.name == "other content" || r.name == "shorter") {
				continue // it is the same
			}
			if err := s.Put(t.Context(), digest, r.size, r.from); !errors.Is(err, r.want) {
				t.Errorf("Put(%d bytes, %s) = %v; want %v", n, r.name, err, r.want)
			}
			if _, has, err := s.Has(t.Context(), digest); has || err != nil {
				t.Fatalf("Has() after a refused Put = %v, %v; want false, nil", has, err)
			}
		}
	}
	if all := List(t, s); len(all) != 0 {
		t.Errorf("List() = %v; want nothing", all)
	}
}

func (c Suite) again(t *testing.T, s blob.Store) {
	digest, content := Content(4, 5000)
	Put(t, s, digest, content)
	Put(t, s, digest, content)
	if err := s.Put(t.Context(), digest, 5000, bytes.NewReader(make([]byte, 5000))); !errors.Is(err, blob.ErrDigest) {
		t.Errorf("Put(other content) of a blob that is there = %v; want ErrDigest", err)
	}
	if got, err := Read(t.Context(), s, digest); err != nil || !bytes.Equal(got, content) || len(List(t, s)) != 1 {
		t.Errorf("read %d bytes, %v, of %d blobs; want the content once", len(got), err, len(List(t, s)))
	}
}

func (c Suite) atOnce(t *testing.T, s blob.Store) {
	digest, content := Content(5, 200_000)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			from := io.Reader(bytes.NewReader(content))
			if i%2 == 1 {
				from = bytes.NewReader(make([]byte, len(content)))
			}
			err := s.Put(t.Context(), digest, int64(len(content)), from)
			if i%2 == 0 && err != nil || i%2 == 1 && !errors.Is(err, blob.ErrDigest) {
				t.Errorf("Put() beside others = %v", err)
			}
		})
	}
	group.Wait()
	if got, err := Read(t.Context(), s, digest); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v; want the content", len(got), err)
	}
}

func (c Suite) damaged(t *testing.T, s blob.Store) {
	digest, content := Content(6, 150_000)
	Put(t, s, digest, content)
	c.Damage(t, s, digest)
	got, err := Read(t.Context(), s, digest)
	if !errors.Is(err, blob.ErrDigest) || len(got) >= len(content) {
		t.Errorf("read %d bytes of a damaged blob, %v; want ErrDigest before the last", len(got), err)
	}
	Put(t, s, digest, content)
	if got, err := Read(t.Context(), s, digest); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v, after another Put; want the content", len(got), err)
	}
}

func (c Suite) names(t *testing.T, s blob.Store) {
	good, _ := Content(1, 1)
	for _, name := range []string{"", "..", "../../etc/passwd", good[:63], good + "0", "G" + good[1:], "A" + good[1:], good[:62] + "/x", good[:63] + "\x00"} {
		_, _, has := s.Has(t.Context(), name)
		_, open := s.Open(t.Context(), name)
		_, remove := s.Remove(t.Context(), name, time.Now())
		put := s.Put(t.Context(), name, 1, bytes.NewReader([]byte("x")))
		place := blob.Place(t.Context(), s, name, filepath.Join(t.TempDir(), "x"))
		for _, err := range []error{has, open, remove, put, place} {
			if err == nil || errors.Is(err, blob.ErrNotFound) {
				t.Errorf("%q is taken for a digest: %v", name, err)
			}
		}
	}
}

func (c Suite) remove(t *testing.T, s blob.Store) {
	digest, content := Content(7, 100)
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if removed, err := s.Remove(t.Context(), digest, future); removed || err != nil {
		t.Errorf("Remove(missing) = %v, %v; want false, nil", removed, err)
	}
	Put(t, s, digest, content)
	if removed, err := s.Remove(t.Context(), digest, past); removed || err != nil {
		t.Errorf("Remove(too young) = %v, %v; want false, nil", removed, err)
	}
	if _, has, err := s.Has(t.Context(), digest); !has || err != nil {
		t.Errorf("Has(too young to be removed) = %v, %v; want true, nil", has, err)
	}
	if removed, err := s.Remove(t.Context(), digest, future); !removed || err != nil {
		t.Errorf("Remove() = %v, %v; want true, nil", removed, err)
	}
	if _, has, err := s.Has(t.Context(), digest); has || err != nil {
		t.Errorf("Has(removed) = %v, %v; want false, nil", has, err)
	}
	Put(t, s, digest, content)
	if got, err := Read(t.Context(), s, digest); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v, after Remove and Put; want the content", len(got), err)
	}
}

func (c Suite) renew(t *testing.T, s blob.Store) {
	digest, content := Content(8, 100)
	Put(t, s, digest, content)
	old := time.Now().Add(-48 * time.Hour)
	c.Age(t, s, digest, old)
	if all := List(t, s); len(all) != 1 || time.Since(all[0].Time) < 47*time.Hour {
		t.Fatalf("List() = %v; want one blob of %v", all, old)
	}
	if _, has, err := s.Has(t.Context(), digest); !has || err != nil {
		t.Fatalf("Has() = %v, %v; want true, nil", has, err)
	}
	if all := List(t, s); len(all) != 1 || time.Since(all[0].Time) > time.Hour {
		t.Errorf("List() after Has() = %v; want one blob that is young", all)
	}
	if got, err := Read(t.Context(), s, digest); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v, after Has(); want the content", len(got), err)
	}
	c.Age(t, s, digest, old)
	Put(t, s, digest, content)
	if all := List(t, s); len(all) != 1 || time.Since(all[0].Time) > time.Hour {
		t.Errorf("List() after another Put() = %v; want one blob that is young", all)
	}
}

func (c Suite) list(t *testing.T, s blob.Store) {
	want := map[string]int64{}
	for i := range 25 {
		digest, content := Content(uint64(i), i)
		Put(t, s, digest, content)
		want[digest] = int64(i)
	}
	all := List(t, s)
	if len(all) != len(want) || !slices.IsSortedFunc(all, func(a, b blob.Info) int { return strings.Compare(a.Digest, b.Digest) }) {
		t.Errorf("List() has %d blobs; want %d, in order", len(all), len(want))
	}
	for _, info := range all {
		if size, ok := want[info.Digest]; !ok || size != info.Bytes || time.Since(info.Time).Abs() > time.Hour {
			t.Errorf("List() has %+v; want %d bytes, now", info, size)
		}
	}
	n := 0
	for range s.List(t.Context()) { // whoever has seen enough may leave
		if n++; n == 3 {
			break
		}
	}
}

func (c Suite) place(t *testing.T, s blob.Store) {
	digest, content := Content(9, 70_000)
	Put(t, s, digest, content)
	dir := t.TempDir()
	path := filepath.Join(dir, "reel")
	if err := blob.Place(t.Context(), s, digest, path); err != nil {
		t.Fatalf("Place() = %v; want nil", err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the placed file has %d bytes, %v; want the content", len(got), err)
	}
	if err := blob.Place(t.Context(), s, digest, path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Place() onto a file = %v; want fs.ErrExist", err)
	}
	if _, err := s.Remove(t.Context(), digest, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("after Remove() the placed file has %d bytes, %v; want the content", len(got), err)
	}
	if err := blob.Place(t.Context(), s, digest, filepath.Join(dir, "other")); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Place(removed) = %v; want ErrNotFound", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v; want one file", entries, err)
	}
}

func (c Suite) cancelled(t *testing.T, s blob.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	digest, content := Content(10, 100_000)
	Put(t, s, digest, content)
	cancel()
	other, more := Content(11, 100_000)
	if err := s.Put(ctx, other, int64(len(more)), bytes.NewReader(more)); !errors.Is(err, context.Canceled) {
		t.Errorf("Put() after the context's end = %v; want %v", err, context.Canceled)
	}
	for _, err := range s.List(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("List() after the context's end = %v; want %v", err, context.Canceled)
		}
	}
	if _, has, err := s.Has(t.Context(), other); has || err != nil {
		t.Errorf("Has() = %v, %v; want false, nil", has, err)
	}
}
