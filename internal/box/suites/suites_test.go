package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/internal/box/ownruns"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/suite"
)

func TestMain(m *testing.M) { testlab.Main(m, processDir, boxProcess) }

const three = `suite: three
trials: 2
entries:
  - name: first
    type: load
    visual: load/speed_index_ms
    plan: {steps: [{name: load, open: "https://www.shop.test/suite/article"}]}
    truth: [{metric: load/speed_index_ms, is: 1000, within: 17}]
  - name: second
    type: load
    visual: load/speed_index_ms
    plan: {steps: [{name: load, open: "https://www.shop.test/suite/feed"}]}
  - name: third
    type: load
    visual: load/speed_index_ms
    plan: {steps: [{name: load, open: "https://www.shop.test/suite/map"}]}
`

// world carries out runs in which Firefox takes twice as long.
type world struct {
	store *store.Store
	hold  func(ctx context.Context, p lab.Plan) // is called when half of a run's trials are made; nil does not hold
	fail  func(p lab.Plan) string               // says why a run fails; nil and "" do not

	mu   sync.Mutex
	made []string // names of the runs that began
}

func (w *world) Accept(_ context.Context, p lab.Plan) (lab.Plan, error) {
	p.Device = "virtual"
	return p, nil
}

func (w *world) Run(ctx context.Context, id string, p lab.Plan, _ func(runqueue.Progress)) error {
	w.mu.Lock()
	w.made = append(w.made, p.Name)
	w.mu.Unlock()
	run := &lab.Run{ID: id, Name: p.Name, Plan: p, State: store.StateRunning, Wall: time.Unix(1, 0).UTC(), Page: p.Page, Trials: []*lab.Trial{}}
	f, err := store.Create(w.store.Root(), run)
	if err != nil {
		return err
	}
	defer f.Close()
	arms := p.Every()
	for i := range len(arms) * p.Trials {
		arm := arms[i%len(arms)]
		t := &lab.Trial{Number: i + 1, Block: 1, Arm: arm.Name, Valid: true}
		if p.IsMany() {
			t.Cell = p.Cells()[i%len(arms)].Name
		}
		value := 1000 + float64(i)
		if arm.Browser != nil && arm.Browser.Name == lab.FirefoxESR {
			value *= 2
		}
		t.Measurements = []lab.Measurement{{Name: "load/speed_index_ms", Unit: "ms", Value: value}}
		run.Trials = append(run.Trials, t)
		if i+1 == p.Trials && w.hold != nil {
			if err := f.Save(run); err != nil {
				return err
			}
			w.hold(ctx, p)
		}
	}
	run.State = store.StateDone
	if w.fail != nil && w.fail(p) != "" {
		run.State, run.Error = store.StateFailed, w.fail(p)
	}
	if ctx.Err() != nil {
		run.State, run.Error = store.StateInterrupted, "it was cancelled"
	}
	return f.Save(run)
}

// box is a box with a queue, whose files outlive it.
type box struct {
	*Keeper
	queue *runqueue.Queue
	jobs  *store.Queue
}

func openBox(ctx context.Context, dir string, w *world) (*box, error) {
	runs, err := store.Open(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	jobs, err := store.OpenQueue(ctx, filepath.Join(dir, "queue.db"))
	if err != nil {
		return nil, err
	}
	w.store = runs
	queue := runqueue.New(runqueue.Config{Jobs: jobs, Store: runs, Runner: w})
	k, err := Open(Config{Dir: filepath.Join(dir, "suites"), Runs: queue, Store: runs, Software: "test 1", Patience: time.Minute})
	return &box{k, queue, jobs}, err
}

// work runs the box until ctx is done.
func (b *box) work(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.queue.Work(ctx) })
	group.Go(func() error { return b.Work(ctx) })
	return group.Wait()
}

func (b *box) close() error { return errors.Join(b.jobs.Close(), b.Store.Close()) }

// newBox is a box that works until the test ends, and has the suite three.
func newBox(t *testing.T, w *world) *box {
	t.Helper()
	b, err := openBox(t.Context(), t.TempDir(), w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.work(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, b.close()); err != nil {
			t.Error(err)
		}
	})
	if _, err := b.PutSuite("three", []byte(three), "", "ada", plan.ScopeRun); err != nil {
		t.Fatal(err)
	}
	return b
}

func request() Request {
	return Request{Suite: "three", Browsers: []string{lab.Chromium, lab.FirefoxESR}, By: "test", Scope: plan.ScopeAdmin}
}

func (b *box) measure(t *testing.T, q Request) string {
	t.Helper()
	r, err := b.Measure(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

// await waits until something holds for a result.
func (b *box) await(t *testing.T, id string, holds func(Result) bool) Result {
	t.Helper()
	var r Result
	testlab.Await(t, "a result", func() bool {
		var err error
		if r, err = b.Get(id); err != nil {
			t.Fatal(err)
		}
		return holds(r)
	}, func() any { return r })
	return r
}

func ended(r Result) bool { return !r.IsGoing() }

// A result has a run of each entry, and says what its file says.
func TestMeasure(t *testing.T) {
	w := &world{}
	b := newBox(t, w)
	r := b.await(t, b.measure(t, request()), ended)
	if r.State != ownruns.StateDone || r.Done != 3 || r.Runs != 3 || r.Failed != 0 || len(r.Table.Rows) != 3 {
		t.Fatalf("the result is %+v; want 3 of 3 runs done, and 3 rows", r)
	}
	if one := r.Table.Ratios[1]; one.Value < 1.99 || one.Value > 2.01 || one.Finding() != lab.Slower {
		t.Errorf("Firefox takes %+v times as long; want 2, slower", one)
	}
	if k := r.Known; len(k) != 2 || !k[0].Holds || k[1].Holds {
		t.Errorf("the known answers are %+v; want that Chromium's holds, and Firefox's not", k)
	}
	if f := r.Entries[0].Films; len(f) != 2 || f[0].Trial != 1 || f[1].Browser != lab.FirefoxESR || f[1].Trial != 2 {
		t.Errorf("the films are %+v; want the trials 1 and 2", f)
	}
	name, err := b.File(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	found, err := suite.ReadResult(name)
	if err != nil || found.Ended.IsZero() || found.Appliance != "test 1" || len(found.Entries) != 3 {
		t.Errorf("the file has %+v, %v; want the whole result", found, err)
	}
	if _, err := b.Resume(r.ID); !errors.Is(err, ErrComplete) {
		t.Errorf("Resume() of a whole result = %v; want ErrComplete", err)
	}
	if err := b.Cancel(r.ID); !errors.Is(err, ErrOver) {
		t.Errorf("Cancel() of a result that has ended = %v; want ErrOver", err)
	}
	if list := b.List(); len(list) != 1 || list[0].Table != nil {
		t.Errorf("the list is %+v; want one result without its table", list)
	}
	if err := errors.Join(b.RemoveSuite("three"), b.Remove(r.ID)); err != nil {
		t.Error(err)
	}
	if _, err := b.Get(r.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get() of one that was removed = %v; want ErrNotFound", err)
	}
	if _, err := os.Stat(filepath.Dir(name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder: %v; want that it is gone", err)
	}
}

// Three browsers take turns in one run of each entry, and each is held against the first.
func TestThreeBrowsers(t *testing.T) {
	w := &world{}
	b := newBox(t, w)
	q := request()
	q.Browsers = []string{lab.Chromium, "/opt/nightly/chrome --flag", lab.FirefoxESR}
	r := b.await(t, b.measure(t, q), ended)
	if r.State != ownruns.StateDone || r.Runs != 3 || len(w.made) != 3 || len(r.Table.Rows) != 3 {
		t.Fatalf("the result is %+v after runs of %q; want 3 of 3 runs done, and 3 rows", r, w.made)
	}
	for _, row := range r.Table.Rows {
		same, twice := row.Ratios[1], row.Ratios[2]
		if same == nil || twice == nil || same.Finding() != lab.NoChange && same.Value > 1.01 || twice.Value < 1.99 || twice.Finding() != lab.Slower || twice.Pairs != 2 {
			t.Errorf("%s: ratios %+v and %+v; want 1, and 2 of two pairs, slower", row.Entry, same, twice)
		}
		if len(row.Valid) != 3 || row.Valid[0] != 2 || row.Valid[1] != 2 || row.Valid[2] != 2 {
			t.Errorf("%s: valid trials %v; want 2 of each", row.Entry, row.Valid)
		}
	}
	run, err := b.Store.Run(r.Entries[0].Run)
	if err != nil || run.Plan.TakingTurns() != 3 || run.Plan.Users[1].Name != "2 chrome" || run.Plan.Users[1].Browser.Command != q.Browsers[1] {
		t.Errorf("the run's plan has the users %+v, %v; want three that take turns", run.Plan.Users, err)
	}
}

// A run that fails leaves the others, and is tried again.
func TestFailedEntryIsTriedAgain(t *testing.T) {
	var mu sync.Mutex
	why := "no screen"
	w := &world{fail: func(p lab.Plan) string {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(p.Name, "second") {
			return why
		}
		return ""
	}}
	b := newBox(t, w)
	r := b.await(t, b.measure(t, request()), ended)
	if r.State != ownruns.StateDone || r.Done != 2 || r.Failed != 1 || r.Entries[1].Error != why {
		t.Fatalf("the result is %+v; want 2 runs done, and one that failed: no screen", r)
	}
	mu.Lock()
	why = ""
	mu.Unlock()
	if _, err := b.Resume(r.ID); err != nil {
		t.Fatal(err)
	}
	if r = b.await(t, r.ID, ended); r.Done != 3 || r.Failed != 0 || len(w.made) != 4 {
		t.Errorf("the result is %+v after runs of %q; want that the one was made again", r, w.made)
	}
}

// A result that is stopped cancels its run, another waits for it, and it goes on with what it lacks.
func TestStopAndTurns(t *testing.T) {
	held := make(chan struct{})
	var once sync.Once
	w := &world{hold: func(ctx context.Context, p lab.Plan) {
		if strings.HasSuffix(p.Name, "second") {
			once.Do(func() {
				close(held)
				<-ctx.Done() // the run is cancelled
			})
		}
	}}
	b := newBox(t, w)
	first := b.measure(t, request())
	q := request()
	q.Only, q.Browsers = []string{"third"}, []string{lab.Chromium}
	second := b.measure(t, q)
	<-held
	going := b.await(t, first, func(r Result) bool { return len(r.Now) == 1 })
	if r, err := b.Get(second); err != nil || r.State != ownruns.StateWaiting || r.Runs != 1 {
		t.Errorf("the second is %+v, %v; want waiting for one run", r, err)
	}
	if err := b.Remove(first); !errors.Is(err, ErrGoing) {
		t.Errorf("Remove() of one that goes on = %v; want ErrGoing", err)
	}
	if since := b.Needs(); !since.Equal(going.Made) {
		t.Errorf("Needs() = %v; want %v", since, going.Made)
	}
	if err := b.Cancel(first); err != nil {
		t.Fatal(err)
	}
	if r := b.await(t, second, ended); r.State != ownruns.StateDone || len(r.Table.Rows) != 1 {
		t.Errorf("the second is %+v; want done", r)
	}
	stopped := b.await(t, first, ended)
	if stopped.State != ownruns.StateCancelled || stopped.Done != 1 {
		t.Errorf("the first is %+v; want cancelled with one run done", stopped)
	}
	for err := ErrComplete; errors.Is(err, ErrComplete); { // the work on it ends in a moment
		_, err = b.Resume(first)
	}
	if r := b.await(t, first, ended); r.State != ownruns.StateDone || r.Done != 3 {
		t.Errorf("the first is %+v after it went on; want 3 runs done", r)
	}
}

// What cannot be measured is refused when it is asked for, with its place.
func TestRefusals(t *testing.T) {
	b := newBox(t, &world{})
	b.Config.Check = func(_ context.Context, p lab.Plan) error {
		_, err := plan.Check(plan.Request{Plan: p}, plan.Options{From: &plan.Folder{}, Scope: plan.ScopeOf(p)})
		return err
	}
	for want, change := range map[string]func(*Request){
		store.ErrNotFound.Error(): func(q *Request) { q.Suite = "none" },
		`"fourth"`:                func(q *Request) { q.Only = []string{"fourth"} },
		"is there twice":          func(q *Request) { q.Browsers = []string{"chromium", "chromium"} },
		"trials: 15000 together":  func(q *Request) { q.Trials = 2500 },
		"trials: -1":              func(q *Request) { q.Trials = -1 },
		"spread: 51":              func(q *Request) { q.Spread = 51 },
		"three.yaml:7: entries[0].plan.browser.command": func(q *Request) { q.Browsers = []string{"/bin/sh"} },
	} {
		q := request()
		change(&q)
		if _, err := b.Measure(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Measure() = %v; want an error with %q", err, want)
		}
	}
	for want, put := range map[string][2]string{
		ErrShipped.Error():    {"eidetic-1", three},
		"was sent as":         {"four", three},
		ErrExists.Error():     {"three", three},
		"bad.yaml:1: unknown": {"bad", "sweet: bad\n"},
	} {
		if _, err := b.PutSuite(put[0], []byte(put[1]), "", "ada", plan.ScopeRun); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("PutSuite(%s) = %v; want an error with %q", put[0], err, want)
		}
	}
	s, err := b.Suite("three")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.PutSuite("three", []byte(three+"\n"), s.SHA256, "ada", plan.ScopeRun); err != nil {
		t.Errorf("PutSuite() with the hash of the one that is there = %v; want none", err)
	}
}

// One token takes neither all results, nor all that may go on, nor all suites: the next of another is taken.
func TestOneTokenTakesItsShare(t *testing.T) {
	b, err := openBox(t.Context(), t.TempDir(), &world{}) // it measures nothing: what is asked for waits
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	put := func(i int, by string) error {
		name := fmt.Sprint("mine-", i)
		_, err := b.PutSuite(name, []byte(strings.Replace(three, "suite: three", "suite: "+name, 1)), "", by, plan.ScopeRun)
		return err
	}
	for i := range lab.ShareOf(mostSuites) {
		if err := put(i, "eve"); err != nil {
			t.Fatal(err)
		}
	}
	if own, other := put(mostSuites, "eve"), put(mostSuites, "ada"); !errors.Is(own, lab.ErrShare) || other != nil {
		t.Errorf("one suite more of the same token: %v, of another: %v; want ErrShare, nil", own, other)
	}
	q := request()
	q.Suite, q.By = "mine-0", "eve"
	var stopped []string
	for n := range lab.ShareOf(mostResults) {
		if id := b.measure(t, q); n >= lab.ShareOf(mostGoing)-1 {
			if err := b.Cancel(id); err != nil {
				t.Fatal(err)
			}
			stopped = append(stopped, id)
		}
	}
	if _, err := b.Measure(t.Context(), q); !errors.Is(err, lab.ErrShare) {
		t.Errorf("one result more of the same token: %v; want ErrShare", err)
	}
	if _, err := b.Resume(stopped[0]); err != nil {
		t.Errorf("the last result of a token that may go on: %v; want nil", err)
	}
	if _, err := b.Resume(stopped[1]); !errors.Is(err, lab.ErrShare) {
		t.Errorf("one more that goes on: %v; want ErrShare", err)
	}
	q.By = "ada"
	b.measure(t, q)
}

const processDir = "EIDETIC_TEST_SUITES" // of the box that a process is

// boxProcess is the box of TestKilled, in a process that can be killed. It tells of each run that is half made, and ends
// when the result has ended.
func boxProcess(dir string) error {
	w := &world{hold: func(context.Context, lab.Plan) {
		fmt.Println("half")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test says so, or kills this process
	}}
	b, err := openBox(context.Background(), dir, w)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- b.work(ctx) }()
	if len(b.List()) == 0 {
		if _, err := b.PutSuite("three", []byte(three), "", "ada", plan.ScopeRun); err != nil {
			return err
		}
		if _, err := b.Measure(ctx, request()); err != nil {
			return err
		}
	}
	for tick := time.NewTicker(5 * time.Millisecond); b.List()[0].IsGoing(); {
		<-tick.C
	}
	fmt.Println("ended")
	stop()
	return errors.Join(<-done, b.close())
}

// A box that is killed in the middle of each of its runs measures each entry to its end.
func TestKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start := func() (*exec.Cmd, func() string, func()) {
		c := exec.CommandContext(t.Context(), self)
		c.Env = append(os.Environ(), processDir+"="+dir)
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c, func() string {
				var word string
				_, _ = fmt.Fscanln(out, &word)
				return word
			}, func() {
				if _, err := in.Write([]byte{'\n'}); err != nil {
					t.Error(err)
				}
			}
	}
	for kills := range 2 {
		c, heard, _ := start()
		if word := heard(); word != "half" {
			t.Fatalf("box %d says %q; want half", kills+1, word)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // it was killed
	}
	c, heard, goOn := start()
	for word := heard(); word != "ended"; word = heard() {
		if word != "half" {
			t.Fatalf("the last box says %q; want half or ended", word)
		}
		goOn()
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	b, err := openBox(t.Context(), dir, &world{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	r, err := b.Get(b.List()[0].ID)
	if err != nil || r.State != ownruns.StateDone || r.Done != 3 || len(r.Table.Rows) != 3 || len(r.Table.Missing) != 0 {
		t.Errorf("the result is %+v, %v; want 3 runs done", r, err)
	}
}

// An admin who measures a suite does not open this machine and private networks to the pages of whoever uploaded it.
func TestOnlyAdminsSuitesOpenHosts(t *testing.T) {
	b := newBox(t, &world{})
	var opened []string
	b.Config.Check = func(_ context.Context, p lab.Plan) error {
		opened = p.Opened
		return errors.New("it was looked at")
	}
	for _, c := range []struct {
		name  string
		scope plan.Scope
		asks  bool // whether the one who measures opens hosts
		opens bool
	}{{"of-run", plan.ScopeRun, true, false}, {"of-admin", plan.ScopeAdmin, true, true}, {"of-admin-unasked", plan.ScopeAdmin, false, false}} {
		text := strings.Replace(three, "suite: three", "suite: "+c.name, 1)
		if _, err := b.PutSuite(c.name, []byte(text), "", "ada", c.scope); err != nil {
			t.Fatal(err)
		}
		q := request()
		q.Suite, q.Opens = c.name, c.asks
		if _, err := b.Measure(t.Context(), q); err == nil || !strings.Contains(err.Error(), "it was looked at") {
			t.Fatalf("Measure(%s) = %v; want the check's error", c.name, err)
		}
		if (len(opened) > 0) != c.opens {
			t.Errorf("the suite %s opens %q; want hosts: %v", c.name, opened, c.opens)
		}
	}
}
