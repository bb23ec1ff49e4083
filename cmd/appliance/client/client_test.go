package client

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/internal/plan"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/web/panel"
)

// serve starts a box that answers as handler does, and a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	c := New(Config{Base: s.URL + "/", Token: NewSecret("0123456789abcdef"), Patience: time.Minute, FirstPause: time.Millisecond})
	t.Cleanup(c.Close)
	return c
}

// A client that is given an address alone asks for a run that goes on now and then, and not all the time.
func TestAwaitPauses(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		state := "running"
		if asked++; asked == 3 {
			state = "done"
		}
		fmt.Fprintf(w, `{"id":"r","state":%q}`, state)
	}))
	defer s.Close()
	c := New(Config{Base: s.URL})
	defer c.Close()
	began := time.Now()
	if run, err := c.Await(t.Context(), "r"); err != nil || run.State != "done" || asked != 3 {
		t.Fatalf("Await() = %v, %v after %d requests; want a run that is done, after 3", run, err, asked)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("three requests within %v; want pauses between them", took)
	}
}

// A person is told what a run waits for, once and when it changes, by the stream or, where there is none, by the run;
// never in another terminal's control characters.
func TestFollowARunThatWaits(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, asked int){
		"stream": func(w http.ResponseWriter, asked int) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, event := range []string{`"queued"`, `"queued"`, `"queued","doing":"a\u001b[2J"`, `"queued","doing":"a\u001b[2J"`, `"queued","doing":"b"`, `"done"`} {
				fmt.Fprintf(w, "data: {\"run\":\"r\",\"state\":%s}\n\n", event)
			}
		},
		"run": func(w http.ResponseWriter, asked int) {
			states := []string{`"queued"`, `"queued"`, `"queued","waits":"a\u001b[2J"`, `"queued","waits":"a\u001b[2J"`, `"queued","waits":"b"`, `"done"`}
			fmt.Fprintf(w, `{"id":"r","state":%s}`, states[min(asked, len(states)-1)])
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !strings.HasSuffix(r.URL.Path, "/events"):
					if name == "stream" {
						fmt.Fprint(w, `{"id":"r","state":"done"}`)
						return
					}
					answer(w, asked)
					asked++
				case name == "stream":
					answer(w, 0)
				default:
					fmt.Fprint(w, "{}") // no stream
				}
			})
			var got []string
			run, err := c.Follow(t.Context(), "r", func(e Event) { got = append(got, fmt.Sprint(e.Queued, " ", e.Doing)) })
			if err != nil || run.State != "done" {
				t.Fatalf("Follow() = %v, %v; want a run that is done", run, err)
			}
			if text, want := strings.Join(got, "|"), "true |true "+Plain("a\x1b[2J")+"|true b"; text != want || strings.Contains(text, "\x1b") {
				t.Errorf("told %q; want %q", text, want)
			}
		})
	}
}

// problem answers with problem details.
func problem(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprint(w, text)
}

// Each kind of failure has a type of its own, on which a command decides.
func TestErrorTypes(t *testing.T) {
	for name, c := range map[string]struct {
		answer   http.HandlerFunc
		status   int // of a RefusedError
		rejected bool
		says     string
	}{
		"field": {func(w http.ResponseWriter, _ *http.Request) {
			problem(w, 422, `{"detail":"validation failed","errors":[{"message":"expected number\u001b[2J","location":"body.trials"}]}`)
		}, 422, true, "the box refuses: validation failed; trials: expected number\uFFFD[2J"},
		"no problem details": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", 404) }, 404, true, "404 Not Found"},
		"wrong token":        {func(w http.ResponseWriter, _ *http.Request) { problem(w, 401, `{"detail":"no"}`) }, 401, true, "not the token of this box"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://portal.test/", http.StatusFound)
		}, 302, false, "portal.test"},
		"conflict": {func(w http.ResponseWriter, _ *http.Request) { problem(w, 409, `{"detail":"about to end"}`) }, 409, true, "the box refuses: about to end"},
		"no JSON":  {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "welcome") }, 200, false, "names no run"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, c.answer).Start(t.Context(), []byte("{}"))
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Status != c.status || refused.Rejected() != c.rejected ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("Start() = %v; want a RefusedError of status %d, rejected: %v, with %q", err, c.status, c.rejected, c.says)
			}
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var unreachable *UnreachableError
	if _, err := New(Config{Base: gone.URL}).Start(t.Context(), nil); !errors.As(err, &unreachable) {
		t.Errorf("Start() at an address where nobody listens = %v; want an UnreachableError", err)
	}
}

func TestCheckReady(t *testing.T) {
	health := func(h string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, h) }
	}
	for name, c := range map[string]struct {
		answer     http.HandlerFunc
		unsuitable string
	}{
		"takes runs":      {health(`{"status":"ok","starts":true,"token":true}`), ""},
		"only shows runs": {health(`{"status":"ok"}`), "only shows runs"},
		"something else":  {health(`<html>`), "not a panel of the appliance"},
		"a part hangs":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, ""},
	} {
		err := serve(t, c.answer).CheckReady(t.Context())
		var unsuitable *UnsuitableError
		if errors.As(err, &unsuitable) != (c.unsuitable != "") || err != nil && !strings.Contains(err.Error(), c.unsuitable) {
			t.Errorf("%s: CheckReady() = %v; want %q", name, err, c.unsuitable)
		}
	}
	box := serve(t, health(`{"status":"ok","starts":true,"token":true}`))
	var refused *RefusedError
	if err := New(Config{Base: box.Base()}).CheckReady(t.Context()); !errors.As(err, &refused) ||
		refused.Status != http.StatusUnauthorized {
		t.Errorf("CheckReady() without a token = %v; want a RefusedError of status 401", err)
	}
}

// A box that is busy is asked again, with the same key; one that says no is not.
func TestRetries(t *testing.T) {
	for name, c := range map[string]struct {
		first func(http.ResponseWriter)
		tries int32
	}{
		"restarting":     {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, 3},
		"lost":           {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 3},
		"rejected":       {func(w http.ResponseWriter) { problem(w, 422, `{"detail":"no"}`) }, 1},
		"internal error": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var tries atomic.Int32
			keys := make(chan string, 10)
			box := serve(t, func(w http.ResponseWriter, r *http.Request) {
				keys <- r.Header.Get("Idempotency-Key")
				if tries.Add(1) < 3 {
					c.first(w)
					return
				}
				w.WriteHeader(http.StatusAccepted)
				fmt.Fprint(w, `{"id":"20261121-091400-demo"}`)
			})
			id, err := box.Start(t.Context(), []byte("{}"))
			if (err == nil) != (c.tries == 3) || err == nil && id != "20261121-091400-demo" || tries.Load() != c.tries {
				t.Errorf("Start() = %q, %v after %d tries; want %d tries", id, err, tries.Load(), c.tries)
			}
			first := <-keys
			for range c.tries - 1 {
				if key := <-keys; key != first || key == "" {
					t.Errorf("a retry has the key %q; want that of the first attempt, %q", key, first)
				}
			}
		})
	}
}

// A file is there as a whole or not at all, one that the run does not have is left
// out, and an error of this machine's disk is not taken for one of the box.
func TestFetch(t *testing.T) {
	var asked atomic.Int32
	box := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if filepath.Base(r.URL.Path) == "report.json" {
			problem(w, 404, `{"detail":"the run has none"}`)
			return
		}
		fmt.Fprint(w, filepath.Base(r.URL.Path))
	})
	dir := t.TempDir()
	if err := box.Fetch(t.Context(), "1", dir); err != nil {
		t.Errorf("Fetch() = %v; want nil", err)
	}
	for name, want := range map[string]bool{"run.json": true, "report.json": false, "report.html": true} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if (err == nil) != want || want && string(text) != name {
			t.Errorf("%s: %q, %v; want it to be there: %v", name, text, err, want)
		}
	}
	asked.Store(0)
	err := box.Fetch(t.Context(), "1", filepath.Join(dir, "none"))
	var refused *RefusedError
	var unreachable *UnreachableError
	if err == nil || errors.As(err, &refused) || errors.As(err, &unreachable) || asked.Load() != 1 {
		t.Errorf("Fetch() into a folder that is missing = %v after %d requests; want the error of the folder after 1", err, asked.Load())
	}
}

func FuzzReadEvents(f *testing.F) {
	for _, s := range []string{"", ": alive\n\n", "event: progress\r\ndata: {\"state\":\"running\"}\r\n\r\n", "data: {\ndata: }\n\n", "data: [[[\n\n", "data:x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer testlab.Input(t)()
		lines := 0
		_ = readEvents(bytes.NewReader(text), func() { lines++ }, func(s panel.Progress) bool { return s.State != "done" })
		if most := bytes.Count(text, []byte{'\n'}) + 1; lines > most {
			t.Errorf("readEvents(%q) reads %d lines; want at most %d", text, lines, most)
		}
	})
}

// A refusal of a field shows the plan's lines, unless the file does not have the field.
func TestLocateRefusal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte("page: https://a.test/\ntrials: 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	q, err := plan.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := (&RefusedError{Field: "trials", Detail: "must be at least 1"}).Locate(q).Detail; !strings.Contains(got, "2 | trials: 0") {
		t.Errorf("Locate() = %q; want the line of the file", got)
	}
	flag := &RefusedError{Field: "device", Detail: "there is no toaster"}
	if got := flag.Locate(q); got != flag {
		t.Errorf("Locate() of a field that the file does not have = %v; want it as it was", got)
	}
}
