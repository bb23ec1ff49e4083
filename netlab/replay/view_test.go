package replay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
)

// originFunc is an origin without a network.
type originFunc func(*http.Request) (*http.Response, error)

func (f originFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answerOf is a response with a body that is read from r.
func answerOf(r io.Reader, header string) *http.Response {
	resp := &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(r), ContentLength: -1}
	for _, f := range fields(header) {
		resp.Header.Add(f.Name, f.Value)
	}
	return resp
}

func newTestView(t *testing.T) (*View, *archive.Writer) {
	t.Helper()
	w, err := archive.Create(filepath.Join(t.TempDir(), "filled.wacz"), archive.CreateOptions{Wall: recordedAt})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Discard() })
	return NewView(w, recordedAt), w
}

// TestFilledOnceForAll: a request that is made twice at once is fetched once, and so it is for a
// session of another recording; dates move from when it was fetched, documents get each session's script.
func TestFilledOnceForAll(t *testing.T) {
	view, w := newTestView(t)
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		origin := originFunc(func(*http.Request) (*http.Response, error) {
			fetched++
			n := fetched
			<-time.After(time.Second) // of the fake clock
			return answerOf(strings.NewReader(fmt.Sprintf("<!doctype html>%d", n)),
				"Content-Type: text/html; charset=utf-8\nLast-Modified: Thu, 01 Jan 2026 03:04:05 GMT"), nil
		})
		begin := time.Now()
		clock := func() lab.Time { return lab.Time(time.Since(begin)) }
		arm := func(a *archive.Archive, seed uint64, later time.Duration) *asker {
			return newAsker(t, a, Options{Seed: seed, Miss: MissFill, Live: origin, Fill: view, Wall: recordedAt.Add(later), Clock: clock})
		}
		control := arm(build(exchange{ask: "GET https://a.test/", answer: "one"}), 1, 0)
		var all sync.WaitGroup
		texts := make([]string, 3)
		for i := range texts {
			all.Go(func() { texts[i] = control.bodyOf("https://a.test/new", asDocument) })
		}
		all.Wait()
		if err := control.s.Wait(); err != nil {
			t.Fatal(err)
		}
		treatment := arm(build(exchange{ask: "GET https://a.test/", answer: "two"}), 2, time.Hour)
		resp, text, line := treatment.ask("192.0.2.1", "GET https://a.test/new?_=1700000000000", asDocument, "")
		if fetched != 1 || texts[0] != texts[1] || texts[0] != texts[2] || !strings.HasSuffix(texts[0], "1") {
			t.Errorf("%d fetches gave %.30q; want one", fetched, texts)
		}
		if !line.Filled || line.Stage != lab.StageNormalised || line.Exchange == "" {
			t.Errorf("the log of the treatment: %+v; want that it was filled", line)
		}
		if script := inject.NewScript(inject.Options{Seed: 2, Date: recordedAt}).Text(); !strings.Contains(text, script) || !strings.HasSuffix(text, "1") {
			t.Errorf("the treatment gets %.100q; want the same document with its own script", text)
		}
		if got := resp.Header.Get("Last-Modified"); got != "Thu, 01 Jan 2026 04:04:05 GMT" {
			t.Errorf("Last-Modified %q, an hour after it was fetched; want it moved by that", got)
		}
		if st := treatment.s.Stats(); st.Live != 0 || st.Misses != 0 {
			t.Errorf("Stats() = %+v; want nothing fetched", st)
		}
		strict := newAsker(t, build(), Options{Miss: MissFill, Match: "strict", Live: origin, Fill: view, Clock: clock})
		if strict.bodyOf("https://a.test/new?_=1700000000000", asDocument); fetched != 2 {
			t.Errorf("under strict, another URL was not fetched: %d fetches", fetched)
		}
		if err := strict.s.Wait(); err != nil {
			t.Fatal(err)
		}
	})
	if w.Count() != 2 || view.Count() != 2 {
		t.Errorf("the archive has %d exchanges, the view %d; want 2", w.Count(), view.Count())
	}
}

// bodyOf asks for a URL, and does not wait for the log, which comes later for what is fetched.
func (k *asker) bodyOf(url, with string) string {
	r, w := httptest.NewRequest("GET", url, nil), httptest.NewRecorder()
	for _, f := range fields(with) {
		r.Header.Add(f.Name, f.Value)
	}
	k.s.ServeHTTP(w, r)
	return w.Body.String()
}

// TestFilledBeacon: a request that differs in each load, and whose answer is settled, is fetched once.
func TestFilledBeacon(t *testing.T) {
	view, _ := newTestView(t)
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		begin := time.Now()
		o := Options{Miss: MissFill, Match: "loose", Fill: view, Clock: func() lab.Time { return lab.Time(time.Since(begin)) },
			Live: originFunc(func(r *http.Request) (*http.Response, error) {
				fetched++
				return answerOf(strings.NewReader(r.URL.Query().Get("say")), "Content-Type: text/plain"), nil
			}),
		}
		for load := range 3 {
			k := newAsker(t, build(), o)
			for _, url := range []string{"https://a.test/beacon?page=home&took=" + fmt.Sprint(1200+load), "https://a.test/api?say=hello&took=" + fmt.Sprint(1200+load)} {
				k.bodyOf(url, asFetch)
			}
			if err := k.s.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		// The beacon once; the other twice, until two different requests had the same answer.
		if fetched != 3 {
			t.Errorf("%d fetches; want 3", fetched)
		}
	})
}

// slowDevice takes a second for each write, on the fake clock.
type slowDevice struct{ *httptest.ResponseRecorder }

func (d slowDevice) Write(b []byte) (int, error) {
	<-time.After(time.Second) // of the fake clock
	return d.ResponseRecorder.Write(b)
}

// paced gives a byte each 10 ms.
type paced struct{ left int }

func (p *paced) Read(b []byte) (int, error) {
	if p.left--; p.left < 0 {
		return 0, io.EOF
	}
	<-time.After(10 * time.Millisecond) // of the fake clock
	b[0] = 'x'
	return 1, nil
}

// TestFilledTimesAreTheOrigins: a slow device, or link to it, does not make the recorded times of
// what is fetched longer; the next trial would wait twice.
func TestFilledTimesAreTheOrigins(t *testing.T) {
	view, _ := newTestView(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		k := newAsker(t, build(), Options{
			Miss: MissFill, Fill: view, Clock: func() lab.Time { return lab.Time(time.Since(begin)) },
			Live: originFunc(func(*http.Request) (*http.Response, error) {
				return answerOf(&paced{left: 5}, "Content-Type: text/plain"), nil
			}),
		})
		w := slowDevice{httptest.NewRecorder()}
		k.s.ServeHTTP(w, httptest.NewRequest("GET", "https://a.test/x", nil))
		if err := k.s.Wait(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); w.Body.String() != "xxxxx" || took < 5*time.Second {
			t.Fatalf("the device got %q in %v; want all in 5 s", w.Body, took)
		}
		chunks := view.exchanges[0].Chunks
		if len(chunks) != 5 || chunks[4].At != 50*time.Millisecond {
			t.Errorf("recorded times %v; want one each 10 ms", chunks)
		}
	})
}

// TestFilledStreamStaysOpen: an event stream that was open when its trial ended is part of the view,
// and does not keep a page from being at rest.
func TestFilledStreamStaysOpen(t *testing.T) {
	view, _ := newTestView(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		o := Options{
			Miss: MissFill, Fill: view, Clock: func() lab.Time { return lab.Time(time.Since(begin)) },
			Live: originFunc(func(r *http.Request) (*http.Response, error) {
				events, feed := io.Pipe()
				go func() { _, _ = io.WriteString(feed, "data: 1\n\n") }()
				ctx := r.Context()
				go func() { <-ctx.Done(); feed.CloseWithError(ctx.Err()) }()
				return answerOf(events, "Content-Type: text/event-stream"), nil
			}),
		}
		for session, want := range []lab.Stage{lab.StageLive, lab.StageExact} {
			k := newAsker(t, build(), o)
			server := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "https://a.test/events", nil)
			ctx, leave := withCancel(r)
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() {
					if v := recover(); v != nil && v != http.ErrAbortHandler {
						panic(v)
					}
				}()
				k.s.ServeHTTP(server, ctx)
			}()
			synctest.Wait()
			if st := k.s.Stats(); st.InFlight != 0 || st.Requests != 1 {
				t.Errorf("session %d: Stats() = %+v; want nothing in flight", session, st)
			}
			leave()
			<-done
			if err := k.s.Wait(); err != nil {
				t.Fatal(err)
			}
			if line := k.log[0]; line.Stage != want || server.Body.String() != "data: 1\n\n" {
				t.Errorf("session %d: %s with %q; want %s with the event", session, line.Stage, server.Body, want)
			}
		}
	})
}

// withCancel returns a request that leave ends.
func withCancel(r *http.Request) (_ *http.Request, leave func()) {
	ctx, leave := context.WithCancel(r.Context())
	return r.WithContext(ctx), leave
}
