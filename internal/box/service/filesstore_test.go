package service

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

func TestFilesStore(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"file://" + t.TempDir() + "/files", ""},
		{"file://host/files", "is no address of a store"},
		{"file:files", "is no address of a store"},
		{"/files", "is no address of a store"},
		{"s3://", "is no address of a store"},
		{"s3://user:secret@bucket", "is no address of a store"},
		{"s3://user:secret@bu%zzcket", "is no address of a store"},
		{"s3://bucket", "the endpoint is missing"},
		{"s3://bucket?endpoint=https://host.example&acl=public", `"acl" is no parameter`},
		{"https://bucket.example", "is no address of a store"},
	} {
		s, err := FilesStore(t.Context(), c.text, slog.New(slog.DiscardHandler))
		if c.want == "" && (err != nil || s == nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("FilesStore(%s) = %v, %v; want an error with %q", c.text, s, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("FilesStore(%s) = %v: it shows the password", c.text, err)
		}
	}
	if s, err := FilesStore(t.Context(), "", nil); s != nil || err != nil {
		t.Errorf("FilesStore() = %v, %v; want a folder of the head's own", s, err)
	}
}

// A head that starts before its store, as after a power cut, says so and waits. One that the store refuses does not.
func TestFilesStoreIsAway(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	var refusal atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if status := int(refusal.Load()); status != 0 {
			w.WriteHeader(status)
			return
		}
		fmt.Fprint(w, `<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>`)
	}))
	defer server.Close()
	address := "s3://runs?region=us-east-1&endpoint=" + url.QueryEscape(server.URL)
	refusal.Store(http.StatusServiceUnavailable)
	read, write := io.Pipe()
	opened := make(chan error, 1)
	go func() {
		_, err := FilesStore(t.Context(), address, slog.New(slog.NewTextHandler(write, nil)))
		_ = write.Close() // never returns an error
		opened <- err
	}()
	said := make([]byte, 1000)
	n, err := read.Read(said)
	if err != nil || !strings.Contains(string(said[:n]), "the head waits for it") || !strings.Contains(string(said[:n]), server.URL) {
		t.Fatalf("the head says %q, %v; want that it waits, and for what", said[:n], err)
	}
	refusal.Store(0)
	if _, err := io.Copy(io.Discard, read); err != nil {
		t.Error(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("FilesStore() = %v; want nil once the store is there", err)
	}
	refusal.Store(http.StatusForbidden)
	if _, err := FilesStore(t.Context(), address, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "allow them to list") {
		t.Errorf("FilesStore() of a store that refuses = %v; want that, and what to do", err)
	}
}
