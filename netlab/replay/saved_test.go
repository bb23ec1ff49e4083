package replay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// TestRecordSaved: a recorder tells navigations that got what no browser shows, and notes no pages of them.
func TestRecordSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wacz")
	w, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	origin := roundTrip(func(r *http.Request) (*http.Response, error) {
		kind := "text/html"
		if r.URL.Path == "/file" {
			kind = "application/zip"
		}
		return &http.Response{
			StatusCode: 200, Status: "200 OK", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {kind}},
			Body: io.NopCloser(strings.NewReader("<p>PK")), ContentLength: 5,
		}, nil
	})
	rec := NewRecorder(w, origin, RecordOptions{Clock: lab.Monotonic, Wall: time.Now, Pages: true})
	var unseen []bool
	for _, ask := range []string{"/file document", "/ document", "/file empty", "/file document"} {
		var url, dest string
		_, _ = fmt.Sscan(ask, &url, &dest)
		r := httptest.NewRequest("GET", "https://saved.test"+url, nil)
		r.Header.Set("Sec-Fetch-Dest", dest)
		rec.ServeHTTP(httptest.NewRecorder(), r)
		unseen = append(unseen, rec.Stats().Unseen)
	}
	if fmt.Sprint(unseen) != "[true false false true]" {
		t.Errorf("Stats().Unseen is %v; want true, false, false, true", unseen)
	}
	if err := errors.Join(rec.Wait(), w.Close()); err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if pages := a.Pages(); len(pages) != 1 || pages[0].URL != "https://saved.test/" {
		t.Errorf("the recording's pages are %+v; want the document alone", pages)
	}
}
