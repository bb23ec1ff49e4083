package head

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet/blob"
)

// Strangers who ask to join again and again, by long names, leave few short lines in the log, which counts the others.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(1_800_000_000, 0)
	dir := t.TempDir()
	blobs, err := blob.OpenFolder(filepath.Join(dir, "files"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Over(nil, Config{
		Data: dir, Blobs: blobs, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		t.Helper()
		body := strings.NewReader(`{"code":"x","name":"` + strings.Repeat("A", 100_000) + `","offer":{}}`)
		r := httptest.NewRequest(http.MethodPost, "/fleet/v1/join", body)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Raw: []byte("a certificate")}}}
		w := httptest.NewRecorder()
		h.BoxHandler().ServeHTTP(w, r)
		if w.Code != http.StatusUnprocessableEntity {
			t.Fatalf("join = %d %.200s; want 422", w.Code, w.Body)
		}
	}
	for range refusalsPerMinute + 5 {
		ask()
	}
	if n := strings.Count(log.String(), "may not join"); n != refusalsPerMinute || log.Len() > refusalsPerMinute*1000 {
		t.Errorf("%d entries of %d bytes; want %d of at most 1,000 each", n, log.Len(), refusalsPerMinute)
	}
	now = now.Add(2 * time.Minute)
	log.Reset()
	ask()
	if !strings.Contains(log.String(), "left_out_before=5") {
		t.Errorf("the next entry is %q; want how many were left out", log.String())
	}
}
