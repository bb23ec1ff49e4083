package panel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// page reads a page of the list: the runs' IDs, and the value of next.
func (b *box) page(t *testing.T, query string) (ids []string, next string) {
	t.Helper()
	status, _, text := b.do(t, http.MethodGet, "/api/v1/runs?"+query, "")
	var list Runs
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != http.StatusOK {
		t.Fatalf("GET runs = %d %s (%v); want 200 and JSON", status, text, err)
	}
	for _, r := range list.Runs {
		ids = append(ids, r.ID)
	}
	return ids, list.Next
}

// An old failed job is listed by its time, and every page has as many runs as requested.
func TestListHasItsOrder(t *testing.T) {
	st := newStore(t)
	path := filepath.Join(t.TempDir(), "queue.db")
	q, err := store.OpenQueue(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for id, at := range map[string]time.Time{
		"20200101-000000-old": time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), "20270101-000000-new": time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		if err := q.Add(t.Context(), store.Job{ID: id, Device: "gone", Created: at, Plan: planOf(t)}); err != nil {
			t.Fatal(err)
		}
		if err := q.Leave(t.Context(), id, store.StateFailed, "the device is gone"); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	b := newBox(t, st, path)
	b.do(t, http.MethodPost, "/api/v1/runs", request)
	running := <-b.runner.started
	var waiting []string
	for range 2 {
		_, head, _ := b.do(t, http.MethodPost, "/api/v1/runs", request)
		waiting = append(waiting, strings.TrimPrefix(head.Get("Location"), "/api/v1/runs/"))
	}
	// The fake's runs begin in 1970.
	want := []string{waiting[1], waiting[0], "20270101-000000-new", "20261121-091400-demo", "20200101-000000-old", running}
	if got, next := b.page(t, ""); !slices.Equal(got, want) || next != "" {
		t.Errorf("%q, next %q; want %q", got, next, want)
	}
	for _, limit := range []string{"1", "2", "4"} {
		var got []string
		for query := "limit=" + limit; ; {
			ids, next := b.page(t, query)
			if got = append(got, ids...); next == "" {
				break
			}
			query = "limit=" + limit + "&before=" + next
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %s: %q, want %q", limit, got, want)
		}
	}
	if status, _, text := b.do(t, http.MethodGet, "/api/v1/runs?before=20260101-000000-deleted", ""); status != http.StatusNotFound ||
		!strings.Contains(text, "begin again without before") {
		t.Errorf("a page after an unknown run: %d %s; want 404", status, text)
	}
}

// A run that waited for its device when the service stopped waits again after the restart.
func TestRunThatWaitsForItsDeviceSurvivesRestart(t *testing.T) {
	st := newStore(t)
	path := filepath.Join(t.TempDir(), "queue.db")
	b := newBox(t, st, path)
	b.runner.waits = true
	b.do(t, http.MethodPost, "/api/v1/runs", request)
	id := <-b.runner.started
	b.stop()
	b = newBox(t, st, path)
	if got := <-b.runner.started; got != id {
		t.Errorf("%s was started, want %s", got, id)
	}
}

// A run cancelled before it has a folder is listed as interrupted, and can be deleted.
func TestCancelBeforeTheFolder(t *testing.T) {
	b := newBox(t, newStore(t), filepath.Join(t.TempDir(), "queue.db"))
	b.runner.waits = true
	b.do(t, http.MethodPost, "/api/v1/runs", request)
	address := "/api/v1/runs/" + <-b.runner.started
	states := make(chan []string)
	go func() { states <- b.states(t, address+"/events") }()
	if status, _, text := b.do(t, http.MethodDelete, address, ""); status != http.StatusNoContent {
		t.Errorf("cancel: %d %s", status, text)
	}
	if got := <-states; got[len(got)-1] != store.StateInterrupted {
		t.Errorf("progress: %v", got)
	}
	if status, _, text := b.do(t, http.MethodGet, address, ""); status != http.StatusOK ||
		!strings.Contains(text, `"state":"interrupted"`) || !strings.Contains(text, "cancelled") {
		t.Errorf("afterwards: %d %s", status, text)
	}
	if status, _, text := b.do(t, http.MethodDelete, address, ""); status != http.StatusNoContent {
		t.Errorf("forget: %d %s", status, text)
	}
}

// withJob makes a panel whose queue has a waiting job and no worker.
func withJob(t *testing.T) (*Panel, *store.Queue) {
	t.Helper()
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	st := newStore(t)
	p, err := newPanel(setup{Store: st, Queue: queueOf(st, q, &fakeRunner{})})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Add(t.Context(), store.Job{ID: "1", Device: "a", Plan: planOf(t)}); err != nil {
		t.Fatal(err)
	}
	return p, q
}

// A job taken from the queue between a caller's look at it and its removal is not removed:
// otherwise its device would have two runs.
func TestCancelLeavesWhatRuns(t *testing.T) {
	p, q := withJob(t)
	if _, err := q.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := (runFeature{Panel: p}).cancel(t.Context(), &cancelInput{ID: "1"}); err == nil {
		t.Error("Forget() removed a running job")
	}
	if job, err := q.Get(t.Context(), "1"); err != nil || job.State != store.StateRunning {
		t.Errorf("the job: %+v (%v)", job, err)
	}
}

// While the service stops, requests are answered with 503: a run that cannot be looked up is
// not reported as unreadable.
func TestAskedWhileStopping(t *testing.T) {
	p, _ := withJob(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, getErr := p.get(ctx, &idInput{ID: "1"})
	_, listErr := p.list(ctx, &listInput{Limit: 1})
	_, startErr := runFeature{Panel: p}.start(ctx, &startInput{Body: lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Archive: "missing.wacz"}}})
	for what, err := range map[string]error{"a run": getErr, "the list": listErr, "a new run": startErr} {
		var status huma.StatusError
		if !errors.As(err, &status) || status.GetStatus() != http.StatusServiceUnavailable {
			t.Errorf("%s while the service stops: %v; want 503", what, err)
		}
	}
}

// A run that begins between reading the queue and reading the folders is listed once.
func TestListHasARunOnce(t *testing.T) {
	got := stillWaiting([]store.Entry{{ID: "b", State: store.StateQueued}, {ID: "a", State: store.StateQueued}},
		[]store.Entry{{ID: "a", State: store.StateRunning}, {ID: "0"}})
	if len(got) != 1 || got[0].ID != "b" {
		t.Errorf("still waiting: %+v", got)
	}
}

// The error of a run that could not write it to its folder is in its last event.
func TestReasonOfAKilledRun(t *testing.T) {
	b := newBox(t, newStore(t), filepath.Join(t.TempDir(), "queue.db"))
	b.runner.killed = errors.New("signal: killed")
	events := httpGet(t, b.url+"/api/v1/events")
	b.do(t, http.MethodPost, "/api/v1/runs", request)
	<-b.runner.started
	for events.Scan() {
		if strings.Contains(events.Text(), `"interrupted"`) {
			if !strings.Contains(events.Text(), "signal: killed") {
				t.Errorf("the last event: %s", events.Text())
			}
			return
		}
	}
	t.Error("the stream has no last event")
}

// The first event has the number of trials of both arms.
func TestFirstEventTellsAllTrials(t *testing.T) {
	b := newBox(t, newStore(t), filepath.Join(t.TempDir(), "queue.db"))
	b.do(t, http.MethodPost, "/api/v1/runs", request)
	<-b.runner.started
	_, head, _ := b.do(
		t,
		http.MethodPost,
		"/api/v1/runs",
		strings.Replace(request, `"trials":3`, `"trials":3,"treatment":{"link":"lte"}`, 1),
	)
	for address, want := range map[string]string{head.Get("Location"): `"of":6`, strings.TrimSuffix(head.Get("Location"), "-2"): `"of":3`} {
		events := httpGet(t, b.url+address+"/events")
		for events.Scan() && !strings.HasPrefix(events.Text(), "data: ") {
		}
		if !strings.Contains(events.Text(), want) {
			t.Errorf("%s: %s, want %s", address, events.Text(), want)
		}
	}
}

// httpGet opens a stream and returns its lines; the stream ends with the test.
func httpGet(t *testing.T, url string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return bufio.NewScanner(answer.Body)
}
