package replay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// TestSiteWithoutTLS: a browser that tries TLS first sees that there is none, while it is recorded and in a replay, and
// asks without. A person who opens an address that cannot be reached at all is told by the box.
func TestSiteWithoutTLS(t *testing.T) {
	refused := fmt.Errorf("connect to plain.test:443: %w", syscall.ECONNREFUSED)
	for name, c := range map[string]struct {
		err    error
		plain  bool
		path   string
		breaks bool
	}{
		"refused":                           {refused, true, "/", true},
		"no TLS":                            {fmt.Errorf("TLS with plain.test:443: %w", tls.RecordHeaderError{Msg: "first record"}), true, "/", true},
		"nothing else, either":              {refused, false, "/", false},
		"another port":                      {refused, true, ":8443/", false},
		"a certificate that is not trusted": {&tls.CertificateVerificationError{Err: errors.New("unknown authority")}, true, "/", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.wacz")
			w, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			origin := roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.URL.Scheme == "https" {
					return nil, c.err
				}
				return &http.Response{
					StatusCode: 200, Status: "200 OK", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/html"}},
					Body: io.NopCloser(strings.NewReader("<p>plain")), ContentLength: 8,
				}, nil
			})
			rec := NewRecorder(w, origin, RecordOptions{
				Clock: lab.Monotonic, Wall: time.Now, Pages: true, Plain: func(context.Context, string) bool { return c.plain },
			})
			open := func(h http.Handler, url string) (text string) {
				defer func() {
					if v := recover(); v == http.ErrAbortHandler {
						text = "breaks"
					} else if v != nil {
						panic(v)
					}
				}()
				r := httptest.NewRequest("GET", url, nil)
				r.Header.Set("Sec-Fetch-Dest", "document")
				answer := httptest.NewRecorder()
				h.ServeHTTP(answer, r)
				return fmt.Sprint(answer.Code)
			}
			first := open(rec, "https://plain.test"+c.path)
			if second := open(rec, "http://plain.test/"); (first == "breaks") != c.breaks || first != "breaks" && first != "502" || second != "200" {
				t.Errorf("while recording, TLS gives %s and plain HTTP %s; want that it breaks: %v, else 502, and then 200", first, second, c.breaks)
			}
			if err := errors.Join(rec.Wait(), w.Close()); err != nil {
				t.Fatal(err)
			}
			a, err := archive.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if q := archive.Assess(a); q.Score != 1 || len(q.Problems) > 0 {
				t.Errorf("the recording has the score %v and %+v; want 1", q.Score, q.Problems)
			}
			s, err := NewSession(a, Options{Clock: lab.Monotonic, Log: func(lab.Served) {}})
			if err != nil {
				t.Fatal(err)
			}
			if c.breaks {
				if got := open(s, "https://plain.test/"); got != "breaks" {
					t.Errorf("in a replay, TLS gives %s; want that it breaks", got)
				}
			}
			if got := open(s, "http://plain.test/"); got != "200" {
				t.Errorf("in a replay, plain HTTP gives %s; want 200", got)
			}
		})
	}
}
