package service

import (
	"bufio"
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
	"eidetic/internal/rigs/testlab/xtest"
	"eidetic/internal/tell/verdict"
)

// trunk carries out runs whose treatment is as slow as what was deployed last: the file that the deploy command writes,
// with a delay and, if it is another than usual, the spread of its loads. A recording keeps it in a file of its run's
// name, which stands for it in a comparison of two recordings.
type trunk struct {
	store  *store.Store
	file   string
	spread float64 // of production's loads
	now    func() time.Time
	hold   func(name string) // is called before a run ends; nil does not hold
}

func (r *trunk) Accept(_ context.Context, p lab.Plan) (lab.Plan, error) {
	p.Device = "virtual"
	return p, nil
}

// loads are what the loads of a revision take more than production's, and their spread, both in ms.
type loads struct{ delay, spread float64 }

func (l loads) String() string { return fmt.Sprint(l.delay, " ", l.spread) }

func (r *trunk) loads(file string) (l loads, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return l, err
	}
	l.spread = 15
	if n, err := fmt.Sscan(string(text), &l.delay, &l.spread); n == 0 {
		return l, err
	}
	return l, nil
}

func (r *trunk) Run(ctx context.Context, id string, p lab.Plan, _ func(runqueue.Progress)) error {
	deployed, err := r.loads(r.file)
	if err != nil {
		return err
	}
	slow := [2]loads{{0, r.spread}, deployed} // production's
	switch {
	case p.Treatment == nil:
		err = os.WriteFile(filepath.Join(r.store.Root(), id), []byte(fmt.Sprint(deployed)), 0o600)
	case p.Archive != "":
		for i, archive := range []string{p.Archive, p.Treatment.Archive} {
			if slow[i], err = r.loads(filepath.Join(r.store.Root(), archive)); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	run := &lab.Run{ID: id, Name: p.Name, Plan: p, State: store.StateDone, Wall: r.now(), Page: p.Page, Trials: []*lab.Trial{}}
	rng := rand.New(rand.NewPCG(p.Seed, uint64(len(id))))
	for i := range 2 * p.Trials {
		arm := i % 2
		run.Trials = append(run.Trials, &lab.Trial{Number: i + 1, Block: 1 + i/10, Arm: []string{lab.Control, lab.Treatment}[arm], Valid: true,
			Measurements: []lab.Measurement{{Name: "speed_index_ms", Unit: "ms", Value: 500 + slow[arm].delay + slow[arm].spread*rng.NormFloat64()}}})
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
	dir   string // of the box; beside it are the repository and the site
	clock func() time.Time
	world *trunk
	works *runqueue.Queue
	*shared
	stop func() error
}

func newLoopBox(root string, clock func() time.Time, hold func(name string)) *loopBox {
	return &loopBox{dir: filepath.Join(root, "box"), clock: clock, world: &trunk{file: filepath.Join(root, "delay"), spread: 15, now: clock, hold: hold}}
}

// repositories have a person's command: it writes what the revision is like into the site, or says that it does not
// build.
func (b *loopBox) repositories() map[string]bisects.Repository {
	git := filepath.Join(filepath.Dir(b.dir), "git")
	deploy := fmt.Sprintf(`d=$(git -C '%s' show "$1:delay") && [ "$d" != broken ] || exit 125; echo "$d" > '%s'`, git, b.world.file)
	return map[string]bisects.Repository{"shop": {Git: git, Branch: "release", Deploy: deploy}}
}

// open opens the box, which works until stop is called.
func (b *loopBox) open(ctx context.Context) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	runs, err := store.Open(ctx, b.dir, nil)
	if err != nil {
		cancel()
		return err
	}
	jobs, err := store.OpenQueue(ctx, filepath.Join(b.dir, "queue.db"))
	if err != nil {
		cancel()
		return err
	}
	b.world.store = runs
	queue := runqueue.New(runqueue.Config{Jobs: jobs, Store: runs, Runner: b.world, Now: b.clock})
	b.shared, b.works = &shared{}, queue
	sender := webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}, Agent: "test"}
	if b.keeper, err = automation.Open(ctx, automation.Config{File: filepath.Join(b.dir, "automation.db"), Runs: queue, Store: runs, Sender: sender,
		Now: b.clock, Bisector: bisector{b.shared}}); err != nil {
		cancel()
		return err
	}
	if b.bisects, err = bisects.Open(bisects.Config{Dir: filepath.Join(b.dir, "bisects"), Runs: queue, Store: runs, Sender: sender,
		Repositories: b.repositories(), Ended: b.keeper.Stir}); err != nil {
		cancel()
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return queue.Work(ctx) })
	group.Go(func() error { return b.bisects.Work(ctx) })
	group.Go(func() error { return b.keeper.Work(ctx) })
	b.stop = func() error {
		cancel()
		return errors.Join(group.Wait(), b.keeper.Close(), jobs.Close(), runs.Close())
	}
	return nil
}

// loopProcess and loopClock say to a process of the test that it is a box to be killed: where, and its time.
const (
	loopProcess = "EIDETIC_TEST_LOOP"
	loopClock   = "EIDETIC_TEST_LOOP_CLOCK"
)

func TestMain(m *testing.M) {
	root := os.Getenv(loopProcess)
	if root == "" {
		xtest.Main()
		os.Exit(m.Run())
	}
	seconds, err := strconv.ParseInt(os.Getenv(loopClock), 10, 64)
	if err == nil {
		b := newLoopBox(root, func() time.Time { return time.Unix(seconds, 0).UTC() }, func(name string) {
			if strings.HasPrefix(name, "bisect ") {
				fmt.Println("held")
				select {} // until it is killed
			}
		})
		err = b.open(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// await waits until something holds, which the box is made to look for.
func (b *loopBox) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	testlab.Await(t, what, func() bool {
		if holds() {
			return true
		}
		b.keeper.Stir()
		return false
	}, func() any {
		all, _ := b.keeper.Alerts(t.Context(), automation.Filter{Limit: 10}) // for the message
		fired, _ := b.keeper.Firings(t.Context(), "often", 10)
		return fmt.Sprintf("alerts %+v, times %+v, bisects %+v", all, fired, b.bisects.List())
	})
}

// commit is one of a repository: what its loads are like, or broken.
type commit struct{ delay, author, subject string }

// fiveCommits are such that the third one is slower, and the fourth does not build.
func fiveCommits() []commit {
	return []commit{
		{"0", "Ada", "shop: begin"}, {"0", "Bob", "cart: show totals"}, {"110", "Eve", "search: ask the server twice"},
		{"broken", "Ada", "build: try a new bundler"}, {"110", "Bob", "build: take that back"},
	}
}

// repository is a git repository. Its branch release is at the second commit, and main at the last.
func repository(t *testing.T, dir string, all []commit) (commits []string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
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
	for i, c := range all {
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
	return commits
}

// TestAlertFindsItsAuthor is the whole way: a schedule deploys each new revision and compares it with production; one
// is slower; the alert begins a bisect between the last good and the first bad revision by itself; the box is killed in
// the middle of it and goes on; it ends with revision, author and subject, which the webhook is posted.
func TestAlertFindsItsAuthor(t *testing.T) {
	testlab.NeedProgram(t, "git")
	root, ctx := t.TempDir(), t.Context()
	commits := repository(t, filepath.Join(root, "git"), fiveCommits())
	var mu sync.Mutex
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	later := func() { mu.Lock(); defer mu.Unlock(); now = now.Add(2 * time.Hour) }
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
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b := newLoopBox(root, clock, func(name string) {
		if strings.HasPrefix(name, "bisect ") {
			once.Do(func() { close(held); <-release })
		}
	})
	if err := b.open(ctx); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		t.Helper()
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	}
	plan := lab.Plan{Name: "checkout", Trials: 12, Arm: lab.Arm{Page: "https://www.shop.example/"}, Treatment: &lab.Arm{Page: "https://trunk.shop.example/"}}
	_, err := b.keeper.PutWorkflow(ctx, "checkout", plan, nil, "ada", automation.Expect{})
	if err == nil {
		_, _, err = b.keeper.MakeHook(ctx, "chat", "", receiver.URL, lab.Secret{}, []string{automation.EventRaised}, "ada")
	}
	timing := automation.Timing{Workflow: "checkout", Every: "2h", Bisect: &automation.Bisecting{Repository: "shop", Minutes: 600}}
	if err == nil {
		_, err = b.keeper.PutSchedule(ctx, "often", timing, "ada", automation.Expect{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, repository := range []string{"nope", "shop"} { // which there is not, and which another schedule deploys
		other := timing
		other.Bisect = &automation.Bisecting{Repository: repository}
		var wrong *automation.WrongError
		if _, err := b.keeper.PutSchedule(ctx, "other", other, "ada", automation.Expect{}); !errors.As(err, &wrong) {
			t.Errorf("a schedule with the repository %s: %v; want a refusal", repository, err)
		}
	}
	later()
	b.await(t, "the first run", func() bool {
		past, err := b.keeper.Firings(ctx, "often", 1)
		if err != nil || len(past) != 1 || past[0].State != automation.FiringRun {
			return false
		}
		run, err := b.world.store.Run(past[0].Run)
		return err == nil && run.State == store.StateDone && run.Plan.From.Revision == commits[1]
	})
	stop()
	if out, err := exec.CommandContext(ctx, "git", "-C", filepath.Join(root, "git"), "reset", "--quiet", "--hard", commits[4]).CombinedOutput(); err != nil {
		t.Fatalf("git reset: %v: %s", err, out)
	}
	// Another process deploys the new revision, compares it, raises the alert, begins the bisect, and is killed.
	later()
	killed := exec.CommandContext(ctx, os.Args[0])
	killed.Env = append(os.Environ(), loopProcess+"="+root, loopClock+"="+strconv.FormatInt(clock().Unix(), 10))
	killed.Stderr = os.Stderr
	out, err := killed.StdoutPipe()
	if err == nil {
		err = killed.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Errorf("the process that is to be killed says %q, %v; want that a bisect compares", line, err)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed
	// A time that is due while the bisect goes on is left out: another revision is deployed.
	later()
	if err := b.open(ctx); err != nil {
		t.Fatal(err)
	}
	defer stop()
	b.await(t, "a comparison of the bisect", func() bool {
		select {
		case <-held:
			return true
		default:
			return false
		}
	})
	b.await(t, "a time that is left out", func() bool {
		past, err := b.keeper.Firings(ctx, "often", 1)
		return err == nil && past[0].State == automation.FiringSkipped && strings.Contains(past[0].Reason, "deploys revisions of shop")
	})
	close(release)
	var found automation.Alert
	b.await(t, "the end of the bisect", func() bool {
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
	told := map[string]bool{} // a kill may have an event posted twice
	b.await(t, "the events", func() bool {
		select {
		case e := <-posted:
			told[e] = true
		default:
		}
		return told["alert.raised due "] && told["alert.bisected done Eve"]
	})
	bad, err := b.keeper.Alerts(t.Context(), automation.Filter{Bad: true, Limit: 5})
	if err != nil || len(told) != 2 || len(bad) != 1 || bad[0].ID != found.ID {
		t.Errorf("posted %v, bad for a gate: %+v, %v; want the alert, what was found, and that it stays bad", told, bad, err)
	}
}
