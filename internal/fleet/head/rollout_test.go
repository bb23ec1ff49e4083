package head

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/image/update"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/member"
	"eidetic/internal/lab"
	"eidetic/internal/panel"
	"eidetic/internal/pin"
	"eidetic/internal/report/reporttest"
	"eidetic/internal/runqueue"
	"eidetic/internal/store"
	"eidetic/internal/testlab"
)

// lateClock is the machine's clock, put forward by a test.
type lateClock struct {
	mu   sync.Mutex
	late time.Duration
}

func (c *lateClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.late)
}

func (c *lateClock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late += d
}

// testHead is a head whose folder, certificate and address outlive it.
type testHead struct {
	*Head
	t     *testing.T
	dir   string
	at    string // where it listens
	cert  *tls.Certificate
	clock *lateClock
	stop  func()
}

func newTestHead(t *testing.T) *testHead {
	t.Helper()
	cert, err := pin.LoadOrCreate(t.TempDir(), nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	h := &testHead{t: t, dir: t.TempDir(), at: "127.0.0.1:0", cert: cert, clock: &lateClock{}}
	if err := os.WriteFile(filepath.Join(h.dir, "site.wacz"), []byte("a recording"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *testHead) start() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	runs, err := store.Open(ctx, h.dir, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	blobs, err := blob.OpenFolder(filepath.Join(h.dir, "files"))
	if err != nil {
		h.t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", h.at, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*h.cert}, ClientAuth: tls.RequestClientCert})
	if err != nil {
		h.t.Fatal(err)
	}
	h.at = listener.Addr().String()
	h.Head, err = Open(ctx, Config{
		Data: h.dir, Database: filepath.Join(h.dir, "fleet.db"), Blobs: blobs, Store: runs, Check: func(lab.Plan) error { return nil },
		Archive: func(name string) (string, error) { return filepath.Join(h.dir, name), nil },
		Address: h.at, Pin: pin.Of(h.cert.Leaf), Now: h.clock.now,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	server := &http.Server{Handler: h.BoxHandler(), ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	served, worked := make(chan struct{}), make(chan error, 1)
	go func() { _ = server.Serve(listener); close(served) }()
	head := h.Head
	go func() { worked <- head.Work(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		_ = server.Close()
		<-served
		if err := <-worked; err != nil && !errors.Is(err, context.Canceled) {
			h.t.Errorf("the head: %v", err)
		}
		if err := errors.Join(head.Close(), runs.Close()); err != nil {
			h.t.Error(err)
		}
	})
}

// restart is what a kill and a new start leave the boxes with.
func (h *testHead) restart() {
	h.t.Helper()
	h.stop()
	h.start()
}

// refer has all boxes measure a reference.
func (h *testHead) refer() {
	h.t.Helper()
	err := h.Boxes().SetReference(h.t.Context(), panel.Reference{Plan: lab.Plan{Trials: 4, Arm: lab.Arm{Page: "https://www.shop.example/", Archive: "site.wacz"}}, Every: "6h"})
	if err != nil {
		h.t.Fatal(err)
	}
}

// update asks for an update of some boxes.
func (h *testHead) update(bundle []byte, boxes ...string) panel.Rollout {
	h.t.Helper()
	r, err := h.Boxes().Update(h.t.Context(), panel.BoxUpdate{Bundle: bytes.NewReader(bundle), Boxes: boxes, By: "test"})
	if err != nil {
		h.t.Fatalf("Update() = %v; want nil", err)
	}
	return r
}

// await returns the rollout when f is true of it.
func (h *testHead) await(what string, f func(panel.Rollout) bool) panel.Rollout {
	h.t.Helper()
	var last panel.Rollout
	h.until(what, func() bool {
		r, err := h.Boxes().Rollout(h.t.Context())
		if err != nil {
			h.t.Fatalf("Rollout() = %v; want nil", err)
		}
		if r != nil {
			last = *r
		}
		return r != nil && f(*r)
	}, func() { h.t.Logf("the rollout: %+v", last) })
	return last
}

// until returns when f is true; only a hang ends the test.
func (h *testHead) until(what string, f func() bool, explain func()) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), testlab.Hang)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !f() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			explain()
			h.t.Fatalf("never: %s", what)
		}
	}
}

func (h *testHead) health(box string) string {
	h.t.Helper()
	b, err := h.ledger.Box(h.t.Context(), box)
	if err != nil {
		h.t.Fatal(err)
	}
	return b.Health
}

func has(state string) func(panel.Rollout) bool {
	return func(r panel.Rollout) bool { return r.State == state }
}

func boxAt(n int, state string) func(panel.Rollout) bool {
	return func(r panel.Rollout) bool { return r.Boxes[n].State == state }
}

func states(r panel.Rollout) (all []string) {
	for _, b := range r.Boxes {
		all = append(all, b.State)
	}
	return all
}

// testBox is a box with a real member, whose measurements and updater are simulated: it restarts into what it installs.
type testBox struct {
	head *testHead
	dir  string
	keys update.Keys // nil: the machine has no updater

	// Fields that a test changes before the box is started, or under mu.
	mu       sync.Mutex
	factor   map[string]float64                      // by how much a version is slower than usual
	restarts func(version string) (becomes string)   // nil: what was installed starts; "" stays off
	reading  func(ctx context.Context) (stall error) // called in the middle of a bundle
	trial    func(ctx context.Context) error         // called before each run
	version  string
	status   member.UpdateStatus
	runs     []string // names of plans that it carried out, with the version
	rebooted chan struct{}
	kill     func() // stops the box at once; its files stay
}

func newTestBox(t *testing.T, h *testHead, name string, keys update.Keys) *testBox {
	t.Helper()
	b := &testBox{head: h, dir: t.TempDir(), keys: keys, version: "1.0", factor: map[string]float64{}, rebooted: make(chan struct{}, 1)}
	code, err := h.Boxes().NewCode(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := member.Join(t.Context(), code.Link, name, fleet.Offer{Software: "test", Devices: []fleet.OfferedDevice{}}, filepath.Join(b.dir, "fleet")); err != nil {
		t.Fatal(err)
	}
	b.boot(t)
	return b
}

// boot starts the box, which boots again whenever an update is installed.
func (b *testBox) boot(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := b.live(ctx); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	b.kill = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the box: %v", err)
		}
	})
	t.Cleanup(func() { b.kill() })
}

// live is the box between two boots.
func (b *testBox) live(ctx context.Context) error {
	own, stop := context.WithCancel(ctx)
	defer stop()
	runs, err := store.Open(own, b.dir, nil)
	if err != nil {
		return err
	}
	defer runs.Close()
	jobs, err := store.OpenQueue(own, filepath.Join(b.dir, "queue.db"))
	if err != nil {
		return err
	}
	defer jobs.Close()
	queue := runqueue.New(runqueue.Config{Jobs: jobs, Store: runs, Runner: &measurer{b, runs}})
	config := member.Config{
		Dir: filepath.Join(b.dir, "fleet"), Queue: queue, Store: runs, Archives: &recordings{b.dir},
		Offer: func(context.Context) fleet.Offer {
			return fleet.Offer{Software: "test", Cores: 2, Devices: []fleet.OfferedDevice{{Name: "virtual", Kind: "virtual", Ready: true, Browsers: []string{"chromium"}}}}
		},
		Same: func(*lab.Run, lab.Plan) bool { return true }, Resumable: func(*lab.Run) error { return nil },
		Times: member.Times{
			Describe: 100 * time.Millisecond, HandIn: 10 * time.Millisecond, Claim: time.Second, Look: 10 * time.Millisecond, First: 5 * time.Millisecond,
			Most: 50 * time.Millisecond, Call: 20 * time.Second,
		},
	}
	if b.keys != nil {
		config.Updater = b
	}
	keeper, err := member.Open(config)
	if err != nil {
		return err
	}
	group, works := errgroup.WithContext(own)
	group.Go(func() error { return queue.Work(works) })
	group.Go(func() error { return keeper.Work(works) })
	select {
	case <-ctx.Done():
		return group.Wait()
	case <-b.rebooted:
	}
	stop()
	if err := group.Wait(); err != nil {
		return err
	}
	b.mu.Lock()
	becomes, installed := b.status.Last, b.status.Last
	if b.restarts != nil {
		becomes = b.restarts(installed)
	}
	b.status.Installing, b.status.FellBack = false, becomes != installed
	if becomes != "" {
		b.version = becomes
	}
	b.mu.Unlock()
	if becomes == "" {
		<-ctx.Done()
	}
	return nil
}

// Status implements member.Updater.
func (b *testBox) Status() (member.UpdateStatus, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	s.Running = b.version
	return s, nil
}

// Update implements member.Updater as the box's own does: signature and version first.
func (b *testBox) Update(ctx context.Context, bundle io.Reader) error {
	m, program, err := update.Open(bundle, b.keys)
	if err != nil {
		return err
	}
	now, _ := b.Status()
	if err := m.Allowed(now.Running); err != nil {
		return err
	}
	b.mu.Lock()
	stall := b.reading
	b.mu.Unlock()
	if stall != nil {
		if err := stall(ctx); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, program); err != nil {
		return err
	}
	b.mu.Lock()
	b.status.Installing, b.status.Last = true, m.Version
	b.mu.Unlock()
	b.rebooted <- struct{}{}
	return nil
}

// carried lists the runs of the box so far.
func (b *testBox) carried() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.runs)
}

// measurer is a runner that measures what a test says.
type measurer struct {
	box   *testBox
	store *store.Store
}

func (m *measurer) Accept(_ context.Context, p lab.Plan) (lab.Plan, error) { return p, nil }

func (m *measurer) Run(ctx context.Context, id string, p lab.Plan, _ func(runqueue.Progress)) error {
	m.box.mu.Lock()
	version, trial := m.box.version, m.box.trial
	factor, ok := m.box.factor[version]
	m.box.runs = append(m.box.runs, strings.TrimSpace(p.Name+" "+version))
	m.box.mu.Unlock()
	if trial != nil {
		if err := trial(ctx); err != nil {
			return err
		}
	}
	if !ok {
		factor = 1
	}
	run := reporttest.Run(1, 4)
	run.ID, run.Name, run.Plan, run.Page, run.Wall = id, p.Name, p, p.Page, m.box.head.clock.now().UTC()
	run.Archive.SHA256 = strings.TrimSuffix(p.Archive, ".wacz")
	for _, one := range run.Trials {
		for i := range one.Measurements {
			one.Measurements[i].Value *= factor
		}
	}
	run.State = store.StateRunning
	folder, err := store.Create(m.store.Root(), run)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := reporttest.Files(folder.Path(), run, reporttest.Options{}); err != nil {
		return err
	}
	run.State = store.StateDone
	return folder.Save(run)
}

// recordings are a folder.
type recordings struct{ dir string }

func (r *recordings) Open(name string) (*os.File, error) { return os.Open(filepath.Join(r.dir, name)) }
func (r *recordings) Remove(name string) error           { return os.Remove(filepath.Join(r.dir, name)) }
func (r *recordings) Names() ([]string, error)           { return nil, nil }
func (r *recordings) Put(_ context.Context, name string, content io.Reader) error {
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, name), text, 0o644)
}

// signer makes bundles.
type signer struct {
	t    *testing.T
	key  ed25519.PrivateKey
	keys update.Keys
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{t, key, update.Keys{public}}
}

func (s *signer) bundle(version string) []byte {
	s.t.Helper()
	var b bytes.Buffer
	if err := update.Sign(&b, update.Manifest{Version: version, Minimum: "1.0"}, bytes.Repeat([]byte("program "), 100_000), s.key); err != nil {
		s.t.Fatal(err)
	}
	return b.Bytes()
}

// A good update goes to one box after the other, each with the reference before and after; what has no updater is skipped.
func TestFleetUpdateGood(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	h.refer()
	one, two := newTestBox(t, h, "lab-1", s.keys), newTestBox(t, h, "lab-2", s.keys)
	newTestBox(t, h, "laptop", nil)
	one.mu.Lock()
	one.factor["1.1"] = 1.1 // less than a quarter: one reading before tells no more
	one.mu.Unlock()
	h.awaitImages("lab-1", "lab-2")
	two.mu.Lock()
	two.trial = func(context.Context) error {
		if now, _ := one.Status(); now.Running != "1.1" {
			t.Errorf("lab-2 measures for the update while lab-1 runs %s; want it after lab-1", now.Running)
		}
		return nil
	}
	two.mu.Unlock()
	h.update(s.bundle("1.1"))
	r := h.await("end", has(rolloutDone))
	if got := strings.Join(states(r), " "); got != "updated updated skipped" || !strings.Contains(r.Doing, "2 of 3 boxes updated, laptop skipped") ||
		!strings.Contains(r.Boxes[2].Why, "no updater") {
		t.Fatalf("the update ended with %s, %q, %q; want two boxes updated and the laptop skipped", got, r.Doing, r.Boxes[2].Why)
	}
	for name, b := range map[string]*testBox{"lab-1": one, "lab-2": two} {
		if runs := b.carried(); !slices.Contains(runs, "reference "+name+" virtual 1.0") || !slices.Contains(runs, "reference "+name+" virtual 1.1") {
			t.Errorf("%s measured %q; want the reference with both versions", name, runs)
		}
		if health := h.health(name); health == fleet.HealthMaintenance {
			t.Errorf("%s is in maintenance after the update; want it released", name)
		}
	}
	// Once more: all have it.
	h.update(s.bundle("1.1"), "lab-2", "lab-1")
	if r := h.await("end", has(rolloutDone)); r.Boxes[0].Name != "lab-2" || r.Boxes[0].Why != "it had this version already" {
		t.Errorf("the same update again: %+v; want that lab-2 had it already", r.Boxes)
	}
}

// awaitImages returns when the boxes have said which image runs.
func (h *testHead) awaitImages(names ...string) {
	h.t.Helper()
	h.until("the boxes say what they run", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			b, err := h.ledger.Box(h.t.Context(), name)
			return err != nil || b.Offer.Image == "" || len(b.Offer.Devices) == 0
		})
	}, func() {})
}

// A box refuses a bundle that another key signed: the head does not look, the others stay as they are, and it gets runs again.
func TestFleetUpdateRefused(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	newTestBox(t, h, "lab-1", s.keys)
	two := newTestBox(t, h, "lab-2", s.keys)
	h.awaitImages("lab-1", "lab-2")
	h.update(newSigner(t).bundle("1.1"))
	r := h.await("stop", has(rolloutStopped))
	if got := strings.Join(states(r), " "); got != "failed waiting" || !strings.Contains(r.Why, "lab-1: it refuses the update: update: not signed by a key that this box trusts") {
		t.Errorf("a bundle of another key: %s, %q; want the rollout to stop at lab-1 with the reason", got, r.Why)
	}
	if now, _ := two.Status(); now.Running != "1.0" {
		t.Errorf("lab-2 runs %s; want 1.0", now.Running)
	}
	if health := h.health("lab-1"); health != fleet.HealthUnknown {
		t.Errorf("the health of lab-1 = %s; want it released", health)
	}
}

// The reference is slower with the update: one more reading, and the rollout stops; the box is kept from runs, the other one is as it was.
func TestFleetUpdateSlower(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	h.refer()
	one := newTestBox(t, h, "lab-1", s.keys)
	newTestBox(t, h, "lab-2", s.keys)
	one.mu.Lock()
	one.factor["1.1"] = 1.5
	one.mu.Unlock()
	h.awaitImages("lab-1", "lab-2")
	h.update(s.bundle("1.1"))
	r := h.await("stop", has(rolloutStopped))
	if got := strings.Join(states(r), " "); got != "failed waiting" || !strings.Contains(r.Why, "measures otherwise since the update") || !strings.Contains(r.Why, "+50 %") {
		t.Errorf("a slower box: %s, %q; want the rollout to stop with the metric", got, r.Why)
	}
	after := slices.DeleteFunc(one.carried(), func(run string) bool { return run != "reference lab-1 virtual 1.1" })
	if len(after) != 2 {
		t.Errorf("lab-1 measured the reference %d times with the update; want 2", len(after))
	}
	if health := h.health("lab-1"); health != fleet.HealthMaintenance {
		t.Errorf("the health of lab-1 = %s; want maintenance", health)
	}
}

// A box that does not come back, and one that goes back to the old version.
func TestFleetUpdateDoesNotComeBack(t *testing.T) {
	for _, c := range []struct {
		name, becomes, why, health string
	}{
		{"off", "", "did not come back with 1.1 within 30m0s", fleet.HealthMaintenance},
		{"fell back", "1.0", "did not become healthy", fleet.HealthUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, s := newTestHead(t), newSigner(t)
			one := newTestBox(t, h, "lab-1", s.keys)
			newTestBox(t, h, "lab-2", s.keys)
			gone := make(chan struct{})
			one.mu.Lock()
			one.restarts = func(string) string { close(gone); return c.becomes }
			one.mu.Unlock()
			h.awaitImages("lab-1", "lab-2")
			h.update(s.bundle("1.1"))
			<-gone
			if c.becomes == "" {
				h.await("lab-1 is told", boxAt(0, boxUpdating))
				h.clock.forward(returnWithin + time.Minute)
			}
			r := h.await("stop", has(rolloutStopped))
			if got := strings.Join(states(r), " "); got != "failed waiting" || !strings.Contains(r.Why, c.why) {
				t.Errorf("the rollout ends with %s, %q; want failed waiting, %q", got, r.Why, c.why)
			}
			if health := h.health("lab-1"); health != c.health {
				t.Errorf("the health of lab-1 = %s; want %s", health, c.health)
			}
		})
	}
}

// The head is restarted in each state, and the box is killed while it fetches the bundle: the update goes on to its end.
func TestFleetUpdateSurvivesRestarts(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	h.refer()
	one := newTestBox(t, h, "lab-1", s.keys)
	reached, goOn := make(chan string), make(chan struct{})
	stall := func(what string) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case reached <- what:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case <-goOn:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	one.mu.Lock()
	one.trial, one.reading = stall("run"), stall("bundle")
	one.mu.Unlock()
	h.awaitImages("lab-1")
	h.update(s.bundle("1.1"))
	<-reached // the reference before
	h.restart()
	h.await("it is measured before", boxAt(0, boxMeasuring))
	goOn <- struct{}{}
	if what := <-reached; what != "bundle" {
		t.Fatalf("the box is in a %s; want the bundle", what)
	}
	one.kill()
	h.await("the box is told", boxAt(0, boxUpdating))
	one.boot(t)
	if what := <-reached; what != "bundle" {
		t.Fatalf("the box that was killed is in a %s; want the bundle again", what)
	}
	h.restart()
	goOn <- struct{}{}
	if what := <-reached; what != "run" {
		t.Fatalf("the box is in a %s; want the reference after the update", what)
	}
	h.restart()
	goOn <- struct{}{}
	r := h.await("end", has(rolloutDone))
	if got := strings.Join(states(r), " "); got != "updated" {
		t.Errorf("the update ended with %s, %q; want updated", got, r.Why)
	}
	if runs := one.carried(); len(runs) != 2 {
		t.Errorf("the box carried out %q; want the reference once with each version", runs)
	}
}

// A box that carries out a run ends it first, and begins no other one; a person stops the update meanwhile.
func TestFleetUpdateWaitsForRuns(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	one := newTestBox(t, h, "lab-1", s.keys)
	reached, goOn := make(chan struct{}), make(chan struct{})
	one.mu.Lock()
	one.trial = func(ctx context.Context) error {
		select {
		case reached <- struct{}{}:
		case <-ctx.Done():
		}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	one.mu.Unlock()
	h.awaitImages("lab-1")
	run := func(name string) {
		if _, err := h.Add(t.Context(), lab.Plan{Name: name, Trials: 4, Arm: lab.Arm{Page: "https://www.shop.example/", Archive: "site.wacz"}}, store.Once{}); err != nil {
			t.Fatal(err)
		}
	}
	run("first")
	<-reached
	run("second")
	bundle := s.bundle("1.1")
	h.update(bundle)
	h.await("the box ends its run", boxAt(0, boxDraining))
	if _, err := h.Boxes().Update(t.Context(), panel.BoxUpdate{Bundle: bytes.NewReader(bundle)}); err == nil || !strings.Contains(err.Error(), "goes on") {
		t.Errorf("a second update = %v; want a refusal", err)
	}
	if r, err := h.Boxes().StopUpdate(t.Context(), "ann"); err != nil || r.State != rolloutStopped || r.Why != "stopped by ann" {
		t.Errorf("StopUpdate() = %+v, %v; want it stopped by ann", r, err)
	}
	if _, err := h.Boxes().StopUpdate(t.Context(), "ann"); err == nil {
		t.Error("StopUpdate() of none = nil; want a refusal")
	}
	if health := h.health("lab-1"); health != fleet.HealthUnknown {
		t.Errorf("the health of lab-1 after the stop = %s; want unknown", health)
	}
	h.update(bundle)
	h.await("the box ends its run", boxAt(0, boxDraining))
	goOn <- struct{}{}
	h.await("the update runs", boxAt(0, boxChecking))
	if runs := one.carried(); len(runs) != 1 {
		t.Errorf("before the update the box carried out %q; want the first run alone", runs)
	}
	h.clock.forward(settleFor + time.Minute) // it measures no reference
	h.await("end", has(rolloutDone))
	<-reached
	goOn <- struct{}{}
	if runs := one.carried(); !slices.Equal(runs, []string{"first 1.0", "second 1.1"}) {
		t.Errorf("the box carried out %q; want the second run with the update", runs)
	}
}

// The head takes no bundle that is none, and answers a repeated request as the first.
func TestFleetUpdateRequests(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	newTestBox(t, h, "lab-1", s.keys)
	good := s.bundle("1.1")
	ask := func(bundle []byte, change func(*panel.BoxUpdate)) (panel.Rollout, error) {
		u := panel.BoxUpdate{Bundle: bytes.NewReader(bundle), By: "test", Key: "k1"}
		if change != nil {
			change(&u)
		}
		return h.Boxes().Update(t.Context(), u)
	}
	for _, c := range []struct {
		name   string
		bundle []byte
		change func(*panel.BoxUpdate)
		status int
		why    string
	}{
		{"nothing", nil, nil, 422, "damaged"},
		{"no bundle", []byte(strings.Repeat("x", 100)), nil, 422, "not an update bundle"},
		{"a huge manifest", []byte("EIDETIC UPDATE 1\n\xff\xff\xff\xff"), nil, 422, "at most 4096"},
		{"cut off", good[:len(good)-1], nil, 422, "1 bytes of its program are missing"},
		{"longer", append(slices.Clone(good), 'x'), nil, 422, "longer than it says"},
		{"no such box", good, func(u *panel.BoxUpdate) { u.Boxes = []string{"lab-9"} }, 404, "no box"},
		{"no such label", good, func(u *panel.BoxUpdate) { u.Labels = []string{"room=2"} }, 422, "no box is asked for"},
		{"no label", good, func(u *panel.BoxUpdate) { u.Labels = []string{"room"} }, 422, "KEY=PATTERN"},
	} {
		var refused *panel.Refusal
		if _, err := ask(c.bundle, c.change); !errors.As(err, &refused) || refused.Status != c.status || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: Update() = %v; want a refusal with status %d and %q", c.name, err, c.status, c.why)
		}
	}
	first, err := ask(good, nil)
	if err != nil || first.Version != "1.1" {
		t.Fatalf("Update() = %+v, %v; want the version 1.1", first, err)
	}
	if again, err := ask(good, nil); err != nil || again.ID != first.ID {
		t.Errorf("Update() again with its key = %+v, %v; want %s", again, err, first.ID)
	}
	if _, err := ask(s.bundle("1.2"), nil); err == nil || !strings.Contains(err.Error(), "Idempotency-Key") {
		t.Errorf("another request with the key = %v; want a refusal", err)
	}
	left, err := filepath.Glob(filepath.Join(h.staging(), "*.update"))
	if err != nil || len(left) > 0 {
		t.Errorf("the head left %q, %v; want nothing", left, err)
	}
}

// Only the box that is told to install the update gets the bundle, by its digest.
func TestFleetUpdateBundleIsForOneBox(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	one, two := newTestBox(t, h, "lab-1", s.keys), newTestBox(t, h, "lab-2", s.keys)
	reached := make(chan struct{})
	one.mu.Lock()
	one.reading = func(ctx context.Context) error {
		close(reached)
		<-ctx.Done()
		return ctx.Err()
	}
	one.mu.Unlock()
	h.awaitImages("lab-1", "lab-2")
	bundle := s.bundle("1.1")
	h.update(bundle)
	<-reached
	sum := sha256.Sum256(bundle)
	digest := hex.EncodeToString(sum[:])
	get := func(b *testBox, path string) (int, []byte) {
		t.Helper()
		config := &tls.Config{InsecureSkipVerify: true}
		if b != nil {
			cert, err := pin.LoadBox(filepath.Join(b.dir, "fleet"))
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{*cert}
		}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+h.at+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, text
	}
	path := "/fleet/v1/updates/" + digest
	if status, text := get(one, path); status != http.StatusOK || !bytes.Equal(text, bundle) {
		t.Errorf("the box whose turn it is gets %d, %d bytes; want the bundle", status, len(text))
	}
	for name, c := range map[string]struct {
		box    *testBox
		path   string
		status int
	}{
		"another box":    {two, path, 404},
		"nobody":         {nil, path, 403},
		"another digest": {one, "/fleet/v1/updates/" + strings.Repeat("0", 64), 404},
		"a path":         {one, "/fleet/v1/updates/..%2F..%2Ffleet.db", 404},
	} {
		if status, text := get(c.box, c.path); status != c.status {
			t.Errorf("%s gets %d %.200s; want %d", name, status, text, c.status)
		}
	}
	// The bundle is needed as long as the update goes on.
	needed := func() bool {
		for d, err := range h.needed(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if d == digest {
				return true
			}
		}
		return false
	}
	if !needed() {
		t.Error("the bundle may be collected while boxes fetch it; want it kept")
	}
	if _, err := h.Boxes().StopUpdate(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	if status, _ := get(one, path); status != http.StatusNotFound {
		t.Errorf("after the stop the box gets %d; want 404", status)
	}
	if needed() {
		t.Error("the bundle is kept after the update; want it collected")
	}
	if health := h.health("lab-1"); health != fleet.HealthMaintenance {
		t.Errorf("the health of lab-1, which was told already = %s; want maintenance", health)
	}
}
