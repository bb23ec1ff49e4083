package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/blob/blobtest"
)

// arrived fails the test unless the head has the blob and nothing unfinished of it.
func arrived(t testing.TB, h *head, digest string, content []byte) {
	t.Helper()
	got, err := blobtest.Read(t.Context(), h.store, digest)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("the head has %d bytes, %v; want the %d that were sent", len(got), err, len(content))
	}
	if left := h.staged(t); len(left) != 0 {
		t.Errorf("the staging folder has %v; want nothing", left)
	}
}

func TestSend(t *testing.T) {
	h := newHead(t, nil)
	for i, n := range []int{0, 1, 1 << 20, 1<<20 + 1, 5 << 20} {
		digest, content := blobtest.Content(uint64(i), n)
		var told int64
		p := fast()
		p.Progress = func(n int64) { told = n }
		for range 2 { // again costs nothing
			if err := blob.Send(t.Context(), h.Client(), h.address(digest), nil, bytes.NewReader(content), int64(n), p); err != nil {
				t.Fatalf("Send(%d bytes) = %v; want nil", n, err)
			}
			arrived(t, h, digest, content)
		}
		if told != int64(n) {
			t.Errorf("Progress was told %d; want %d", told, n)
		}
	}
}

// patch makes a request by hand and returns the answer with its body.
func patch(t testing.TB, h *head, digest string, offset, length int, body []byte, box string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, h.address(digest), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/offset+octet-stream"}, "Upload-Offset": {strconv.Itoa(offset)},
		"Upload-Length": {strconv.Itoa(length)}, "Box": {box}}
	return do(t, h, r)
}

func headOf(t testing.TB, h *head, digest, box string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, h.address(digest), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Box", box)
	response, _ := do(t, h, r)
	return response
}

func do(t testing.TB, h *head, r *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := h.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// says fails the test unless an answer has a status and headers: "404", "200 Upload-Offset=3".
func says(t testing.TB, what string, r *http.Response, want string) {
	t.Helper()
	words := strings.Fields(want)
	if got := strconv.Itoa(r.StatusCode); got != words[0] {
		t.Errorf("%s: status %s; want %s", what, got, words[0])
	}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		if got := r.Header.Get(name); got != value {
			t.Errorf("%s: %s: %q; want %q", what, name, got, value)
		}
	}
}

func TestProtocol(t *testing.T) {
	h := newHead(t, nil)
	digest, content := blobtest.Content(1, 100)
	says(t, "nothing is there", headOf(t, h, digest, "a"), "404 Upload-Offset=")
	r, _ := patch(t, h, digest, 10, 100, content[10:], "a")
	says(t, "begin in the middle", r, "409 Upload-Offset=0")
	r, _ = patch(t, h, digest, 0, 100, content[:40], "a")
	says(t, "the first piece", r, "204 Upload-Offset=40 Upload-Length=100 Upload-Complete=")
	says(t, "look", headOf(t, h, digest, "a"), "200 Upload-Offset=40 Upload-Length=100 Upload-Complete=")
	says(t, "another box looks", headOf(t, h, digest, "b"), "404")
	r, text := patch(t, h, digest, 0, 100, content[:40], "a")
	says(t, "the first piece again", r, "409 Upload-Offset=40")
	if !strings.Contains(text, `"type":"/problems/upload-offset"`) {
		t.Errorf("the answer is %s; want a problem", text)
	}
	r, _ = patch(t, h, digest, 0, 100, bytes.Repeat([]byte("x"), 50), "b")
	says(t, "another box sends other content", r, "204 Upload-Offset=50")
	r, _ = patch(t, h, digest, 40, 100, content[40:], "a")
	says(t, "the rest", r, "204 Upload-Offset=100 Upload-Length=100 Upload-Complete=?1")
	r, _ = patch(t, h, digest, 40, 100, content[40:], "a")
	says(t, "the rest once more, late", r, "204 Upload-Complete=?1")
	says(t, "another box looks", headOf(t, h, digest, "b"), "200 Upload-Offset=100 Upload-Length=100 Upload-Complete=?1")
	arrived(t, h, digest, content)

	digest, content = blobtest.Content(2, 100)
	r, _ = patch(t, h, digest, 0, 100, make([]byte, 100), "a")
	says(t, "wrong content", r, "422 Upload-Offset=")
	says(t, "it begins anew", headOf(t, h, digest, "a"), "404")
	r, _ = patch(t, h, digest, 0, 90, content[:30], "a")
	says(t, "a wrong length", r, "204 Upload-Offset=30")
	r, _ = patch(t, h, digest, 30, 100, content[30:], "a")
	says(t, "another length goes on", r, "409 Upload-Offset=0")
	r, _ = patch(t, h, digest, 0, 100, content, "a")
	says(t, "the right length", r, "204 Upload-Complete=?1")
	arrived(t, h, digest, content)
}

func TestProtocolRefuses(t *testing.T) {
	h := newHead(t, func(c *blob.UploadsConfig) { c.BlobBytes = 1000 })
	digest, content := blobtest.Content(1, 100)
	good := func() http.Header {
		return http.Header{"Content-Type": {"application/offset+octet-stream"}, "Upload-Offset": {"0"}, "Upload-Length": {"100"}}
	}
	for _, c := range []struct {
		name, method, digest string
		edit                 func(http.Header)
		status               int
		names                string
	}{
		{"no digest", "PATCH", "..%2f..%2fetc", nil, 400, "SHA-256"},
		{"upper case", "PATCH", strings.ToUpper(digest), nil, 400, "SHA-256"},
		{"GET", "GET", digest, nil, 405, "HEAD and PATCH"},
		{"another type", "PATCH", digest, func(h http.Header) { h.Set("Content-Type", "text/plain") }, 415, "Content-Type"},
		{"no type", "PATCH", digest, func(h http.Header) { h.Del("Content-Type") }, 415, "Content-Type"},
		{"encoded", "PATCH", digest, func(h http.Header) { h.Set("Content-Encoding", "gzip") }, 415, "Content-Encoding"},
		{"no offset", "PATCH", digest, func(h http.Header) { h.Del("Upload-Offset") }, 400, "Upload-Offset"},
		{"two offsets", "PATCH", digest, func(h http.Header) { h.Add("Upload-Offset", "0") }, 400, "Upload-Offset"},
		{"a negative offset", "PATCH", digest, func(h http.Header) { h.Set("Upload-Offset", "-1") }, 400, "Upload-Offset"},
		{"a huge offset", "PATCH", digest, func(h http.Header) { h.Set("Upload-Offset", "9223372036854775808") }, 400, "Upload-Offset"},
		{"beyond the length", "PATCH", digest, func(h http.Header) { h.Set("Upload-Offset", "101") }, 400, "Upload-Offset"},
		{"no length", "PATCH", digest, func(h http.Header) { h.Del("Upload-Length") }, 400, "Upload-Length"},
		{"a length with a sign", "PATCH", digest, func(h http.Header) { h.Set("Upload-Length", "+100") }, 400, "Upload-Length"},
		{"too short a length", "PATCH", digest, func(h http.Header) { h.Set("Upload-Length", "99") }, 400, "Content-Length"},
		{"too large", "PATCH", digest, func(h http.Header) { h.Set("Upload-Length", "1001") }, 413, "1001 bytes"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, h.address(c.digest), bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = good()
		if c.edit != nil {
			c.edit(r.Header)
		}
		response, text := do(t, h, r)
		if response.StatusCode != c.status || !strings.Contains(text, c.names) || response.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s; want %d and a problem that names %s", c.name, response.StatusCode, text, c.status, c.names)
		}
	}
	if left := h.staged(t); len(left) != 0 {
		t.Errorf("the staging folder has %v; want nothing", left)
	}
}

// failing is content that cannot be read from an offset on.
type failing struct {
	io.ReaderAt
	from int64
	err  error
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		n, _ := f.ReaderAt.ReadAt(p[:max(0, f.from-off)], off)
		return n, f.err
	}
	return f.ReaderAt.ReadAt(p, off)
}

// An error of the file is not one of the network, and is not tried again.
func TestSendSaysWhatFailed(t *testing.T) {
	h := newHead(t, nil)
	digest, content := blobtest.Content(1, 3<<20)
	disk := errors.New("input/output error")
	for _, c := range []struct {
		name string
		from io.ReaderAt
		want error
	}{
		{"the disk fails", failing{bytes.NewReader(content), 2 << 20, disk}, disk},
		{"the file has become shorter", bytes.NewReader(content[:2<<20]), io.ErrUnexpectedEOF},
	} {
		err := blob.Send(t.Context(), h.Client(), h.address(digest), nil, c.from, int64(len(content)), fast())
		var local *blob.LocalError
		if !errors.As(err, &local) || !errors.Is(err, c.want) {
			t.Errorf("%s: Send() = %v; want a LocalError with %v", c.name, err, c.want)
		}
	}
	if err := blob.Send(t.Context(), h.Client(), h.address(digest), nil, bytes.NewReader(make([]byte, 3<<20)), 3<<20, fast()); !errors.Is(err, blob.ErrDigest) {
		t.Errorf("Send(other content) = %v; want ErrDigest", err)
	}
	if err := blob.Send(t.Context(), h.Client(), h.address(digest), nil, bytes.NewReader(content), 3<<20, fast()); err != nil {
		t.Errorf("Send() = %v; want nil", err)
	}
	arrived(t, h, digest, content)
}

// What the head refuses for good is not tried again.
func TestSendGivesUp(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		kind   string
	}{{403, "", ""}, {404, "", ""}, {409, `{"type":"/problems/lease-lost","detail":"old token"}`, "/problems/lease-lost"}, {413, `{"type":`, ""}} {
		asked := 0
		client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			asked++
			return &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {"application/problem+json"}},
				Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
		})}
		err := blob.Send(t.Context(), client, "http://head.test/x", nil, strings.NewReader("abc"), 3, fast())
		var status *blob.StatusError
		if !errors.As(err, &status) || status.Status != c.status || status.Type != c.kind || asked != 1 {
			t.Errorf("Send() = %v after %d requests; want a StatusError %d %s after 1", err, asked, c.status, c.kind)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	client := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
		cancel(nil)
		return nil, errors.New("no route to host")
	})}
	if err := blob.Send(ctx, client, "http://head.test/x", nil, strings.NewReader("abc"), 3, fast()); !errors.Is(err, context.Canceled) {
		t.Errorf("Send() = %v after the context's end; want %v", err, context.Canceled)
	}
	p := fast()
	p.Patience = 1 // nanosecond
	client.Transport = transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("no route to host") })
	if err := blob.Send(t.Context(), client, "http://head.test/x", nil, strings.NewReader("abc"), 3, p); err == nil || !strings.Contains(err.Error(), "no route") {
		t.Errorf("Send() = %v; want the last error after its patience", err)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
