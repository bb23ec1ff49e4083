package automation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
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

func TestMain(m *testing.M) {
	if postFromChild() {
		return
	}
	testlab.NoLeaks(m)
}

// testClock is a wall clock that a test sets.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func (c *testClock) add(d time.Duration) { c.set(c.Now().Add(d)) }

// testRunner carries out runs without a device: each has a folder, and ends when the test says.
type testRunner struct {
	root    string
	clock   *testClock
	started chan string
	release chan string // the state in which it ends
	median  float64     // of SpeedIndex
	mu      sync.Mutex
	refuse  error
}

func (r *testRunner) Accept(_ context.Context, p lab.Plan) (lab.Plan, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Device = cmp.Or(p.Device, "virtual")
	return p, r.refuse
}

func (r *testRunner) setRefuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = err
}

func (r *testRunner) Run(ctx context.Context, id string, p lab.Plan, _ func(runqueue.Progress)) error {
	run := &lab.Run{ID: id, Name: p.Name, Page: p.Page, Plan: p, State: store.StateRunning, Wall: r.clock.Now().UTC(),
		Summary: []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 10, Median: r.median, Low: r.median - 5, High: r.median + 5}}}
	f, err := store.Create(r.root, run)
	if err != nil {
		return err
	}
	defer f.Close()
	r.started <- id
	select {
	case <-ctx.Done():
		run.State = store.StateInterrupted
	case run.State = <-r.release:
	}
	return f.Save(run)
}

// testBox is a box with a queue, a store and a keeper, all on disk.
type testBox struct {
	t      *testing.T
	data   string
	clock  *testClock
	runner *testRunner
	jobs   *store.Queue
	runs   *store.Store
	queue  *runqueue.Queue
	*Keeper
	sender Sender
	pauses []time.Duration
}

func newTestBox(t *testing.T, change func(*testBox)) *testBox {
	t.Helper()
	data := t.TempDir()
	clock := &testClock{now: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)}
	b := &testBox{t: t, data: data, clock: clock, sender: webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}},
		runner: &testRunner{root: data, clock: clock, started: make(chan string, 100), release: make(chan string, 100), median: 900}}
	if change != nil {
		change(b)
	}
	b.open()
	t.Cleanup(func() { b.close() })
	return b
}

func (b *testBox) open() {
	b.t.Helper()
	var err error
	if b.runs, err = store.Open(b.t.Context(), b.data, nil); err != nil {
		b.t.Fatal(err)
	}
	if b.jobs, err = store.OpenQueue(b.t.Context(), filepath.Join(b.data, "queue.db")); err != nil {
		b.t.Fatal(err)
	}
	b.queue = runqueue.New(runqueue.Config{Jobs: b.jobs, Store: b.runs, Runner: b.runner, Now: b.clock.Now})
	b.Keeper, err = Open(b.t.Context(), Config{File: filepath.Join(b.data, "automation.db"), Runs: b.queue, Store: b.runs, Sender: b.sender,
		Now: b.clock.Now, Pauses: b.pauses})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *testBox) close() {
	if b.Keeper == nil {
		return
	}
	if err := errors.Join(b.Keeper.Close(), b.jobs.Close(), b.runs.Close()); err != nil {
		b.t.Error(err)
	}
	b.Keeper = nil
}

// restart is a process that ends and another that begins.
func (b *testBox) restart() {
	b.close()
	b.open()
}

// carryOut carries the queue out until the returned function is called.
func (b *testBox) carryOut() (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- b.queue.Work(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	}
}

// end lets the run that goes on end, and waits until the queue has forgotten it.
func (b *testBox) end(state string) {
	b.t.Helper()
	listener := b.queue.Events().Listen("")
	defer listener.Close()
	b.runner.release <- state
	for {
		<-listener.Wake()
		for _, p := range listener.Take() {
			if p.Terminal() {
				return
			}
		}
	}
}

func (b *testBox) put(name string, plan lab.Plan, tags ...string) Workflow {
	b.t.Helper()
	w, err := b.Workflow(b.t.Context(), name, 0)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		b.t.Fatal(err)
	}
	if err != nil {
		w.Version = 0
	}
	if w, err = b.PutWorkflow(b.t.Context(), name, plan, tags, "tester", Expect{Version: w.Version}); err != nil {
		b.t.Fatal(err)
	}
	return w
}

func planOf(page string) lab.Plan {
	return lab.Plan{Name: "checkout", Arm: lab.Arm{Page: page}, Trials: 10}
}

func TestWorkflows(t *testing.T) {
	b := newTestBox(t, nil)
	ctx := t.Context()
	if w := b.put("checkout", planOf("https://a.test/"), "team-a"); w.Version != 1 || w.By != "tester" || w.Page != "https://a.test/" || len(w.Tags) != 1 {
		t.Errorf("a new workflow = %+v; want version 1", w)
	}
	if w := b.put("checkout", planOf("https://a.test/"), "team-a"); w.Version != 1 {
		t.Errorf("the same plan makes version %d; want 1", w.Version)
	}
	if w := b.put("checkout", planOf("https://b.test/")); w.Version != 2 || len(w.Kept) != 2 || len(w.Tags) != 0 {
		t.Errorf("another plan = %+v; want version 2 and two kept", w)
	}
	b.restart()
	if w, err := b.Workflow(ctx, "checkout", 1); err != nil || w.Plan.Page != "https://a.test/" {
		t.Errorf("Workflow(1) after a restart = %+v, %v; want the first plan", w, err)
	}
	for name, c := range map[string]struct {
		name   string
		expect Expect
		want   error
	}{
		"it exists":         {"checkout", Expect{}, ErrExists},
		"an old version":    {"checkout", Expect{Version: 1}, ErrChanged},
		"it does not exist": {"other", Expect{Version: 1}, ErrChanged},
		"none exists":       {"other", Expect{Any: true}, ErrChanged},
	} {
		if _, err := b.PutWorkflow(ctx, c.name, planOf("https://c.test/"), nil, "", c.expect); !errors.Is(err, c.want) {
			t.Errorf("%s: PutWorkflow() = %v; want %v", name, err, c.want)
		}
	}
	var wrong *WrongError
	for _, name := range []string{"", "Upper", "a b", "../x", strings.Repeat("a", 61), "-a"} {
		if _, err := b.PutWorkflow(ctx, name, planOf("https://c.test/"), nil, "", Expect{}); !errors.As(err, &wrong) {
			t.Errorf("PutWorkflow(%q) = %v; want a WrongError", name, err)
		}
	}
	if _, err := b.PutWorkflow(ctx, "x", planOf("https://c.test/"), []string{"a b"}, "", Expect{}); !errors.As(err, &wrong) {
		t.Errorf("a tag with a space = %v; want a WrongError", err)
	}
	forged := planOf("https://c.test/")
	forged.From = &lab.Origin{Workflow: "checkout", Version: 9}
	if _, err := b.PutWorkflow(ctx, "x", forged, nil, "", Expect{}); !errors.As(err, &wrong) {
		t.Errorf("a plan that says where it came from = %v; want a WrongError", err)
	}
	for i := range mostVersions + 3 {
		b.put("checkout", planOf(fmt.Sprintf("https://%d.test/", i)))
	}
	if _, err := b.Workflow(ctx, "checkout", 2); !errors.Is(err, ErrVersion) {
		t.Errorf("Workflow(2) after %d more = %v; want ErrVersion", mostVersions+3, err)
	}
	// A name that is used again goes on counting: a run's version means one plan for ever.
	if err := b.RemoveWorkflow(ctx, "checkout", Expect{Any: true}); err != nil {
		t.Fatal(err)
	}
	if all, err := b.Workflows(ctx); err != nil || len(all) != 0 {
		t.Errorf("Workflows() = %+v, %v; want none", all, err)
	}
	if err := b.RemoveWorkflow(ctx, "checkout", Expect{Any: true}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removed twice: %v; want ErrNotFound", err)
	}
	if w := b.put("checkout", planOf("https://a.test/")); w.Version != 2+mostVersions+3+1 || len(w.Kept) != 1 {
		t.Errorf("made again: version %d, %d kept; want %d, 1", w.Version, len(w.Kept), 2+mostVersions+3+1)
	}
}

func TestTooManyWorkflows(t *testing.T) {
	b := newTestBox(t, nil)
	b.put("w7", planOf("https://a.test/"))
	if _, err := b.db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO workflows (name, version, gone, tags) SELECT 'x' || i, 1, 0, '[]' FROM n`, mostWorkflows-1); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PutWorkflow(t.Context(), "one-more", planOf("https://a.test/"), nil, "", Expect{}); !errors.Is(err, ErrMany) {
		t.Errorf("one workflow too many = %v; want ErrMany", err)
	}
	b.put("w7", planOf("https://b.test/")) // those that there are can be changed
}

// One token takes neither all workflows nor all schedules nor all references, and changes those that it has.
func TestOneTokenTakesItsShare(t *testing.T) {
	b := newTestBox(t, nil)
	b.put("w0", planOf("https://a.test/"))
	if _, err := b.db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		INSERT INTO workflows (name, version, gone, tags) SELECT 'x' || i, 1, 0, '[]' FROM n;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		INSERT INTO versions (name, version, plan, made, by) SELECT 'x' || i, 1, '{}', 0, 'eve' FROM n;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
		INSERT INTO schedules (name, revision, asked, made, by, anchor, next, handled, run)
			SELECT 'x' || i, 1, '{"workflow":"w0","every":"1h","paused":true}', 0, 'eve', 0, 0, 0, '' FROM n;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?3)
		INSERT INTO refs (name, branch, version, run, reference) SELECT 'x', 'b' || i, 1, 'x', '{"by":"eve"}' FROM n`,
		lab.ShareOf(mostWorkflows), lab.ShareOf(mostSchedules), lab.ShareOf(mostReferences)); err != nil {
		t.Fatal(err)
	}
	timing := Timing{Workflow: "w0", Every: "2h", Paused: true}
	for what, put := range map[string]func(name, by string, e Expect) error{
		"workflow": func(name, by string, e Expect) error {
			_, err := b.PutWorkflow(t.Context(), name, planOf("https://b.test/"), nil, by, e)
			return err
		},
		"schedule": func(name, by string, e Expect) error {
			_, err := b.PutSchedule(t.Context(), name, timing, by, e)
			return err
		},
	} {
		for by, want := range map[string]error{"eve": lab.ErrShare, "ada": nil} {
			if err := put("of-"+by, by, Expect{}); !errors.Is(err, want) {
				t.Errorf("one %s more of %s: %v, want %v", what, by, err, want)
			}
		}
		if err := put("x1", "eve", Expect{Any: true}); err != nil {
			t.Errorf("another version of a %s that there is: %v", what, err)
		}
	}
	for by, want := range map[string]error{"eve": lab.ErrShare, "ada": nil} {
		if _, err := b.PutReference(t.Context(), "main", measured("r1", "shop", 6, 2), by, by); !errors.Is(err, want) {
			t.Errorf("one reference more of %s: %v, want %v", by, err, want)
		}
	}
	// Neither does one take all the room for their plans.
	if _, err := b.db.Exec(`UPDATE versions SET plan = json_object('name', printf('%.*c', ?, 'x')) WHERE name = 'x2'`,
		lab.ShareOf(lab.MostPlanBytes)); err != nil {
		t.Fatal(err)
	}
	for by, want := range map[string]error{"eve": lab.ErrShare, "ada": nil} {
		if _, err := b.PutWorkflow(t.Context(), "x1", planOf("https://"+by+".test/"), nil, by, Expect{Any: true}); !errors.Is(err, want) {
			t.Errorf("one plan more of %s: %v, want %v", by, err, want)
		}
	}
}

// A run keeps which workflow and version it came from, also when its plan was changed for it.
func TestStartKeepsWhereTheRunCameFrom(t *testing.T) {
	b := newTestBox(t, nil)
	stop := b.carryOut()
	defer stop()
	b.put("checkout", planOf("https://a.test/"))
	w := b.put("checkout", planOf("https://b.test/"))
	id, err := b.Start(t.Context(), w, func(p lab.Plan) (lab.Plan, error) { p.Trials = 3; return p, nil }, store.Once{})
	if err != nil {
		t.Fatal(err)
	}
	<-b.runner.started
	b.end(store.StateDone)
	run, err := b.runs.Run(id)
	if err != nil || run.Plan.From == nil || *run.Plan.From != (lab.Origin{Workflow: "checkout", Version: 2, Changed: true}) || run.Plan.Trials != 3 {
		t.Errorf("plan of the run = %+v, %v; want 3 trials, from checkout 2, changed", run.Plan, err)
	}
}

// A file of a newer version is not touched, and a damaged one is told from that.
func TestFileOfANewerVersion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "automation.db")
	db, fresh, err := store.OpenDatabase(t.Context(), file, append(schema(), "CREATE TABLE later (x INTEGER)"))
	if err != nil || !fresh {
		t.Fatalf("OpenDatabase() = fresh %v, %v", fresh, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.OpenDatabase(t.Context(), file, schema()); err == nil || !strings.Contains(err.Error(), "newer") || store.Damaged(err) {
		t.Errorf("OpenDatabase() of a newer file = %v; want an error that says so, and no damage", err)
	}
}
