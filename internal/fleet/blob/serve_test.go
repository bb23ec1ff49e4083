package blob_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/internal/fleet/blob"
)

// serveEnv makes the test binary a head that receives uploads into the folder that it names.
const serveEnv = "EIDETIC_TEST_UPLOADS"

// uploads is a head's side over a folder: the store in dir/blobs, the staging folder beside it.
func uploads(dir string, edit func(*blob.UploadsConfig)) (*blob.Uploads, *blob.Folder, error) {
	f, err := blob.OpenFolder(filepath.Join(dir, "blobs"))
	if err != nil {
		return nil, nil, err
	}
	c := blob.UploadsConfig{Store: f, Dir: filepath.Join(dir, "staging"), Silence: time.Second}
	if edit != nil {
		edit(&c)
	}
	u, err := blob.OpenUploads(c)
	return u, f, err
}

// owner takes the header Box for who asks.
func owner(r *http.Request) string { return r.Header.Get("Box") }

func serveUploads(dir string) {
	u, _, err := uploads(dir, nil)
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", os.Getenv(serveEnv+"_ADDR")); err == nil {
			fmt.Println(l.Addr())
			err = http.Serve(l, u.Handler(owner))
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// head is a head that receives uploads.
type head struct {
	*httptest.Server
	uploads *blob.Uploads
	store   inFolder
	dir     string
}

func newHead(t testing.TB, edit func(*blob.UploadsConfig)) *head {
	t.Helper()
	dir := t.TempDir()
	u, f, err := uploads(dir, edit)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(u.Handler(owner))
	t.Cleanup(s.Close)
	return &head{s, u, inFolder{f, filepath.Join(dir, "blobs")}, dir}
}

func (h *head) address(digest string) string { return h.URL + "/fleet/v1/blobs/" + digest }

// staged lists the unfinished uploads.
func (h *head) staged(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(h.dir, "staging", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// fast does not wait long between attempts.
func fast() blob.Policy {
	return blob.Policy{Pause: time.Millisecond, MostPause: 50 * time.Millisecond, Patience: 3 * time.Minute, Silence: 30 * time.Second}
}
