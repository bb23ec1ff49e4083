package runqueue

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// fakeRunner makes a run's folder, and ends it when it is let go.
type fakeRunner struct {
	root    string
	started chan string
	release chan error
}

func (r *fakeRunner) Accept(_ context.Context, p lab.Plan) (lab.Plan, error) {
	if p.Page == "" {
		return p, errors.New("page: it is missing")
	}
	return p, nil
}

func (r *fakeRunner) Run(ctx context.Context, id string, p lab.Plan, progress func(Progress)) error {
	progress(Progress{Trial: 1, Of: p.Total(), Doing: "filming"})
	r.started <- id
	var end error
	select {
	case <-ctx.Done():
		end = ctx.Err()
	case end = <-r.release:
	}
	if p.Name == "no folder" {
		return end
	}
	f, err := store.Create(r.root, &lab.Run{ID: id, State: store.StateRunning})
	if err != nil {
		return err
	}
	defer f.Close()
	run := &lab.Run{ID: id, State: store.StateDone}
	if end != nil {
		run.State = store.StateInterrupted
	}
	return f.Save(run)
}

// newQueue returns a queue in a file, whose jobs nobody carries out yet.
func newQueue(t *testing.T) (*Queue, *fakeRunner) {
	t.Helper()
	dir := t.TempDir()
	runs, err := store.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runs.Close() })
	jobs, err := store.OpenQueue(t.Context(), filepath.Join(dir, "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { jobs.Close() })
	r := &fakeRunner{root: dir, started: make(chan string, 10), release: make(chan error)}
	return New(Config{Jobs: jobs, Store: runs, Runner: r, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}), r
}

// work carries the queue out until the returned function is called.
func work(t *testing.T, q *Queue) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Work(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Work() = %v; want nil", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func planOf(device, name string) lab.Plan {
	return lab.Plan{Name: name, Device: device, Trials: 3, Arm: lab.Arm{Page: "https://a.test/"}}
}

func add(t *testing.T, q *Queue, p lab.Plan) string {
	t.Helper()
	id, err := q.Add(t.Context(), p, store.Once{})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// awaitEnd reads a run's progress until it has ended.
func awaitEnd(t *testing.T, l *Listener) Progress {
	t.Helper()
	for {
		select {
		case <-l.Wake():
		case <-t.Context().Done():
			t.Fatal("the run has not ended")
		}
		for _, s := range l.Take() {
			if s.Terminal() {
				return s
			}
		}
	}
}

// Runs of one device wait for each other; another device has its own turn.
func TestOneRunPerDevice(t *testing.T) {
	q, r := newQueue(t)
	first, second, other := add(t, q, planOf("a", "x")), add(t, q, planOf("a", "x")), add(t, q, planOf("b", "x"))
	if second != first+"-2" || other != first+"-3" {
		t.Errorf("IDs of runs of one second and name: %q, %q, %q; want numbers at the end", first, second, other)
	}
	work(t, q)
	begun := map[string]bool{<-r.started: true, <-r.started: true}
	if !begun[first] || !begun[other] {
		t.Errorf("the runs %v have begun; want %s and %s", begun, first, other)
	}
	if job, err := q.Get(t.Context(), second); err != nil || job.State != store.StateQueued {
		t.Errorf("the second run of the device: %+v, %v; want one that waits", job, err)
	}
	if id, err := q.InProgress(t.Context()); err != nil || !begun[id] {
		t.Errorf("InProgress() = %q, %v; want one of %v", id, err, begun)
	}
	r.release <- nil
	r.release <- nil
	if got := <-r.started; got != second {
		t.Errorf("then %s begins; want %s", got, second)
	}
	r.release <- nil
}

// Whatever becomes of a run is told, and what left no folder behind stays in the queue.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		plan   string
		end    func(*testing.T, *Queue, *fakeRunner, string)
		state  string
		reason string
		stays  bool
	}{
		"done":      {"x", func(_ *testing.T, _ *Queue, r *fakeRunner, _ string) { r.release <- nil }, store.StateDone, "", false},
		"failed":    {"no folder", func(_ *testing.T, _ *Queue, r *fakeRunner, _ string) { r.release <- errors.New("no lease") }, store.StateFailed, "no lease", true},
		"nothing":   {"no folder", func(_ *testing.T, _ *Queue, r *fakeRunner, _ string) { r.release <- nil }, store.StateFailed, "the run left nothing behind", true},
		"cancelled": {"no folder", cancelRun, store.StateInterrupted, errCancelled.Error(), true},
		"stopped":   {"x", cancelRun, store.StateInterrupted, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			q, r := newQueue(t)
			work(t, q)
			id := add(t, q, planOf("a", c.plan))
			l := q.Events().Listen(id)
			defer l.Close()
			<-r.started
			c.end(t, q, r, id)
			got := awaitEnd(t, l)
			if diff := cmp.Diff(Progress{Run: id, State: c.state, Error: c.reason}, got); diff != "" {
				t.Errorf("the last event (-want +got):\n%s", diff)
			}
			job, err := q.Get(t.Context(), id)
			if c.stays != (err == nil) || c.stays && (job.State != c.state || job.Error != c.reason) {
				t.Errorf("the job: %+v, %v; want it to stay: %v", job, err, c.stays)
			}
		})
	}
}

func cancelRun(t *testing.T, q *Queue, _ *fakeRunner, id string) {
	t.Helper()
	if err := q.Cancel(t.Context(), id); err != nil {
		t.Errorf("Cancel() = %v; want nil", err)
	}
}

// A service that stops before a run has begun leaves it in the queue for the next one.
func TestRunThatHasNotBegunWaitsAgain(t *testing.T) {
	q, r := newQueue(t)
	id := add(t, q, planOf("a", "no folder"))
	stop := work(t, q)
	<-r.started
	stop()
	if job, err := q.Get(t.Context(), id); err != nil || job.State != store.StateQueued {
		t.Errorf("the job: %+v, %v; want one that waits", job, err)
	}
}

// A service that stops while a run is in progress leaves it in the queue: the next one goes on with it. One
// that a person stops does not go on.
func TestRunThatIsCutOffGoesOn(t *testing.T) {
	q, r := newQueue(t)
	id := add(t, q, planOf("a", "x"))
	stop := work(t, q)
	<-r.started
	l := q.Events().Listen(id)
	defer l.Close()
	stop()
	if got, err := q.Get(t.Context(), id); err != nil || got.State != store.StateQueued {
		t.Errorf("the job: %+v, %v; want one that waits", got, err)
	}
	if run, err := q.Store.Run(id); err != nil || run.State != store.StateInterrupted {
		t.Errorf("the run: %+v, %v; want an interrupted one", run, err)
	}
}

// A request with a key that came before gets the first one's run, also when its plan would be refused now. Runs of one
// name that are asked for at the same time have IDs of their own, also if each ends before the next one is in the
// queue.
func TestIDsOfRunsThatEndAtOnce(t *testing.T) {
	q, r := newQueue(t)
	const all, each = 8, 10
	r.started = make(chan string, all*each)
	close(r.release)
	work(t, q)
	ids := make(chan string, all*each)
	var asking sync.WaitGroup
	for i := range all {
		asking.Go(func() {
			for range each {
				id, err := q.Add(t.Context(), planOf("device-"+strconv.Itoa(i), "same"), store.Once{})
				if err != nil {
					t.Error(err)
				}
				ids <- id
			}
		})
	}
	asking.Wait()
	close(ids)
	seen := map[string]bool{}
	for id := range ids {
		if seen[id] {
			t.Errorf("two runs are %s", id)
		}
		seen[id] = true
	}
}

func TestAddOnce(t *testing.T) {
	q, _ := newQueue(t)
	once := store.Once{Key: "k", Request: "digest"}
	first, err := q.Add(t.Context(), planOf("a", "x"), once)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := q.Add(t.Context(), lab.Plan{}, once); err != nil || again != first {
		t.Errorf("Add() with the key of an earlier request = %q, %v; want %q, nil", again, err, first)
	}
	if _, err := q.Add(t.Context(), planOf("a", "x"), store.Once{Key: "k", Request: "another"}); !errors.Is(err, store.ErrKeyUsed) {
		t.Errorf("Add() of another request with the key = %v; want ErrKeyUsed", err)
	}
	var rejected *RejectedError
	if _, err := q.Add(t.Context(), lab.Plan{}, store.Once{}); !errors.As(err, &rejected) {
		t.Errorf("Add() of a plan without a page = %v; want a RejectedError", err)
	}
	if jobs, err := q.List(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("%d jobs, %v; want 1, nil", len(jobs), err)
	}
}

// A run whose ID somebody else has chosen is one job, however often it comes.
func TestAddAs(t *testing.T) {
	q, r := newQueue(t)
	for range 3 {
		if err := q.AddAs(t.Context(), "20270115-080000-x.01", planOf("a", "x")); err != nil {
			t.Fatalf("AddAs() = %v; want nil", err)
		}
	}
	var rejected *RejectedError
	for id, p := range map[string]lab.Plan{"../x": planOf("a", "x"), "y": {}} {
		if err := q.AddAs(t.Context(), id, p); !errors.As(err, &rejected) {
			t.Errorf("AddAs(%q) = %v; want a RejectedError", id, err)
		}
	}
	if jobs, err := q.List(t.Context()); err != nil || len(jobs) != 1 || jobs[0].Device != "a" {
		t.Errorf("jobs: %+v, %v; want one of device a", jobs, err)
	}
	l := q.Events().Listen("20270115-080000-x.01")
	defer l.Close()
	work(t, q)
	if got := <-r.started; got != "20270115-080000-x.01" {
		t.Errorf("the run %s begins; want that with the given ID", got)
	}
	r.release <- nil
	if got := awaitEnd(t, l); got.State != store.StateDone {
		t.Errorf("the run ended as %+v; want done", got)
	}
}

func TestCancelAJobThatWaits(t *testing.T) {
	q, _ := newQueue(t)
	id := add(t, q, planOf("a", "x"))
	if err := q.Cancel(t.Context(), id); err != nil {
		t.Errorf("Cancel() = %v; want nil", err)
	}
	if err := q.Cancel(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Cancel() again = %v; want ErrNotFound", err)
	}
}

func TestWaits(t *testing.T) {
	q, _ := newQueue(t)
	var ids []string
	for _, device := range []string{"a", "b", "a", "a", ""} {
		ids = append(ids, add(t, q, planOf(device, "x")))
	}
	said := func() string {
		t.Helper()
		all, err := q.Waits(t.Context(), append(ids, "none")...)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, id := range ids {
			texts = append(texts, all[id])
		}
		return strings.Join(texts, "|")
	}
	if got, want := said(), "||a is about to be free; 1 run comes first|a is about to be free; 2 runs come first|"; got != want {
		t.Errorf("before any has begun: %s; want %s", got, want)
	}
	for range 2 {
		if _, err := q.Jobs.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := "||a carries out " + ids[0] + ", and it is next|a carries out " + ids[0] + ", and 1 run comes first|"
	if got := said(); got != want {
		t.Errorf("with runs on a and b: %s; want %s", got, want)
	}
	if all, err := q.Waits(t.Context(), ids[3]); err != nil || len(all) != 1 {
		t.Errorf("Waits(one) = %q, %v; want that one", all, err)
	}
}

// A job that was taken from the queue between a caller's look at it and its
// removal is not removed: its device would have two runs.
func TestCancelKeepsAJobThatRuns(t *testing.T) {
	q, _ := newQueue(t)
	id := add(t, q, planOf("a", "x"))
	if _, err := q.Jobs.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := q.Cancel(t.Context(), id); !errors.Is(err, ErrEnding) {
		t.Errorf("Cancel() of a job that another worker has = %v; want ErrEnding", err)
	}
	if job, err := q.Get(t.Context(), id); err != nil || job.State != store.StateRunning {
		t.Errorf("the job: %+v, %v; want one that runs", job, err)
	}
}

// A run that has ended is forgotten also in the moment before its worker lets go of it.
func TestForgetAtTheEnd(t *testing.T) {
	q, _ := newQueue(t)
	id := add(t, q, planOf("a", "x"))
	if _, _, err := q.worker.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer q.worker.drop(id)
	if err := q.Jobs.Leave(t.Context(), id, store.StateFailed, "no lease"); err != nil {
		t.Fatal(err)
	}
	if err := q.Cancel(t.Context(), id); err != nil {
		t.Errorf("Cancel() = %v; want nil", err)
	}
	if job, err := q.Get(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the job: %+v, %v; want ErrNotFound", job, err)
	}
}

// A job that the queue shows as running can be stopped.
func TestTakenJobsCanBeStopped(t *testing.T) {
	q, _ := newQueue(t)
	id := add(t, q, planOf("a", "x"))
	_, own, err := q.worker.take(t.Context())
	if err != nil || !q.worker.stop(id) || !errors.Is(context.Cause(own), errCancelled) {
		t.Errorf("take() = %v, cause %v; want a run that stop() cancels", err, context.Cause(own))
	}
}

// A slow listener gets the newest progress of each run, and the last.
func TestSlowListener(t *testing.T) {
	e := NewEvents()
	e.Publish(Progress{Run: "a", State: "running", Trial: 1})
	l := e.Listen("")
	defer l.Close()
	for i := 2; i < 100; i++ {
		e.Publish(Progress{Run: "a", State: "running", Trial: i})
	}
	e.Publish(Progress{Run: "b", State: "done"})
	e.Publish(Progress{Run: "a", State: "done"})
	want := []Progress{{Run: "a", State: "done"}, {Run: "b", State: "done"}}
	if diff := cmp.Diff(want, l.Take()); diff != "" {
		t.Errorf("Take() (-want +got):\n%s", diff)
	}
}

// A listener that comes late gets nothing of a run that has ended.
func TestLateListener(t *testing.T) {
	e := NewEvents()
	e.Publish(Progress{Run: "a", State: "running"})
	e.Publish(Progress{Run: "a", State: "done"})
	l := e.Listen("a")
	defer l.Close()
	if got := l.Take(); len(got) != 0 {
		t.Errorf("Take() = %v; want nothing of a run that has ended", got)
	}
}
