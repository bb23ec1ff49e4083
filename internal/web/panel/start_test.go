package panel

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	diff "github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// fakeRunner stands for the experiment: it makes a run's folder, and ends when the test lets it.
type fakeRunner struct {
	root    string
	started chan string
	release chan error
	waits   bool  // for a device that never appears
	killed  error // error of a run that cannot write it to its folder
}

func (r *fakeRunner) Accept(_ context.Context, q lab.Plan) (lab.Plan, error) {
	if q.Archive == "missing.wacz" {
		return q, errors.New("there is no archive missing.wacz")
	}
	q.Device = cmp.Or(q.Device, "virtual")
	return q, nil
}

func (r *fakeRunner) Run(ctx context.Context, id string, q lab.Plan, progress func(Progress)) error {
	if r.waits {
		r.started <- id
		<-ctx.Done()
		return errors.New("device virtual: no lease")
	}
	run := &lab.Run{ID: id, Name: q.Name, Page: q.Page, State: store.StateRunning, Wall: time.Unix(1, 0).UTC()}
	f, err := store.Create(r.root, run)
	if err != nil {
		return err
	}
	defer f.Close()
	left := 130.0
	progress(Progress{Trial: 2, Of: q.Trials, Doing: "filming", Left: &left})
	r.started <- id
	if r.killed != nil {
		return r.killed
	}
	select {
	case <-ctx.Done():
		run.State = store.StateInterrupted
	case err := <-r.release:
		run.State = store.StateDone
		if err != nil {
			run.State, run.Error = store.StateFailed, err.Error()
		}
	}
	return f.Save(run)
}

// testNow is the time at which tests request runs, and part of the runs' IDs.
func testNow() time.Time { return time.Unix(1_800_000_000, 0) }

// queueOf is a queue of runs without a worker.
func queueOf(st *store.Store, jobs *store.Queue, r runqueue.Runner) *runqueue.Queue {
	return runqueue.New(runqueue.Config{Jobs: jobs, Store: st, Runner: r, Now: testNow})
}

// box is a panel that serves, with a queue on disk and its workers.
type box struct {
	url    string
	runner *fakeRunner
	stop   func()
}

func newBox(t *testing.T, st *store.Store, queue string) *box {
	t.Helper()
	return newBoxAt(t, st, queue, "127.0.0.1:0")
}

func newBoxAt(t *testing.T, st *store.Store, queue, addr string) *box {
	t.Helper()
	q, err := store.OpenQueue(t.Context(), queue)
	if err != nil {
		t.Fatal(err)
	}
	b := &box{runner: &fakeRunner{root: st.Root(), started: make(chan string, 10), release: make(chan error)}}
	queued := queueOf(st, q, b.runner)
	p, err := newPanel(setup{Store: st, Queue: queued})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l, err := Listen(ctx, addr, "--listen")
	if err != nil {
		t.Fatal(err)
	}
	b.url = "http://" + l.Addr().String()
	done := make(chan error, 2)
	go func() { done <- p.Serve(ctx, l) }()
	go func() { done <- queued.Work(ctx) }()
	stopped := false
	b.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Errorf("serving and carrying out the queue: %v", err)
		}
		_ = q.Close()
		http.DefaultClient.CloseIdleConnections()
	}
	t.Cleanup(b.stop)
	return b
}

func (b *box) do(t *testing.T, method, path, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// follow reads the progress of a run until it ends, or each returns false.
func (b *box) follow(t *testing.T, path string, each func(Progress) bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var s Progress
			if err := json.Unmarshal([]byte(data), &s); err != nil {
				t.Fatal(err)
			}
			if !each(s) {
				return
			}
		}
	}
}

// states reads the states of a run's progress until it ends.
func (b *box) states(t *testing.T, path string) (states []string) {
	t.Helper()
	b.follow(t, path, func(s Progress) bool {
		if len(states) == 0 || states[len(states)-1] != s.State {
			states = append(states, s.State)
		}
		return true
	})
	return states
}

const request = `{"name":"Checkout page","page":"https://www.shop.example/","archive":"shop.wacz","trials":3}`

// planOf is the decoded request.
func planOf(t *testing.T) (p lab.Plan) {
	t.Helper()
	if err := json.Unmarshal([]byte(request), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStart(t *testing.T) {
	st := newStore(t)
	b := newBox(t, st, filepath.Join(t.TempDir(), "queue.db"))
	status, head, text := b.do(t, http.MethodPost, "/api/v1/runs", request)
	const first = "/api/v1/runs/20270115-080000-checkout-page"
	if status != http.StatusAccepted || head.Get("Location") != first {
		t.Fatalf("POST runs = %d, Location %q: %s; want 202 and the run's address", status, head.Get("Location"), text)
	}
	<-b.runner.started
	// The device is busy: the second run waits, under another name.
	_, head, _ = b.do(t, http.MethodPost, "/api/v1/runs", request)
	if head.Get("Location") != first+"-2" {
		t.Errorf("Location %q", head.Get("Location"))
	}
	if _, _, text := b.do(t, http.MethodGet, first+"-2", ""); !strings.Contains(text, `"state":"queued"`) {
		t.Errorf("the second run: %s", text)
	}
	_, _, list := b.do(t, http.MethodGet, "/api/v1/runs", "")
	if !strings.Contains(list, `"state":"queued"`) || !strings.Contains(list, `"state":"running"`) || strings.Count(list, `"id":`) != 3 {
		t.Errorf("the list: %s", list)
	}
	states := make(chan []string)
	go func() { states <- b.states(t, first+"/events") }()
	b.runner.release <- nil
	if got := <-states; got[len(got)-1] != "done" {
		t.Errorf("progress: %v", got)
	}
	<-b.runner.started
	if status, _, _ := b.do(t, http.MethodDelete, first+"-2", ""); status != http.StatusNoContent {
		t.Errorf("cancel: %d", status)
	}
	if got := b.states(t, first+"-2/events"); got[len(got)-1] != "interrupted" {
		t.Errorf("progress of a cancelled run: %v", got)
	}
	if status, _, _ := b.do(t, http.MethodDelete, first, ""); status != http.StatusNotFound {
		t.Errorf("cancel of one that has ended: %d", status)
	}
}

// Everything that shows a run says what it waits for, and the stream of its progress says so when that changes.
func TestWaits(t *testing.T) {
	b := newBox(t, newStore(t), filepath.Join(t.TempDir(), "queue.db"))
	var runs []string
	for range 3 {
		_, head, _ := b.do(t, http.MethodPost, "/api/v1/runs", request)
		if runs = append(runs, head.Get("Location")); len(runs) == 1 {
			<-b.runner.started
		}
	}
	const (
		next = "virtual carries out 20270115-080000-checkout-page, and it is next"
		last = "virtual carries out 20270115-080000-checkout-page, and 1 run comes first"
	)
	for path, want := range map[string]string{
		runs[0]: "", runs[1]: next, runs[2]: last, runs[1] + "/view": next, "/api/v1/runs": last, "/api/v1/runs?limit=2": next,
	} {
		_, _, text := b.do(t, http.MethodGet, path, "")
		if strings.Contains(text, `"waits"`) != (want != "") || !strings.Contains(text, want) {
			t.Errorf("GET %s = %s; want that it waits for %q", path, text, want)
		}
	}
	var told []string
	b.follow(t, runs[2]+"/events", func(s Progress) bool {
		if s.State != store.StateQueued || s.Doing == "" {
			t.Errorf("an event of a run that waits: %+v; want it queued, with what it waits for", s)
			return false
		}
		if told = append(told, s.Doing); len(told) == 1 {
			if status, _, text := b.do(t, http.MethodDelete, runs[1], ""); status != http.StatusNoContent {
				t.Errorf("DELETE %s = %d %s; want 204", runs[1], status, text)
			}
		}
		return s.Doing == last
	})
	if got := slices.Compact(told); !slices.Equal(got, []string{last, next}) {
		t.Errorf("the events say that it waits because %q; want %q, %q", got, last, next)
	}
}

func TestStartRefuses(t *testing.T) {
	b := newBox(t, newStore(t), filepath.Join(t.TempDir(), "queue.db"))
	for body, want := range map[string]string{
		`{"page":"https://a/","archive":"missing.wacz"}`:          "there is no archive missing.wacz",
		`{"archive":"a.wacz"}`:                                    "page",
		`{"page":"https://a/","archive":"a.wacz","trials":0}`:     "trials",
		`{"page":"https://a/","archive":"a.wacz","trials":99999}`: "trials",
		`{"page":"https://a/","archive":"a.wacz","colour":"red"}`: "colour",
		`{`: "line 1: the text ends before its JSON does",
	} {
		status, head, text := b.do(t, http.MethodPost, "/api/v1/runs", body)
		if status < 400 || status > 422 || head.Get("Content-Type") != "application/problem+json" || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
}

// A request repeated with its key starts one run and gets the same answer.
func TestStartOnce(t *testing.T) {
	st := newStore(t)
	queue := filepath.Join(t.TempDir(), "queue.db")
	b := newBox(t, st, queue)
	post := func(key, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/api/v1/runs", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	status, first := post("a key", request)
	if status != http.StatusUnprocessableEntity || !strings.Contains(first, "Idempotency-Key") {
		t.Errorf("a key with a space: %d %s", status, first)
	}
	if status, text := post(strings.Repeat("x", 129), request); status != http.StatusUnprocessableEntity {
		t.Errorf("a long key: %d %s", status, text)
	}
	if status, first = post("one", request); status != http.StatusAccepted {
		t.Fatalf("POST runs with a new key = %d %s; want 202", status, first)
	}
	<-b.runner.started
	spaced := strings.ReplaceAll(request, ",", ", ") // the same request
	if status, again := post("one", spaced); status != http.StatusAccepted || again != first {
		t.Errorf("again: %d %s, was %s", status, again, first)
	}
	if status, text := post("one", strings.Replace(request, "3", "4", 1)); status != http.StatusUnprocessableEntity ||
		!strings.Contains(text, "another request") {
		t.Errorf("another request: %d %s", status, text)
	}
	if status, second := post("two", request); status != http.StatusAccepted || second == first {
		t.Errorf("another key: %d %s", status, second)
	}
	b.stop()
	b = newBox(t, st, queue)
	if status, again := post("one", request); status != http.StatusAccepted || again != first {
		t.Errorf("after a restart: %d %s, was %s", status, again, first)
	}
	if _, _, list := b.do(t, http.MethodGet, "/api/v1/runs", ""); strings.Count(list, "checkout-page\"") != 1 {
		t.Errorf("the list: %s", list)
	}
}

// Runs that waited when the appliance was stopped are carried out after the restart.
func TestQueueSurvivesRestart(t *testing.T) {
	st := newStore(t)
	queue := filepath.Join(t.TempDir(), "queue.db")
	b := newBox(t, st, queue)
	for range 2 {
		b.do(t, http.MethodPost, "/api/v1/runs", request)
	}
	running := <-b.runner.started
	b.stop()
	if run, err := st.Run(running); err != nil || run.State != store.StateInterrupted {
		t.Errorf("the run that was stopped: %v, %v", run, err)
	}
	b = newBox(t, st, queue)
	if got, want := <-b.runner.started, running+"-2"; got != want {
		t.Errorf("%s was started, want %s", got, want)
	}
	b.runner.release <- nil
	if got := b.states(t, "/api/v1/runs/"+running+"-2/events"); diff.Diff("done", got[len(got)-1]) != "" {
		t.Errorf("progress: %v", got)
	}
}

// The files of a run are deleted on request, but not those of a run in progress.
func TestDeleteFiles(t *testing.T) {
	st := newStore(t)
	b := newBox(t, st, filepath.Join(t.TempDir(), "queue.db"))
	for range 2 {
		b.do(t, http.MethodPost, "/api/v1/runs", request)
	}
	running := <-b.runner.started
	const ended = "20261121-091400-demo" // in newStore
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{ended, http.StatusNotFound, "has ended: files=true deletes it"},
		{running + "?files=true", http.StatusConflict, "cancel it first"},
		{running + "-2?files=true", http.StatusConflict, "cancel it first"},
		{"nope?files=true", http.StatusNotFound, "there is no run"},
		{ended + "?files=true", http.StatusNoContent, ""},
		{ended + "?files=true", http.StatusNotFound, "there is no run"},
	} {
		if status, _, text := b.do(t, http.MethodDelete, "/api/v1/runs/"+c.path, ""); status != c.status ||
			!strings.Contains(text, c.says) {
			t.Errorf("DELETE %s: %d %s; want %d, %q", c.path, status, text, c.status, c.says)
		}
	}
	if _, _, list := b.do(t, http.MethodGet, "/api/v1/runs", ""); strings.Contains(list, ended) || !strings.Contains(list, running) ||
		st.Has(ended) {
		t.Errorf("the list: %s", list)
	}
}

// An error for a full disk says so, and what to do.
func TestNoSpace(t *testing.T) {
	p, err := newPanel(setup{Store: newStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	err = fmt.Errorf("add job: %w", &os.PathError{Op: "write", Path: "queue.db", Err: syscall.ENOSPC})
	var status huma.StatusError
	if got := p.toHTTPError(err); !errors.As(got, &status) || status.GetStatus() != http.StatusInsufficientStorage ||
		!strings.Contains(got.Error(), "files=true") {
		t.Errorf("a typed answer: %v", got)
	}
	e := echo.New()
	w := httptest.NewRecorder()
	p.fail(err, e.NewContext(httptest.NewRequest(http.MethodPut, "/api/v1/archives/x.wacz", nil), w))
	if w.Code != http.StatusInsufficientStorage || !strings.Contains(w.Body.String(), "files=true") {
		t.Errorf("a plain answer: %d %s", w.Code, w.Body)
	}
}

// A run interrupted by a power cut is listed once, by its time, as interrupted.
func TestListAfterPowerCut(t *testing.T) {
	st := newStore(t)
	path := filepath.Join(t.TempDir(), "queue.db")
	q, err := store.OpenQueue(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	const cut, newer = "19700101-000001-cut", "20261121-091400-demo" // the latter is in newStore
	if err := q.Add(t.Context(), store.Job{ID: cut, Device: "a", Created: time.Unix(1, 0), Plan: planOf(t)}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := store.Create(st.Root(), &lab.Run{ID: cut, State: store.StateRunning, Wall: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	b := newBox(t, st, path)
	if _, _, text := b.do(t, http.MethodGet, "/api/v1/runs?limit=1", ""); strings.Contains(text, cut) || !strings.Contains(text, newer) {
		t.Errorf("the first page: %s", text)
	}
	if _, _, text := b.do(t, http.MethodGet, "/api/v1/runs", ""); strings.Count(text, cut) != 1 ||
		!strings.Contains(text, `"state":"interrupted"`) {
		t.Errorf("the whole list: %s", text)
	}
}

// An open stream ends by itself when the panel stops, before the grace is over.
func TestServeStopsWithOpenStreams(t *testing.T) {
	b := newBox(t, newStore(t), filepath.Join(t.TempDir(), "queue.db"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b.stop()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Errorf("the event stream did not end by itself: %v", err)
	}
}

func TestListen(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_, err = Listen(t.Context(), l.Addr().String(), "--listen")
	if err == nil || !strings.Contains(err.Error(), "port "+port+" of 127.0.0.1 is taken") || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("got %v", err)
	}
	if _, err := Listen(t.Context(), "nonsense", "--listen"); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("got %v", err)
	}
}

func TestServeNeedsTokenBeyondLoopback(t *testing.T) {
	p, err := newPanel(setup{Store: newStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("got %v", err)
	}
}
