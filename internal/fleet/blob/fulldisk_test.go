package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/blob/blobtest"
	"eidetic/internal/rigs/testlab"
)

// A disk that others fill in the middle of an upload: the head says so, keeps what it has, and goes on when there is
// room.
func TestFullDisk(t *testing.T) {
	testlab.NeedRoot(t)
	if err := testlab.OnSmallDisk(t.TempDir(), uploadToFullDisk); err != nil {
		t.Error(err)
	}
}

// uploadToFullDisk calls the handler itself, because only its thread sees the small disk.
func uploadToFullDisk(dir string) error {
	u, store, err := uploads(dir, nil)
	if err != nil {
		return err
	}
	const size = 2 << 20
	digest, content := blobtest.Content(1, size)
	other := filepath.Join(dir, "somebody-else's")
	w := servePatch(u, digest, 0, io.MultiReader(bytes.NewReader(content[:size/2]), filler{other}, bytes.NewReader(content[size/2:])))
	offset, err := strconv.Atoi(w.Header().Get("Upload-Offset"))
	if w.Code != http.StatusInsufficientStorage || err != nil || offset < size/2 || offset >= size {
		return fmt.Errorf("PATCH onto a disk that fills up: %d, Upload-Offset: %q: %s; want 507 and an offset behind the first half", w.Code, w.Header().Get("Upload-Offset"), w.Body)
	}
	small, more := blobtest.Content(2, 100_000)
	if err := store.Put(context.Background(), small, int64(len(more)), bytes.NewReader(more)); !errors.Is(err, blob.ErrNoRoom) {
		return fmt.Errorf("Put() onto a full disk = %w; want ErrNoRoom", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "blobs", "tmp")); err != nil || len(left) != 0 {
		return fmt.Errorf("Put() onto a full disk leaves %v, %w; want nothing", left, err)
	}
	if err := os.Remove(other); err != nil {
		return err
	}
	if w = servePatch(u, digest, offset, bytes.NewReader(content[offset:])); w.Code != http.StatusNoContent || w.Header().Get("Upload-Complete") != "?1" {
		return fmt.Errorf("PATCH when there is room again: %d %s; want 204 and that it is whole", w.Code, w.Body)
	}
	if got, err := blobtest.Read(context.Background(), store, digest); err != nil || !bytes.Equal(got, content) {
		return fmt.Errorf("the store has %d bytes, %w; want the content", len(got), err)
	}
	return nil
}

func servePatch(u *blob.Uploads, digest string, offset int, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPatch, "/"+digest, body)
	r.Header = http.Header{"Content-Type": {"application/offset+octet-stream"}, "Upload-Offset": {strconv.Itoa(offset)}, "Upload-Length": {strconv.Itoa(2 << 20)}}
	w := httptest.NewRecorder()
	u.Handler(owner).ServeHTTP(w, r)
	return w
}

// filler is a reader without content that fills the disk.
type filler struct{ path string }

func (f filler) Read([]byte) (int, error) {
	file, err := os.Create(f.path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return 0, err
	}
	return 0, io.EOF
}
