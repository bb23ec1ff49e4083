package head

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
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
	"eidetic/internal/keep/pin"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/internal/web/panel"
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
	testlab.Await(h.t, what, f, func() any { explain(); return "" })
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
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) { // it may have been about to start
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
