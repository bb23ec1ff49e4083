package replay

import (
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// roundTrip is a transport that is a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Early hints that arrive while the transport still reports that the request was written
// are sent to the device and recorded. What a transport reports after its answer changes
// nothing.
func TestHintsWhileTheRequestIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wacz")
	w, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	writing, release := make(chan struct{}), make(chan struct{})
	held := false // the clock is held while the transport reports that the header was written
	clock := func() lab.Time {
		if held {
			held = false
			close(writing)
			<-release
		}
		return lab.Monotonic()
	}
	hint := textproto.MIMEHeader{"Link": {"</e.css>; rel=preload; as=style"}}
	var late *httptrace.ClientTrace
	rec := NewRecorder(w, roundTrip(func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		late = trace
		wrote, got := make(chan struct{}), make(chan struct{})
		held = true
		go func() { trace.WroteHeaders(); close(wrote) }()
		<-writing
		go func() { _ = trace.Got1xxResponse(http.StatusEarlyHints, hint); close(got) }()
		select { // the hints wait for the clock; if they did not, they would be lost here
		case <-got:
		case <-time.After(100 * time.Millisecond):
		}
		close(release)
		<-wrote
		<-got
		return &http.Response{
			StatusCode: http.StatusOK,
			Status:     "200 OK",
			ProtoMajor: 1,
			ProtoMinor: 1,
			Header:     http.Header{"Content-Type": {"text/plain"}},
			Body:       http.NoBody,
			Request:    r,
		}, nil
	}), RecordOptions{Clock: clock, Wall: time.Now})
	answer := httptest.NewRecorder()
	rec.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "https://a.test/", strings.NewReader("")))
	late.WroteHeaders()
	_ = late.Got1xxResponse(http.StatusEarlyHints, hint)
	if err := rec.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if e := a.Exchanges()[0]; len(e.Interim) != 1 || e.Interim[0].Status != http.StatusEarlyHints {
		t.Errorf("the exchange has the 1xx responses %+v, want one 103", e.Interim)
	}
}
