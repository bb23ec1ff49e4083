package panel

import (
	"bufio"
	"strings"

	"bytes"
	"eidetic/internal/keep/store"
	"net/http"
	"net/http/httptest"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

func TestETags(t *testing.T) {
	config, _, _ := whole(t)
	config.Token = lab.Secret{}
	s := newServer(t, config)
	for _, path := range []string{"/api/v1/runs", "/api/v1/runs?limit=1", "/api/v1/runs/20261121-091400-demo",
		"/api/v1/runs/20261121-091400-demo/view", "/api/v1/runs/20261121-091400-demo/view?metric=unique_fps", "/api/v1/archives", "/api/v1/history"} {
		first := ask(t, s, http.MethodGet, path, nil)
		tag := first.Header.Get("ETag")
		if first.StatusCode != 200 || tag == "" || first.Header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("GET %s = %d, ETag %q, %q", path, first.StatusCode, tag, first.Header.Get("Cache-Control"))
		}
		for list, want := range map[string]int{tag: 304, `"x", W/` + tag: 304, "*": 304, `"x"`: 200, "": 200} {
			got := ask(t, s, http.MethodGet, path, header("If-None-Match", list))
			if got.StatusCode != want || want == 304 && (got.text != "" || got.Header.Get("ETag") != tag) || want == 200 && got.text != first.text {
				t.Errorf("GET %s with If-None-Match %s = %d with %d bytes, want %d", path, list, got.StatusCode, len(got.text), want)
			}
		}
	}
	list := ask(t, s, http.MethodGet, "/api/v1/runs", nil).Header.Get("ETag")
	other := reporttest.Run(0, 0)
	other.ID = "20261121-080000-other"
	addRun(t, config.Store, other)
	if got := ask(t, s, http.MethodGet, "/api/v1/runs", header("If-None-Match", list)); got.StatusCode != 200 {
		t.Errorf("the list with one more run = %d, want 200", got.StatusCode)
	}
	for _, path := range []string{"/api/v1/runs/nope", "/api/v1/runs/nope/view", "/api/v1/runs?limit=0", "/api/v1/health"} {
		if got := ask(t, s, http.MethodGet, path, header("If-None-Match", "*")); got.StatusCode == 304 || got.Header.Get("ETag") != "" {
			t.Errorf("GET %s = %d, ETag %q; want none", path, got.StatusCode, got.Header.Get("ETag"))
		}
	}
}

// An answer that is too large to be held goes to the client as it comes.
func TestLargeAnswersHaveNoETag(t *testing.T) {
	piece := bytes.Repeat([]byte("x"), maxTagged/2)
	w := httptest.NewRecorder()
	conditional(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			_, _ = w.Write(piece) // into memory
		}
	})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/runs", nil))
	if w.Code != 200 || w.Body.Len() != 3*len(piece) || w.Header().Get("ETag") != "" {
		t.Errorf("%d, %d bytes, ETag %q; want %d bytes and no ETag", w.Code, w.Body.Len(), w.Header().Get("ETag"), 3*len(piece))
	}
}

// A reader of events that lost its connection learns how runs ended meanwhile.
func TestEventsGoOn(t *testing.T) {
	p, err := newPanel(setup{Store: newStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	read := func(last string, until string) (text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		answer, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if text += lines.Text() + "\n"; strings.Contains(lines.Text(), until) {
				return text
			}
		}
		t.Fatalf("the stream ended after %q, without %q", text, until)
		return ""
	}
	p.queue.Events().Publish(Progress{Run: "a", State: store.StateRunning})
	first := read("", `"run":"a"`)
	_, id, ok := strings.Cut(first, "id: ")
	id, _, _ = strings.Cut(id, "\n")
	if !ok || id == "" {
		t.Fatalf("the event has no ID: %q", first)
	}
	p.queue.Events().Publish(Progress{Run: "a", State: store.StateDone})
	if got := read(id, `"state":"done"`); strings.Contains(got, "reset") {
		t.Errorf("coming back after %s: %q, want the end and no reset", id, got)
	}
	p.queue.Events().Publish(Progress{Run: "b", State: store.StateRunning})
	if got := read("other-7", `"run":"b"`); !strings.HasPrefix(got, "event: reset\n") {
		t.Errorf("coming back after a restart: %q, want a reset first", got)
	}
}
