package automation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// receiver is a server that webhooks post to.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	after  string // Retry-After
	posts  chan received
}

type received struct {
	id, event string
	status    int
	body      []byte
	header    http.Header
}

func newReceiver(t *testing.T, status int) *receiver {
	t.Helper()
	r := &receiver{status: status, posts: make(chan received, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		status, after := r.status, r.after
		r.mu.Unlock()
		var e struct{ Type string }
		_ = json.Unmarshal(body, &e)
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		r.posts <- received{q.Header.Get("Webhook-Id"), e.Type, status, body, q.Header}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int, after string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.after = status, after
}

// hook makes a webhook for a receiver.
func (b *testBox) hook(name, url string, events ...string) (Hook, lab.Secret) {
	b.t.Helper()
	h, secret, err := b.MakeHook(b.t.Context(), name, "", url, lab.Secret{}, events, "tester")
	if err != nil {
		b.t.Fatal(err)
	}
	return h, secret
}

// deliverDue makes the attempts that are due, and waits for their end.
func (b *testBox) deliverDue() {
	b.t.Helper()
	m := &postman{Keeper: b.Keeper, pause: time.Millisecond, busy: map[string]bool{}}
	if _, err := m.deliver(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	m.all.Wait()
}

// log is the deliveries, the newest first.
func (b *testBox) log() []Delivery {
	b.t.Helper()
	all, err := b.Deliveries(b.t.Context(), "", "", 0, 500)
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

func (b *testBox) test(h Hook) {
	b.t.Helper()
	if _, err := b.TestHook(b.t.Context(), h.ID, "tester"); err != nil {
		b.t.Fatal(err)
	}
}

func TestDeliveryIsTriedAgain(t *testing.T) {
	r := newReceiver(t, http.StatusInternalServerError)
	b := newTestBox(t, func(b *testBox) { b.pauses = []time.Duration{time.Minute, time.Hour} })
	h, secret := b.hook("chat", r.URL+"/x")
	b.test(h)
	b.deliverDue()
	first := <-r.posts
	d := b.log()[0]
	if d.State != DeliveryWaits || d.Attempts != 1 || d.Status != 500 || !strings.Contains(d.Error, "500") ||
		d.Next.Before(b.clock.Now().Add(time.Minute)) || d.Next.After(b.clock.Now().Add(70*time.Second)) {
		t.Fatalf("after the first attempt: %+v; want to wait a minute", d)
	}
	b.deliverDue()
	if len(r.posts) != 0 {
		t.Error("it was tried again before its time")
	}
	// The clock is put back by years: a pause of a minute does not become years.
	b.clock.add(-5 * 365 * 24 * time.Hour)
	r.answer(http.StatusServiceUnavailable, "600")
	b.deliverDue()
	<-r.posts
	if d = b.log()[0]; d.Attempts != 2 || d.Next.Sub(b.clock.Now()) < time.Hour {
		t.Fatalf("after the second attempt: %+v; want to wait an hour", d)
	}
	r.answer(http.StatusAccepted, "")
	b.clock.add(2 * time.Hour)
	b.deliverDue()
	last := <-r.posts
	if d = b.log()[0]; d.State != DeliveryDone || d.Attempts != 3 || d.Status != 202 || d.Error != "" || d.Next != nil {
		t.Errorf("after the third attempt: %+v; want it delivered", d)
	}
	if first.id != last.id || first.id != d.ID || string(first.body) != string(last.body) {
		t.Errorf("attempts %q %s and %q %s; want the same ID and body", first.id, first.body, last.id, last.body)
	}
	seconds, err := strconv.ParseInt(last.header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := webhook.Sign(secret, last.id, time.Unix(seconds, 0), last.body); err != nil || last.header.Get("Webhook-Signature") != want {
		t.Errorf("signature %q, %v; want %q", last.header.Get("Webhook-Signature"), err, want)
	}
	var e struct {
		Type      string
		Timestamp time.Time
		Data      TestData
	}
	if err := json.Unmarshal(last.body, &e); err != nil || e.Type != EventTest || e.Timestamp.IsZero() || e.Data != (TestData{"chat", "tester"}) {
		t.Errorf("body %s (%v); want a test", last.body, err)
	}
}

// TestDeliveryThatCannotBeNoted: while the disk takes nothing, an event that was sent is not sent again and again.
func TestDeliveryThatCannotBeNoted(t *testing.T) {
	r := newReceiver(t, http.StatusOK)
	b := newTestBox(t, nil)
	failures := make(chan string, 1000)
	b.Log = slog.New(errorsTo{slog.DiscardHandler, failures})
	hook, _ := b.hook("chat", r.URL)
	b.test(hook)
	b.test(hook)
	exec := func(text string) {
		t.Helper()
		if _, err := b.db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TRIGGER full BEFORE UPDATE ON deliveries BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`)
	m := &postman{Keeper: b.Keeper, pause: time.Millisecond, busy: map[string]bool{}}
	for range 20 { // each failure stirs the keeper, which looks for what is due
		if _, err := m.deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := <-failures; !strings.Contains(text, "cannot be noted") {
			t.Fatalf("the log says %q; want that the delivery cannot be noted", text)
		}
	}
	exec(`DROP TRIGGER full`)
	m.all.Wait()
	if n := len(r.posts); n != 1 {
		t.Errorf("the event was sent %d times; want once", n)
	}
	b.deliverDue()
	for _, d := range b.log() {
		if d.State != DeliveryDone || d.Attempts != 1 {
			t.Errorf("with room again: %+v; want it delivered at the first attempt", d)
		}
	}
}

// errorsTo passes on what is logged as an error.
type errorsTo struct {
	slog.Handler
	to chan<- string
}

func (e errorsTo) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (e errorsTo) Handle(_ context.Context, r slog.Record) error {
	e.to <- r.Message
	return nil
}

func TestDeliveryGivesUp(t *testing.T) {
	r := newReceiver(t, http.StatusNotFound)
	b := newTestBox(t, func(b *testBox) { b.pauses = []time.Duration{time.Minute} })
	h, _ := b.hook("chat", r.URL)
	b.test(h)
	for range 3 {
		b.deliverDue()
		b.clock.add(2 * time.Minute)
	}
	if d := b.log()[0]; d.State != DeliveryFailed || d.Attempts != 2 || len(r.posts) != 2 {
		t.Errorf("%+v after %d attempts; want it failed after two", d, len(r.posts))
	}
	// 410 Gone: the receiver wants no more.
	r.answer(http.StatusGone, "")
	b.test(h)
	b.deliverDue()
	if h, err := b.Hook(t.Context(), h.ID); err != nil || !h.Paused || !strings.Contains(h.Reason, "410") {
		t.Errorf("webhook after 410 = %+v, %v; want it paused, with the reason", h, err)
	}
	// Events wait while it is paused.
	r.answer(http.StatusOK, "")
	b.test(h)
	b.deliverDue()
	if d := b.log()[0]; d.State != DeliveryWaits || d.Attempts != 0 {
		t.Errorf("an event of a paused webhook = %+v; want it to wait", d)
	}
	if _, err := b.PauseHook(t.Context(), h.ID, false); err != nil {
		t.Fatal(err)
	}
	b.deliverDue()
	if d := b.log()[0]; d.State != DeliveryDone {
		t.Errorf("after the pause: %+v; want it delivered", d)
	}
	b.test(h)
	if _, err := b.RemoveHook(t.Context(), h.ID); err != nil {
		t.Fatal(err)
	}
	b.deliverDue()
	if d := b.log()[0]; d.State != DeliveryFailed || !strings.Contains(d.Error, "removed") {
		t.Errorf("after the removal: %+v; want it failed", d)
	}
}

// What waits and what is kept is bounded, and the rest is in the log.
func TestDeliveriesAreBounded(t *testing.T) {
	r := newReceiver(t, http.StatusOK)
	b := newTestBox(t, nil)
	h, _ := b.hook("chat", r.URL)
	// fill adds deliveries that wait, or that ended.
	fill := func(n int, state string) {
		t.Helper()
		if _, err := b.db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO deliveries (id, hook, event, body, made, state, attempts, tried, next, status, error)
			SELECT 'old', ?, 'webhook.test', '{}', 1, ?, 0, 0, 1, 0, '' FROM n`, n, h.ID, state); err != nil {
			t.Fatal(err)
		}
	}
	fill(mostWaiting, DeliveryWaits)
	b.test(h)
	b.test(h)
	all, err := b.Deliveries(t.Context(), h.ID, DeliveryFailed, 0, 10)
	if err != nil || len(all) != 2 || !strings.Contains(all[0].Error, "which is the most") {
		t.Errorf("%d failed (%v), want the two for which there was no room: %+v", len(all), err, all)
	}
	if page, err := b.Deliveries(t.Context(), "", DeliveryWaits, all[1].Number, 3); err != nil || len(page) != 3 || page[0].Number != all[1].Number-1 {
		t.Errorf("a page = %+v, %v; want the three before %d", page, err, all[1].Number)
	}
	fill(mostEnded+10, DeliveryDone)
	b.test(h)
	var waiting, ended int
	if err := b.db.QueryRow(`SELECT sum(state = 'waiting'), sum(state <> 'waiting') FROM deliveries`).Scan(&waiting, &ended); err != nil ||
		waiting != mostWaiting || ended != mostEnded {
		t.Errorf("%d wait and %d have ended (%v); want %d and %d", waiting, ended, err, mostWaiting, mostEnded)
	}
}

func TestHooksRefuse(t *testing.T) {
	b := newTestBox(t, nil)
	var wrong *WrongError
	for _, c := range []struct{ name, url, secret, event, want string }{
		{"UP", "https://hooks.example/", "", "", "name"},
		{"x", "https://10.0.0.1/", "", "", "private network"},
		{"x", "http://hooks.example/", "", "", "use https"},
		{"x", "https://127.0.0.2/", "", "", "the box itself"},
		{"x", "http://127.0.0.1/", "hunter2", "", "secret"},
		{"x", "http://127.0.0.1/", "", "run.started", "events"},
	} {
		events := []string{}
		if c.event != "" {
			events = append(events, c.event)
		}
		if _, _, err := b.MakeHook(t.Context(), c.name, "", c.url, lab.NewSecret(c.secret), events, ""); !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("MakeHook(%q, %q, %q, %q) = %v; want %q", c.name, c.url, c.secret, c.event, err, c.want)
		}
	}
	b.hook("x", "http://127.0.0.1:1/")
	if _, _, err := b.MakeHook(t.Context(), "x", "", "http://127.0.0.1/", lab.Secret{}, nil, ""); !errors.Is(err, ErrExists) {
		t.Errorf("a second webhook of the name = %v; want ErrExists", err)
	}
	all, err := b.Hooks(t.Context())
	if text, _ := json.Marshal(all); err != nil || strings.Contains(string(text), "whsec_") {
		t.Errorf("the list shows a secret: %s, %v", text, err)
	}
}

// A run that ends is told of once, also by a process that starts after it ended; those from
// before there were webhooks are not.
func TestRunsAreToldOfOnce(t *testing.T) {
	r := newReceiver(t, http.StatusOK)
	b := newTestBox(t, nil)
	b.hook("chat", r.URL, EventFinished)
	b.hook("alerts", r.URL, EventRaised)
	stop := b.carryOut()
	b.put("checkout", planOf("https://a.test/"))
	w, err := b.Workflow(t.Context(), "checkout", 0)
	if err != nil {
		t.Fatal(err)
	}
	id, err := b.Start(t.Context(), w, nil, store.Once{})
	if err != nil {
		t.Fatal(err)
	}
	<-b.runner.started
	if err := b.Tell(t.Context()); err != nil || len(b.log()) != 0 {
		t.Errorf("while the run goes on: %v, %+v; want nothing told", err, b.log())
	}
	b.end(store.StateFailed)
	stop()
	b.restart() // before anybody was told
	// A film is the end of no run, and of no series in which a step could be.
	film := &lab.Run{ID: "20991231-000000-film", Kind: lab.KindFilm, State: store.StateDone, Wall: time.Date(2099, 12, 31, 0, 0, 0, 0, time.UTC)}
	if err := store.Put(b.Store.Root(), film, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Tell(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all := b.log()
	if len(all) != 1 || all[0].Event != EventFinished {
		t.Fatalf("deliveries = %+v; want one, to one webhook", all)
	}
	var e struct{ Data Finished }
	if err := json.Unmarshal(all[0].Body, &e); err != nil || e.Data.Run != id || e.Data.State != store.StateFailed ||
		e.Data.From == nil || e.Data.From.Version != 1 || e.Data.Page != "https://a.test/" || e.Data.API != "/api/v1/runs/"+id {
		t.Errorf("it says %s (%v)", all[0].Body, err)
	}
	// Another box's file is new: what has ended is history there.
	b.close()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(b.data, "automation.db"+suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	b.open()
	b.hook("chat", r.URL)
	if err := b.Tell(t.Context()); err != nil || len(b.log()) != 0 {
		t.Errorf("a new file tells of old runs: %v, %+v", err, b.log())
	}
}

// Work does all of it by itself: a schedule is due, its run ends, and somebody is told.
func TestWork(t *testing.T) {
	r := newReceiver(t, http.StatusOK)
	b := newTestBox(t, nil)
	b.hook("chat", r.URL)
	b.put("checkout", planOf("https://a.test/"))
	b.schedule("often", Timing{Workflow: "checkout", Every: "2h"})
	b.clock.add(3 * time.Hour)
	stop := b.carryOut()
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Work(ctx) }()
	id := <-b.runner.started
	b.runner.release <- store.StateDone
	got := <-r.posts
	if got.event != EventFinished || !strings.Contains(string(got.body), id) {
		t.Errorf("posted %s %s; want the end of %s", got.event, got.body, id)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

const childFolder = "EIDETIC_AUTOMATION_CHILD"

// postFromChild is the process that the test below kills: it posts until then.
func postFromChild() bool {
	data := os.Getenv(childFolder)
	if data == "" {
		return false
	}
	ctx := context.Background()
	jobs, err := store.OpenQueue(ctx, filepath.Join(data, "queue.db"))
	if err != nil {
		panic(err)
	}
	runs, err := store.Open(ctx, data, nil)
	if err != nil {
		panic(err)
	}
	var pauses []time.Duration
	for range 1000 {
		pauses = append(pauses, 50*time.Millisecond)
	}
	k, err := Open(ctx, Config{File: filepath.Join(data, "automation.db"), Store: runs, Pauses: pauses,
		Runs:   runqueue.New(runqueue.Config{Jobs: jobs, Store: runs}),
		Sender: webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		panic(err)
	}
	if err := k.Work(ctx); err != nil {
		panic(err)
	}
	return true
}

// A delivery outlives kill -9 between its attempts.
func TestDeliveryOutlivesKill(t *testing.T) {
	r := newReceiver(t, http.StatusInternalServerError)
	b := newTestBox(t, nil)
	b.clock.set(time.Now())
	h, _ := b.hook("chat", r.URL)
	b.test(h)
	want := b.log()[0].ID
	b.close()
	child := func() (kill func()) {
		t.Helper()
		c := exec.Command(os.Args[0])
		c.Env, c.Stderr = append(os.Environ(), childFolder+"="+b.data), os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return func() { _ = c.Process.Kill(); _ = c.Wait() }
	}
	next := func(kill func()) received {
		t.Helper()
		select {
		case got := <-r.posts:
			return got
		case <-time.After(testlab.Hang):
			kill()
			t.Fatal("nothing was posted")
		}
		return received{}
	}
	kill := child()
	for i := range 3 {
		if got := next(kill); got.id != want {
			t.Errorf("attempt %d has the ID %q; want %q", i+1, got.id, want)
		}
	}
	kill()
	b.open()
	noted := b.log()[0]
	b.close()
	if noted.State != DeliveryWaits || noted.Attempts < 2 {
		t.Fatalf("after the kill: %+v; want it to wait, with the attempts that were noted", noted)
	}
	r.answer(http.StatusOK, "")
	kill = child()
	for got := next(kill); got.status != http.StatusOK; got = next(kill) {
	}
	kill()
	b.open()
	// The answer came; the process may have been killed before it noted that.
	if d := b.log()[0]; d.Attempts < noted.Attempts || d.ID != want || len(b.log()) != 1 {
		t.Errorf("in the end: %+v, %d in the log; want one of the same ID", d, len(b.log()))
	}
}

// daily makes one finished run a day in the store, with these medians of SpeedIndex, and tells of
// them.
func (b *testBox) daily(from int, browser string, medians ...float64) {
	b.t.Helper()
	for i, median := range medians {
		wall := time.Date(2026, 8, 1+from+i, 9, 0, 0, 0, time.UTC)
		run := &lab.Run{ID: store.NewID(wall, "checkout"), Name: "checkout", Page: "https://a.test/", Wall: wall, State: store.StateDone,
			Plan:        lab.Plan{Name: "checkout", Arm: lab.Arm{Page: "https://a.test/"}, From: &lab.Origin{Workflow: "checkout", Version: 1}},
			Environment: lab.Environment{Browser: browser},
			Summary: []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 10, Median: median, Low: median - 5, High: median + 5},
				{Metric: "bytes", Unit: "B", Arm: lab.Control, N: 10, Median: 10 * median, Low: median, High: 11 * median}}}
		f, err := store.Create(b.data, run)
		if err != nil {
			b.t.Fatal(fmt.Errorf("%s: %w", run.ID, err))
		}
		if err := f.Close(); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := b.Tell(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}
