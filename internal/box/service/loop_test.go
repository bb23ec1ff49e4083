package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
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

	"golang.org/x/sync/errgroup"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/verdict"
)

// trunk carries out runs whose treatment is as slow as what was deployed last: the file that the deploy command writes. A recording
// keeps it, and its run's name stands for it in a comparison of two recordings.
type trunk struct {
	store *store.Store
	file  string
	now   func() time.Time
	begun chan string       // names of runs; has room for all
	hold  func(name string) // is called before a run ends
	mu    sync.Mutex
	kept  map[string]float64
}

func (r *trunk) Accept(_ context.Context, p lab.Plan) (lab.Plan, error) {
	p.Device = "virtual"
	return p, nil
}

func (r *trunk) Run(ctx context.Context, id string, p lab.Plan, _ func(runqueue.Progress)) error {
	text, err := os.ReadFile(r.file)
	if err != nil {
		return err
	}
	deployed, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil {
		return err
	}
	r.begun <- p.Name
	r.mu.Lock()
	slow := [2]float64{0, deployed} // production's is 0
	switch {
	case p.Treatment == nil:
		r.kept[id] = deployed
	case p.Archive != "":
		slow = [2]float64{r.kept[p.Archive], r.kept[p.Treatment.Archive]}
	}
	r.mu.Unlock()
	run := &lab.Run{ID: id, Name: p.Name, Plan: p, State: store.StateDone, Wall: r.now(), Page: p.Page, Trials: []*lab.Trial{}}
	rng := rand.New(rand.NewPCG(p.Seed, uint64(len(id))))
	for i := range 2 * p.Trials {
		arm := i % 2
		run.Trials = append(run.Trials, &lab.Trial{Number: i + 1, Block: 1 + i/10, Arm: []string{lab.Control, lab.Treatment}[arm], Valid: true,
			Measurements: []lab.Measurement{{Name: "speed_index_ms", Unit: "ms", Value: 500 + slow[arm] + 15*rng.NormFloat64()}}})
	}
	if p.Treatment != nil {
		run.Comparison = verdict.Of(run, 1)
	}
	if r.hold != nil {
		r.hold(p.Name)
	}
	f, err := store.Create(r.store.Root(), run)
	if err != nil {
		return err
	}
	return errors.Join(ctx.Err(), f.Close())
}

// loopBox is a box that compares production with trunk, and whose files outlive it.
type loopBox struct {
	t     *testing.T
	dir   string
	repos map[string]bisects.Repository
	clock func() time.Time
	world *trunk
	*shared
	stop func()
}

func (b *loopBox) open() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	runs, err := store.Open(ctx, b.dir, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	jobs, err := store.OpenQueue(ctx, filepath.Join(b.dir, "queue.db"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.world.store = runs
	queue := runqueue.New(runqueue.Config{Jobs: jobs, Store: runs, Runner: b.world, Now: b.clock})
	b.shared = &shared{}
	sender := webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}, Agent: "test"}
	if b.keeper, err = automation.Open(ctx, automation.Config{File: filepath.Join(b.dir, "automation.db"), Runs: queue, Store: runs, Sender: sender,
		Now: b.clock, Bisector: bisector{b.shared}}); err != nil {
		b.t.Fatal(err)
	}
	if b.bisects, err = bisects.Open(bisects.Config{Dir: filepath.Join(b.dir, "bisects"), Runs: queue, Store: runs, Sender: sender,
		Repositories: b.repos, Ended: b.keeper.Stir}); err != nil {
		b.t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return queue.Work(ctx) })
	group.Go(func() error { return b.bisects.Work(ctx) })
	group.Go(func() error { return b.keeper.Work(ctx) })
	b.stop = func() {
		cancel()
		if err := errors.Join(group.Wait(), b.keeper.Close(), jobs.Close(), runs.Close()); err != nil {
			b.t.Error(err)
		}
	}
}

// await waits until something holds, which the box is made to look for.
func (b *loopBox) await(what string, holds func() bool) {
	b.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(testlab.Hang)
	for !holds() {
		b.keeper.Stir()
		select {
		case <-tick.C:
		case <-limit:
			all, _ := b.keeper.Alerts(b.t.Context(), automation.Filter{Limit: 10}) // for the message
			fired, _ := b.keeper.Firings(b.t.Context(), "often", 10)
			b.t.Fatalf("%s did not happen; alerts %+v, times %+v, bisects %+v", what, all, fired, b.bisects.List())
		}
	}
}

// repository is a git repository of five commits: the third one is slower, and the fourth does not build.
func repository(t *testing.T) (dir string, commits []string) {
	t.Helper()
	dir = t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_COMMITTER_NAME=build", "GIT_COMMITTER_EMAIL=build@shop.example")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet", "--initial-branch=main")
	for i, c := range []struct{ delay, author, subject string }{
		{"0", "Ada", "shop: begin"}, {"0", "Bob", "cart: show totals"}, {"110", "Eve", "search: ask the server twice"},
		{"broken", "Ada", "build: try a new bundler"}, {"110", "Bob", "build: take that back"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "delay"), []byte(c.delay+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "step"), []byte(fmt.Sprint(i)), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "--all")
		git("commit", "--quiet", "--author", c.author+" <"+strings.ToLower(c.author)+"@shop.example>", "--message", c.subject)
		commits = append(commits, git("rev-parse", "HEAD"))
	}
	git("checkout", "--quiet", "-b", "release", commits[1])
	return dir, commits
}

// TestAlertFindsItsAuthor is the whole way: a schedule deploys each new revision and compares it with production; one is slower; the
// alert begins a bisect between the last good and the first bad revision by itself, goes on with it after a restart, and ends with
// revision, author and subject, which the webhook is posted.
func TestAlertFindsItsAuthor(t *testing.T) {
	testlab.NeedProgram(t, "git")
	dir, commits := repository(t)
	var mu sync.Mutex
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	posted := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e struct {
			Type string
			Data automation.Alert
		}
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		if b := e.Data.Bisection; b != nil {
			e.Type += " " + b.State + " " + b.Author
		}
		posted <- e.Type
	}))
	defer receiver.Close()
	site := t.TempDir()
	// A person's command: it writes what the revision is like into the site, or says that it does not build.
	deploy := fmt.Sprintf(`d=$(git -C '%s' show "$1:delay") && [ "$d" != broken ] || exit 125; echo "$1" >> '%s/log'; echo "$d" > '%s/delay'`, dir, site, site)
	b := &loopBox{t: t, dir: t.TempDir(), clock: clock, repos: map[string]bisects.Repository{"shop": {Git: dir, Branch: "release", Deploy: deploy}},
		world: &trunk{file: filepath.Join(site, "delay"), now: clock, begun: make(chan string, 1000), kept: map[string]float64{}}}
	b.open()
	defer func() { b.stop() }()
	ctx := t.Context()
	plan := lab.Plan{Name: "checkout", Trials: 12, Arm: lab.Arm{Page: "https://www.shop.example/"}, Treatment: &lab.Arm{Page: "https://trunk.shop.example/"}}
	if _, err := b.keeper.PutWorkflow(ctx, "checkout", plan, nil, "ada", automation.Expect{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.keeper.MakeHook(ctx, "chat", receiver.URL, "", []string{automation.EventRaised}, "ada"); err != nil {
		t.Fatal(err)
	}
	timing := automation.Timing{Workflow: "checkout", Every: "2h", Bisect: &automation.Bisecting{Repository: "shop", Minutes: 600}}
	if _, err := b.keeper.PutSchedule(ctx, "often", timing, "ada", automation.Expect{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, repository string }{{"other", "nope"}, {"other", "shop"}} {
		other := timing
		other.Bisect = &automation.Bisecting{Repository: c.repository}
		var wrong *automation.WrongError
		if _, err := b.keeper.PutSchedule(ctx, c.name, other, "ada", automation.Expect{}); !errors.As(err, &wrong) {
			t.Errorf("a schedule with the repository %s: %v; want a refusal", c.repository, err)
		}
	}
	due := func(n int) {
		t.Helper()
		mu.Lock()
		now = now.Add(2 * time.Hour)
		mu.Unlock()
		b.await(fmt.Sprintf("run %d of the schedule", n), func() bool {
			past, err := b.keeper.Firings(ctx, "often", 10)
			return err == nil && len(past) == n && past[0].State == automation.FiringRun
		})
		b.await(fmt.Sprintf("the end of run %d", n), func() bool {
			past, err := b.keeper.Firings(ctx, "often", 1)
			if err != nil || !b.world.store.Has(past[0].Run) {
				return false
			}
			run, err := b.world.store.Run(past[0].Run)
			return err == nil && run.Plan.From.Revision != ""
		})
	}
	due(1)
	if out, err := exec.CommandContext(ctx, "git", "-C", dir, "reset", "--quiet", "--hard", commits[4]).CombinedOutput(); err != nil {
		t.Fatalf("git reset: %v: %s", err, out)
	}
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.world.hold = func(name string) {
		if strings.HasPrefix(name, "bisect ") {
			once.Do(func() { close(held); <-release })
		}
	}
	due(2)
	var found automation.Alert
	b.await("the bisect's first comparison", func() bool {
		select {
		case <-held:
			return true
		default:
			return false
		}
	})
	// A time that is due meanwhile is left out, as another revision is deployed.
	mu.Lock()
	now = now.Add(2 * time.Hour)
	mu.Unlock()
	b.await("a time that is left out", func() bool {
		past, err := b.keeper.Firings(ctx, "often", 1)
		return err == nil && past[0].State == automation.FiringSkipped && strings.Contains(past[0].Reason, "deploys revisions of shop")
	})
	close(release)
	b.stop() // in the middle
	b.open()
	b.await("the end of the bisect", func() bool {
		all, err := b.keeper.Alerts(ctx, automation.Filter{Limit: 10})
		if err != nil || len(all) != 1 || all[0].Bisection == nil {
			return false
		}
		found = all[0]
		return found.Bisection.State == "done"
	})
	got := found.Bisection
	if found.Kind != automation.KindVerdict || got.Kind != "culprit" || got.Good != commits[1] || got.Bad != commits[4] || got.Revision != commits[2] || got.Author != "Eve" ||
		got.Subject != "search: ask the server twice" || got.Probability < 0.95 || got.Trials == 0 || !strings.Contains(got.Text, "by Eve") {
		t.Errorf("bisection = %+v; want commit %s of Eve", got, commits[2])
	}
	if all := b.bisects.List(); len(all) != 1 || all[0].Repository != "shop" || len(all[0].Result.Untestable) != 1 {
		t.Errorf("bisects = %+v; want one, in which a revision does not build", all)
	}
	var events []string
	b.await("two events", func() bool {
		select {
		case e := <-posted:
			events = append(events, e)
		default:
		}
		return len(events) == 2
	})
	if strings.Join(events, ", ") != "alert.raised due , alert.bisected done Eve" {
		t.Errorf("posted %q; want the alert, and what was found", events)
	}
	if !found.Bad(now) {
		t.Error("an alert whose revision was found is not bad for a gate")
	}
}
