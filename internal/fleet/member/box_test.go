package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/fleettest"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.Main(m, processDir, boxProcess) }

// simulated carries runs out without a browser: each trial leaves a reel. A run that was interrupted goes on.
type simulated struct {
	describe time.Duration // Times.Describe; 0 is that of quick
	first    time.Duration // Times.First; 0 is that of quick
	store    *store.Store
	// trial is called before each trial; an error fails the run. Nil waits for nothing.
	trial func(ctx context.Context, id string, n int) error
	// accept refuses plans; nil refuses none.
	accept func(lab.Plan) error
	before func(id string) error // the run has a folder
	// updater is the box's; nil for none.
	updater *updater
}

func (s *simulated) Accept(_ context.Context, p lab.Plan) (lab.Plan, error) {
	if s.accept != nil {
		return p, s.accept(p)
	}
	return p, nil
}

func (s *simulated) Run(ctx context.Context, id string, p lab.Plan, progress func(runqueue.Progress)) error {
	if s.before != nil {
		if err := s.before(id); err != nil {
			return err
		}
	}
	f, run, err := store.Resume(s.store.Root(), id)
	if errors.Is(err, store.ErrNotFound) {
		run = &lab.Run{ID: id, Name: p.Name, Plan: p, State: store.StateRunning, Wall: time.Now().UTC(), Page: p.Page, Trials: []*lab.Trial{}}
		f, err = store.Create(s.store.Root(), run)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	run.State, run.Error = store.StateRunning, ""
	for n := len(run.Trials) + 1; n <= p.Trials; n++ {
		progress(runqueue.Progress{Trial: n, Of: p.Trials, Doing: "measuring"})
		if s.trial != nil {
			if err := s.trial(ctx, id, n); err != nil {
				run.State, run.Error = store.StateFailed, err.Error()
				return f.Save(run)
			}
		}
		if ctx.Err() != nil {
			run.State, run.Error = store.StateInterrupted, "it was stopped"
			return f.Save(run)
		}
		dir, err := f.TrialDir(n)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "reel"), fmt.Appendf(nil, "reel of %s, trial %d", id, n), 0o644); err != nil {
			return err
		}
		run.Trials = append(run.Trials, &lab.Trial{Number: n, Arm: lab.Control, Valid: n%3 != 0, Measurements: []lab.Measurement{}})
		if err := f.Save(run); err != nil {
			return err
		}
	}
	run.State = store.StateDone
	return f.Save(run)
}

// folder holds recordings as the service does, without judging them.
type folder struct {
	dir string
	mu  sync.Mutex
	err error // of the next Put
}

func (a *folder) Open(name string) (*os.File, error) { return os.Open(filepath.Join(a.dir, name)) }
func (a *folder) Remove(name string) error           { return os.Remove(filepath.Join(a.dir, name)) }
func (a *folder) Names() (names []string, err error) {
	entries, err := os.ReadDir(a.dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (a *folder) Put(_ context.Context, name string, content io.Reader) error {
	a.mu.Lock()
	wrong := a.err
	a.mu.Unlock()
	if wrong != nil {
		return wrong
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.dir, name), text, 0o644)
}

// box is a box with simulated devices, whose files outlive it.
type box struct {
	dir      string
	runner   *simulated
	keeper   *Keeper
	queue    *runqueue.Queue
	jobs     *store.Queue
	store    *store.Store
	archives *folder

	mu    sync.Mutex
	offer fleet.Offer
}

// quick are periods for tests.
func quick() Times {
	return Times{
		Describe: 200 * time.Millisecond, Progress: 10 * time.Millisecond, HandIn: 10 * time.Millisecond, Claim: time.Second, Look: 20 * time.Millisecond, First: 5 * time.Millisecond,
		Most: 50 * time.Millisecond, Call: 20 * time.Second,
	}
}

func openBox(ctx context.Context, dir string, r *simulated) (*box, error) {
	b := &box{dir: dir, runner: r, archives: &folder{dir: filepath.Join(dir, "archives")}}
	b.offer = fleet.Offer{Software: "test", Cores: 2, Devices: []fleet.OfferedDevice{{Name: "virtual", Kind: "virtual", Ready: true}}}
	err := os.MkdirAll(b.archives.dir, 0o755)
	if err != nil {
		return nil, err
	}
	if b.store, err = store.Open(ctx, dir, nil); err != nil {
		return nil, err
	}
	r.store = b.store
	if b.jobs, err = store.OpenQueue(ctx, filepath.Join(dir, "queue.db")); err != nil {
		return nil, err
	}
	all, err := b.jobs.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range all { // as the service does
		if j.State == store.StateInterrupted && b.store.Has(j.ID) {
			run, err := b.store.Run(j.ID)
			if err == nil && run.State == store.StateInterrupted {
				err = b.jobs.Release(ctx, j.ID)
			} else {
				err = b.jobs.Finish(ctx, j.ID)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	b.queue = runqueue.New(runqueue.Config{Jobs: b.jobs, Store: b.store, Runner: r})
	times := quick()
	times.Describe, times.First = cmp.Or(r.describe, times.Describe), cmp.Or(r.first, times.First)
	times.Most = max(times.First, times.Most)
	var system Updater
	if r.updater != nil {
		system = r.updater
	}
	b.keeper, err = Open(Config{
		Updater: system,
		Dir:     filepath.Join(dir, "fleet"), Queue: b.queue, Store: b.store, Archives: b.archives, Times: times,
		Offer: func(context.Context) fleet.Offer {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.offer
		},
		Same:      func(run *lab.Run, p lab.Plan) bool { return run.Plan.Seed == p.Seed && run.Plan.Device == p.Device },
		Resumable: func(*lab.Run) error { return nil },
	})
	return b, err
}

// work runs the box until ctx is done.
func (b *box) work(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.queue.Work(ctx) })
	group.Go(func() error { return b.keeper.Work(ctx) })
	return group.Wait()
}

func (b *box) close() error { return errors.Join(b.jobs.Close(), b.store.Close()) }

func (b *box) setOffer(f func(*fleet.Offer)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offer.Devices = append([]fleet.OfferedDevice(nil), b.offer.Devices...)
	f(&b.offer)
}

// start opens a box in a folder, which works until stop is called, or the test ends.
func start(t *testing.T, dir string, r *simulated) (b *box, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b, err := openBox(ctx, dir, r)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- b.work(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, b.close()); err != nil {
			t.Errorf("the box: %v", err)
		}
	})
	t.Cleanup(stop)
	return b, stop
}

// joined is start for a box that is a member of the head's fleet.
func joined(t *testing.T, h *fleettest.Head, r *simulated) *box {
	t.Helper()
	b, _ := start(t, t.TempDir(), r)
	if _, err := b.keeper.Join(t.Context(), h.Link(), "lab-1"); err != nil {
		t.Fatalf("Join() = %v; want nil", err)
	}
	return b
}

func assignment(part string, trials int) fleet.Assignment {
	return fleet.Assignment{Part: part, Run: part, Device: "virtual", Plan: lab.Plan{
		Name: "x", Trials: trials, Seed: 7, Arm: lab.Arm{Page: "https://a.test/"},
	}}
}

// limited is the test's context with the limit that only a hang meets.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	t.Cleanup(cancel)
	return ctx
}

// awaitEnd returns a part when it has ended.
func awaitEnd(t *testing.T, h *fleettest.Head, part string) fleettest.Part {
	t.Helper()
	h.Await(limited(t), t, "end of "+part, func() bool { return h.Part(part).Outcome != nil })
	h.Lock()
	defer h.Unlock()
	return *h.Part(part)
}
