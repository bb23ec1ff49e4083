package bisects

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/analysis/bisect"
	"eidetic/internal/box/bisection"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.Main(m, processDir, boxProcess) }

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// world carries out runs whose revisions are slower by 120 ms from r0011 on. It knows them by the name of the run.
type world struct {
	store *store.Store
	log   func(text string)         // is told of each run that begins
	hold  func(ctx context.Context) // is called when half of a comparison's trials are made; nil does not hold
	spoil func(run *lab.Run, p lab.Plan)

	repositories map[string]Repository
}

func (w *world) Accept(_ context.Context, p lab.Plan) (lab.Plan, error) {
	p.Device = "virtual"
	return p, nil
}

func (w *world) Run(ctx context.Context, id string, p lab.Plan, _ func(runqueue.Progress)) error {
	w.log(fmt.Sprintf("%s %d", p.Name, p.Seed))
	run := &lab.Run{ID: id, Name: p.Name, Plan: p, State: store.StateRunning, Wall: time.Unix(1, 0).UTC(), Page: p.Page, Trials: []*lab.Trial{}}
	f, err := store.Create(w.store.Root(), run)
	if err != nil {
		return err
	}
	defer f.Close()
	var revision [2]int
	if _, err := fmt.Sscanf(p.Name, "bisect r%04d r%04d", &revision[0], &revision[1]); err == nil {
		archives := [2]string{p.Archive, p.Treatment.Archive}
		for i := range archives {
			if want := fmt.Sprintf("record-r%04d", revision[i]); !strings.Contains(archives[i], want) {
				return fmt.Errorf("%s replays %q", p.Name, archives)
			}
		}
	}
	digest := sha256.Sum256([]byte(p.Name))
	rng := rand.New(rand.NewPCG(p.Seed, uint64(digest[0])))
	for i := range 2 * p.Trials {
		arm := i % 2
		t := &lab.Trial{Number: i + 1, Block: 1 + i/10, Arm: []string{lab.Control, lab.Treatment}[arm], Valid: true}
		value := 900 + 20*rng.NormFloat64()
		if revision[arm] >= 11 {
			value += 120
		}
		t.Measurements = []lab.Measurement{{Name: "speed_index_ms", Unit: "ms", Value: value}}
		run.Trials = append(run.Trials, t)
		if p.Treatment != nil && i == p.Trials && w.hold != nil {
			if err := f.Save(run); err != nil {
				return err
			}
			w.hold(ctx)
		}
	}
	run.State = store.StateDone
	if ctx.Err() != nil {
		run.State, run.Error = store.StateInterrupted, "it was cancelled"
	}
	if w.spoil != nil {
		w.spoil(run, p)
	}
	return f.Save(run)
}

// box is a box with a queue, whose files outlive it.
type box struct {
	keeper *Keeper
	queue  *runqueue.Queue
	jobs   *store.Queue
	store  *store.Store
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
	k, err := Open(Config{
		Dir: filepath.Join(dir, "bisects"), Runs: queue, Store: runs, Patience: time.Minute, Pauses: []time.Duration{time.Millisecond, 10 * time.Millisecond},
		Sender: webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}, Agent: "test"}, Repositories: w.repositories,
	})
	if err != nil {
		return nil, err
	}
	return &box{k, queue, jobs, runs}, nil
}

// work runs the box until ctx is done.
func (b *box) work(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.queue.Work(ctx) })
	group.Go(func() error { return b.keeper.Work(ctx) })
	return group.Wait()
}

func (b *box) close() error { return errors.Join(b.jobs.Close(), b.store.Close()) }

func revisions(n int) (all []bisection.Revision) {
	for i := range n {
		all = append(all, bisection.Revision{Name: fmt.Sprintf("r%04d", i), Words: fmt.Sprint("change ", i)})
	}
	return all
}

// hook is a program that deploys, as anybody would write one.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // revisions
	ids    map[string]string
	wrong  []string
	answer func(w http.ResponseWriter, r *http.Request, revision string, bisect string)
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{ids: map[string]string{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var e event
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		var seconds int64
		if err == nil {
			_, err = fmt.Sscan(r.Header.Get("Webhook-Timestamp"), &seconds)
		}
		id := r.Header.Get("Webhook-Id")
		signature, signErr := webhook.Sign(lab.NewSecret(secret), id, time.Unix(seconds, 0), body)
		h.mu.Lock()
		if err != nil || signErr != nil || r.Method != http.MethodPost || r.Header.Get("Webhook-Signature") != signature || e.Type != EventDeploy ||
			e.Data.Answer != "/api/v1/bisects/"+e.Data.Bisect+"/deployment" || e.Data.Words == "" {
			h.wrong = append(h.wrong, fmt.Sprint(err, signErr, r.Method, r.Header, string(body)))
		}
		if before := h.ids[e.Data.Bisect+e.Data.Revision]; before != "" && before != id {
			h.wrong = append(h.wrong, "another ID in another attempt")
		}
		h.ids[e.Data.Bisect+e.Data.Revision] = id
		h.asked = append(h.asked, e.Data.Revision)
		answer := h.answer
		h.mu.Unlock()
		if answer != nil {
			answer(w, r, e.Data.Revision, e.Data.Bisect)
		}
	}))
	t.Cleanup(func() {
		h.Close()
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.wrong) > 0 {
			t.Errorf("the hook was posted what it cannot take: %q", h.wrong)
		}
	})
	return h
}

// says sets how the hook answers; without it, 200.
func (h *hook) says(answer func(w http.ResponseWriter, r *http.Request, revision, bisect string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

// count is how often each revision was asked for.
func (h *hook) count() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := map[string]int{}
	for _, r := range h.asked {
		n[r]++
	}
	return n
}

const processDir = "EIDETIC_TEST_BISECTS" // of the box that a process is

// boxProcess is the box of [TestKilled], in a process that can be killed. It ends when the bisect has ended.
func boxProcess(dir string) error {
	runs := 0
	w := &world{log: func(text string) {
		runs++
		f, err := os.OpenFile(filepath.Join(dir, "asked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		fmt.Fprintln(f, text)
	}}
	if os.Getenv("EIDETIC_TEST_HOLD") != "" {
		w.hold = func(ctx context.Context) {
			if runs > 5 {
				fmt.Println("held")
				<-ctx.Done()
			}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	b, err := openBox(ctx, dir, w)
	if err != nil {
		return err
	}
	if url := os.Getenv("EIDETIC_TEST_HOOK"); url != "" {
		q := request(url, 17)
		if q.Spread, err = strconv.Atoi(os.Getenv("EIDETIC_TEST_SPREAD")); err != nil {
			return err
		}
		if _, _, err := b.keeper.Make(ctx, q); err != nil {
			return err
		}
	}
	done := make(chan error, 1)
	go func() { done <- b.work(ctx) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if all := b.keeper.List(); len(all) != 1 || !all[0].Going() {
			break
		}
	}
	stop()
	return errors.Join(<-done, b.close())
}

// TestKilled: a box is killed while its hook deploys, and again in the middle of a run. Each time it goes on after its
// next start: the culprit is found, only the revision that was being deployed is deployed once more, and no run is
// asked for twice.
func TestKilled(t *testing.T) {
	for _, spread := range []string{"1", "3"} {
		t.Run("spread "+spread, func(t *testing.T) { killed(t, spread) })
	}
}

func killed(t *testing.T, spread string) {
	h := newHook(t)
	dir := t.TempDir()
	reached, release := make(chan string), make(chan struct{})
	first := true
	h.says(func(_ http.ResponseWriter, _ *http.Request, revision, _ string) {
		h.mu.Lock()
		holds := first && len(h.asked) == 3
		first = first && !holds
		h.mu.Unlock()
		if holds {
			reached <- revision
			<-release // the box is killed meanwhile
		}
	})
	start := func(env ...string) (*exec.Cmd, *bufio.Scanner) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(append(os.Environ(), processDir+"="+dir), env...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return cmd, bufio.NewScanner(out)
	}
	kill := func(cmd *exec.Cmd) {
		t.Helper()
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
	}
	cmd, _ := start("EIDETIC_TEST_HOOK="+h.URL, "EIDETIC_TEST_SPREAD="+spread)
	var twice string
	select {
	case twice = <-reached:
	case <-time.After(testlab.Hang):
		kill(cmd)
		t.Fatal("the hook was not asked for three revisions")
	}
	kill(cmd)
	close(release)
	cmd, out := start("EIDETIC_TEST_HOLD=1")
	held := false
	for !held && out.Scan() {
		held = out.Text() == "held"
	}
	kill(cmd)
	if !held {
		t.Fatal("the second process made fewer runs than it was to be held in")
	}
	cmd, out = start()
	for out.Scan() {
		t.Log(out.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	k, err := Open(Config{Dir: filepath.Join(dir, "bisects")})
	if err != nil {
		t.Fatal(err)
	}
	all := k.List()
	if len(all) != 1 || all[0].State != ownruns.StateDone || all[0].Result == nil || all[0].Result.Kind != bisect.Culprit ||
		all[0].Result.Steps[0].Revisions[0].Name != "r0011" {
		t.Fatalf("the bisects: %+v; want one that found r0011", all)
	}
	if got := k.line.All[all[0].ID].request.Spread; fmt.Sprint(got) != spread {
		t.Errorf("after restarts the spread is %d; want %s", got, spread)
	}
	for revision, n := range h.count() {
		if want := map[bool]int{false: 1, true: 2}[revision == twice]; n != want {
			t.Errorf("the hook was asked for %s %d times; want %d", revision, n, want)
		}
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(asked)), "\n")
	slices.Sort(lines)
	if unique := slices.Compact(slices.Clone(lines)); len(unique) != len(lines) {
		t.Errorf("some of these runs were asked for twice: %q", lines)
	}
}
