package service

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/inspect"
	"eidetic/internal/web/panel"
	"eidetic/netlab/archive"
)

// wacz is a recording of one exchange with a body.
func wacz(t *testing.T, body string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.wacz")
	a := archive.New([]*lab.Exchange{{
		Method: "GET", URL: "http://a.test/", Status: 200, Protocol: "http/1.1", Response: lab.Message{Body: []byte(body)},
		Chunks: []lab.Chunk{{Bytes: len(body)}},
	}}, nil, nil, archive.CreateOptions{Wall: time.Unix(1_700_000_000, 0)})
	if err := archive.Save(path, a); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// An upload replaces another recording only when it names it.
func TestUploadReplacesOnlyWithIfMatch(t *testing.T) {
	a := Uploads{Dir: filepath.Join(t.TempDir(), "archives")}
	files := map[string][]byte{"one": wacz(t, "one"), "two": wacz(t, "two"), "three": wacz(t, "three")}
	put := func(match, body string) (panel.Archive, int) {
		t.Helper()
		got, err := a.Put(t.Context(), "shop.wacz", match, bytes.NewReader(files[body]), nil)
		var refused *panel.Refusal
		if errors.As(err, &refused) {
			return got, refused.Status
		}
		if err != nil {
			t.Fatal(err)
		}
		return got, http.StatusCreated
	}
	first, status := put("", "one")
	if status != http.StatusCreated || first.ETag == "" || first.Quality == nil || first.Quality.Score != 1 {
		t.Fatalf("the first upload: %d %+v, want 201 with its ETag and a quality of 1", status, first)
	}
	for _, c := range []struct {
		match, body string
		want        int
	}{
		{"", "one", 201}, // the same again: the answer was lost
		{"", "two", 412},
		{`"0-0"`, "two", 412},
		{first.ETag, "two", 201},
		{first.ETag, "three", 412},
		{"*", "three", 201},
	} {
		if _, got := put(c.match, c.body); got != c.want {
			t.Errorf("Put(If-Match %q, %q) = %d, want %d", c.match, c.body, got, c.want)
		}
	}
	if _, err := a.Put(t.Context(), "none.wacz", "*", bytes.NewReader(wacz(t, "x")), nil); err == nil {
		t.Error("a recording that is not there was replaced")
	}
	needed := func() error { return errors.New("a suite replays it") } // one that began during the upload
	before, err := os.ReadFile(filepath.Join(a.Dir, "shop.wacz"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Put(t.Context(), "shop.wacz", "*", bytes.NewReader(files["one"]), needed)
	if err == nil || !strings.Contains(err.Error(), "a suite replays it") {
		t.Errorf("Put() in place of a recording that is needed by now = %v; want that it is", err)
	}
	if now, err := os.ReadFile(filepath.Join(a.Dir, "shop.wacz")); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the recording that is needed has other content, %v", err)
	}
}

// Of uploads that name the same ETag one replaces the recording, however close together they come: whoever compares it
// waits for whoever replaces it just now.
func TestOneUploadOfAnETagWins(t *testing.T) {
	a := Uploads{Dir: filepath.Join(t.TempDir(), "archives")}
	first, err := a.Put(t.Context(), "shop.wacz", "", bytes.NewReader(wacz(t, "first")), nil)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.wacz")
	if err := os.WriteFile(other, wacz(t, "other"), 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := a.lock()
	if err != nil {
		t.Fatal(err)
	}
	content, ended := wacz(t, "second"), make(chan error, 1)
	go func() {
		_, err := a.Put(t.Context(), "shop.wacz", first.ETag, bytes.NewReader(content), nil)
		ended <- err
	}()
	testlab.Await(t, "the upload that waits, or its end", func() bool {
		locks, err := os.ReadFile("/proc/locks")
		return err != nil || len(ended) > 0 || regexp.MustCompile(fmt.Sprintf(`-> FLOCK .* %d `, os.Getpid())).Match(locks)
	})
	if err := os.Rename(other, filepath.Join(a.Dir, "shop.wacz")); err != nil {
		t.Fatal(err)
	}
	release()
	var refused *panel.Refusal
	if err := <-ended; !errors.As(err, &refused) || refused.Status != http.StatusPreconditionFailed {
		t.Errorf("an upload beside one that named the same ETag and won: %v; want 412", err)
	}
}

// The answer to an upload says what is wrong with it.
func TestUploadOfADamagedRecording(t *testing.T) {
	a := Uploads{Dir: filepath.Join(t.TempDir(), "archives")}
	content := wacz(t, strings.Repeat("a page ", 1000))
	at := bytes.Index(content, []byte("\x1f\x8b")) // the first record
	second := at + 2 + bytes.Index(content[at+2:], []byte("\x1f\x8b"))
	content[second+40] ^= 0xff
	got, err := a.Put(t.Context(), "shop.wacz", "", bytes.NewReader(content), nil)
	if err != nil {
		return // refused is as good
	}
	if len(got.Warnings) == 0 || got.Quality.Score != 0 {
		t.Errorf("the upload of a damaged recording: %+v, want warnings and a score of 0", got)
	}
}

// What the checker refuses is no recording.
func TestUploadThatTheCheckerRefuses(t *testing.T) {
	a := Uploads{Dir: filepath.Join(t.TempDir(), "archives"), Check: inspect.Checker{Command: []string{"/bin/sh", "-c", "kill -9 $$"}}}
	_, err := a.Put(t.Context(), "shop.wacz", "", bytes.NewReader(wacz(t, "x")), nil)
	var refused *panel.Refusal
	if !errors.As(err, &refused) || refused.Status != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "more memory than it may") {
		t.Errorf("Put() = %v, want 422", err)
	}
}

// What is in a recording is found out in a process of its own, and a file that is none is refused by its name.
func TestContents(t *testing.T) {
	dir := t.TempDir()
	a := Uploads{Dir: dir}
	file := filepath.Join(dir, "shop.wacz")
	if err := os.WriteFile(file, wacz(t, "one"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := a.Contents(t.Context(), file)
	if err != nil || c.Exchanges != 1 || len(c.SHA256) != 64 || c.Quality.Score != 1 || len(c.Requests) != 1 || c.Requests[0].URL != "http://a.test/" ||
		c.Requests[0].Bytes != 3 {
		t.Errorf("Contents() = %+v, %v; want the one request", c, err)
	}
	if err := os.WriteFile(file, []byte("no recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *panel.Refusal
	if _, err = a.Contents(t.Context(), file); !errors.As(err, &refused) || refused.Status != http.StatusUnprocessableEntity || strings.Contains(err.Error(), dir) {
		t.Errorf("a file that is none: %v; want it refused, without its folder", err)
	}
}

// What another program wrote becomes a WACZ file, and the answer says so; what cannot be replayed is refused, and
// nothing is left of it.
func TestUploadIsImported(t *testing.T) {
	a := Uploads{Dir: filepath.Join(t.TempDir(), "archives")}
	har := `{"log":{"version":"1.2","creator":{"name":"x","version":"1"},"entries":[{"startedDateTime":"2026-11-21T09:14:00Z","time":5,
		"request":{"method":"GET","url":"https://a.test/","httpVersion":"HTTP/1.1","headers":[],"cookies":[],"queryString":[],"headersSize":-1,"bodySize":0},
		"response":{"status":200,"statusText":"OK","httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"text/html"}],"cookies":[],
		"content":{"size":2,"mimeType":"text/html","text":"hi"},"redirectURL":"","headersSize":-1,"bodySize":2},"cache":{},"timings":{"send":0,"wait":4,"receive":1}}]}}`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(har)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"plain.wacz": []byte(har), "packed.wacz": packed.Bytes(), "own.wacz": wacz(t, "one")} {
		got, err := a.Put(t.Context(), name, "", bytes.NewReader(content), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if said := slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, "was imported") }); said != (name != "own.wacz") {
			t.Errorf("%s says %q", name, got.Warnings)
		}
		report, err := a.Check.Check(t.Context(), filepath.Join(a.Dir, name))
		if err != nil || report.Refused != "" || report.Foreign || report.Info.Exchanges != 1 {
			t.Errorf("%s is kept as %+v, %v; want a WACZ file of one exchange", name, report, err)
		}
	}
	empty := strings.NewReader(`{"log":{"version":"1.2","creator":{"name":"x","version":"1"},"entries":[]}}`)
	_, err := a.Put(t.Context(), "empty.wacz", "", empty, nil)
	var refused *panel.Refusal
	if !errors.As(err, &refused) || refused.Status != http.StatusUnprocessableEntity {
		t.Errorf("a HAR without entries: %v; want 422", err)
	}
	left, err := filepath.Glob(filepath.Join(a.Dir, incoming+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
