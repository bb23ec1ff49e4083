package bisects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/analysis/bisect"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/rigs/testlab"
)

// newBox is a box that works until the test ends.
func newBox(t *testing.T, w *world) *box {
	t.Helper()
	if w.log == nil {
		w.log = func(string) {}
	}
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
	return b
}

func request(url string, n int) Request {
	return Request{Plan: plan.Request{Plan: lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}}}, Revisions: revisions(n), URL: url, Secret: lab.NewSecret(secret), By: "test"}
}

func (b *box) make(t *testing.T, q Request) string {
	t.Helper()
	made, secret, err := b.keeper.Make(t.Context(), q)
	if err != nil || !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("Make() = %+v, %q, %v", made, secret, err)
	}
	return made.ID
}

// await waits until something holds for a bisect.
func (b *box) await(t *testing.T, id string, holds func(Bisect) bool) Bisect {
	t.Helper()
	var one Bisect
	testlab.Await(t, "a bisect", func() bool {
		var err error
		if one, err = b.keeper.Get(id); err != nil {
			t.Fatal(err)
		}
		return holds(one)
	}, func() any { return one })
	return one
}

// has says whether a run is in the queue.
func (b *box) has(t *testing.T, id string) bool {
	t.Helper()
	_, err := b.queue.Get(t.Context(), id)
	return err == nil
}

func ended(b Bisect) bool { return !b.Going() }

// A hook may answer at once, or 202 and later; it may say that a revision cannot be tried, either way, and be away for
// a moment.
func TestAnswersOfHooks(t *testing.T) {
	h := newHook(t)
	b := newBox(t, &world{})
	var later sync.WaitGroup
	var away atomic.Int32
	h.says(func(w http.ResponseWriter, _ *http.Request, revision, id string) {
		answer := func(reason string) {
			w.WriteHeader(http.StatusAccepted)
			if err := b.keeper.Deployed(id, "r9999", ""); !errors.Is(err, ErrNotAwaited) {
				t.Errorf("Deployed() of a revision that was not asked for = %v; want ErrNotAwaited", err)
			}
			later.Go(func() {
				if err := b.keeper.Deployed(id, revision, reason); err != nil {
					t.Errorf("Deployed(%s) = %v", revision, err)
				}
			})
		}
		switch revision {
		case "r0000":
			if away.Add(1) < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		case "r0008":
			w.WriteHeader(http.StatusUnprocessableEntity)
		case "r0009", "r0010":
			answer("it does not build")
		default:
			answer("")
		}
	})
	id := b.make(t, request(h.URL, 17))
	got := b.await(t, id, ended)
	later.Wait()
	if got.State != ownruns.StateDone || got.Result.Kind != bisect.Culprit {
		t.Fatalf("the bisect: %+v; want one that found a culprit", got)
	}
	var last []string
	for _, r := range got.Result.Steps[0].Revisions {
		last = append(last, r.Name)
	}
	if !slices.Contains(last, "r0011") || last[len(last)-1] != "r0011" {
		t.Errorf("it was one of %q; want r0011, with those before it that cannot be tried", last)
	}
	for _, u := range got.Result.Untestable {
		want := "it does not build"
		if u.Revision.Name == "r0008" {
			want = "422"
		}
		if !strings.Contains(u.Reason, want) {
			t.Errorf("%s is left out because %q; want %q", u.Revision.Name, u.Reason, want)
		}
	}
	if n := h.count()["r0000"]; n != 3 {
		t.Errorf("the hook that was away was asked %d times; want 3", n)
	}
	if err := b.keeper.Deployed(id, "r0000", ""); !errors.Is(err, ErrNotAwaited) {
		t.Errorf("Deployed() of a bisect that is done = %v; want ErrNotAwaited", err)
	}
	if list := b.keeper.List(); len(list) != 1 || len(list[0].Result.Revisions) != 0 || len(got.Result.Revisions) != 17 {
		t.Errorf("the list %+v has probabilities, or the bisect has none", list)
	}
}

// A hook that is none, and one that stays away, end the bisect; they leave no revision out, and the bisect can go on.
func TestHookThatFails(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusNotFound: "cannot deploy r0000: it answered 404", http.StatusFound: "it answered 302",
		http.StatusInternalServerError: "asked 3 times: it answered 500",
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			h := newHook(t)
			b := newBox(t, &world{})
			var mended atomic.Bool
			h.says(func(w http.ResponseWriter, _ *http.Request, _, _ string) {
				if !mended.Load() {
					w.WriteHeader(status)
				}
			})
			id := b.make(t, request(h.URL, 17))
			if _, err := b.keeper.Resume(id); !errors.Is(err, ErrNotFailed) {
				t.Errorf("Resume() of one that goes on = %v; want ErrNotFailed", err)
			}
			if got := b.await(t, id, ended); got.State != ownruns.StateFailed || !strings.Contains(got.Error, want) {
				t.Fatalf("the bisect is %s: %q; want failed: %q", got.State, got.Error, want)
			}
			mended.Store(true)
			if _, err := b.keeper.Resume(id); err != nil {
				t.Fatal(err)
			}
			if got := b.await(t, id, ended); got.State != ownruns.StateDone || got.Result.Kind != bisect.Culprit || len(got.Result.Untestable) != 0 {
				t.Errorf("after it was mended: %+v; want a culprit, and no revision left out", got)
			}
		})
	}
}

// A deployment that takes longer than its limit leaves the revision out; of the good one it ends the bisect.
func TestDeploymentThatTakesTooLong(t *testing.T) {
	h := newHook(t)
	h.says(func(w http.ResponseWriter, _ *http.Request, _, _ string) { w.WriteHeader(http.StatusAccepted) })
	b := newBox(t, &world{})
	q := request(h.URL, 3)
	q.Limit = time.Second
	if got := b.await(t, b.make(t, q), ended); got.State != ownruns.StateFailed || !strings.Contains(got.Error, "r0000 cannot be tried: the hook had not deployed it within 1s") {
		t.Errorf("the bisect is %s: %q", got.State, got.Error)
	}
}

// Of two bisects one waits. One that is cancelled ends its run, and the next begins.
func TestCancelAndTurns(t *testing.T) {
	h := newHook(t)
	held := make(chan struct{})
	var once sync.Once
	w := &world{hold: func(ctx context.Context) {
		once.Do(func() {
			close(held)
			<-ctx.Done() // the run is cancelled
		})
	}}
	b := newBox(t, w)
	first := b.make(t, request(h.URL, 17))
	second := b.make(t, request(h.URL, 17))
	<-held
	going := b.await(t, first, func(b Bisect) bool { return b.Run != "" })
	if waiting, err := b.keeper.Get(second); err != nil || waiting.State != ownruns.StateWaiting {
		t.Errorf("the second is %s (%v); want waiting", waiting.State, err)
	}
	if err := b.keeper.Remove(first); !errors.Is(err, ErrGoing) {
		t.Errorf("Remove() of one that goes on = %v; want ErrGoing", err)
	}
	if err := b.keeper.Cancel(first); err != nil {
		t.Fatal(err)
	}
	if got := b.await(t, second, ended); got.State != ownruns.StateDone {
		t.Errorf("the second is %+v; want done", got)
	}
	if run, err := b.store.Run(going.Run); err != nil || run.State != store.StateInterrupted {
		t.Errorf("the run of the first: %+v, %v; want interrupted", run, err)
	}
	if got, err := b.keeper.Get(first); err != nil || got.State != ownruns.StateCancelled || got.Ended == nil {
		t.Errorf("the first is %+v, %v; want cancelled", got, err)
	}
	if err := b.keeper.Cancel(first); !errors.Is(err, ErrOver) {
		t.Errorf("Cancel() of one that has ended = %v; want ErrOver", err)
	}
	if err := errors.Join(b.keeper.Remove(first), b.keeper.Remove(second)); err != nil || len(b.keeper.List()) != 0 {
		t.Errorf("Remove() = %v, and %d are left", err, len(b.keeper.List()))
	}
	for _, err := range []error{b.keeper.Cancel(first), b.keeper.Remove(first), b.keeper.Deployed(first, "r0000", "")} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of one that is gone: %v; want ErrNotFound", err)
		}
	}
}

// The pairs of an experiment are divided over runs that wait in the queue together. If the bisect is cancelled, so are
// all of them.
func TestSpread(t *testing.T) {
	h := newHook(t)
	held := make(chan struct{})
	var once sync.Once
	b := newBox(t, &world{hold: func(ctx context.Context) {
		once.Do(func() {
			close(held)
			<-ctx.Done()
		})
	}})
	q := request(h.URL, 17)
	q.Spread = 51
	var wrong *WrongError
	if _, _, err := b.keeper.Make(t.Context(), q); !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), "spread: 51: from 1 to ") {
		t.Errorf("Make() with a spread of 51 = %v; want an error that names the field", err)
	}
	q.Spread = 3
	first := b.make(t, q)
	<-held
	b.await(t, first, func(now Bisect) bool { // one under way, and two behind it
		jobs, err := b.queue.List(t.Context())
		return err == nil && len(jobs) == 3 && now.Run != "" // the queue has them a moment before it is followed
	})
	if got, err := b.keeper.Get(first); err != nil || !b.has(t, got.Run) {
		t.Errorf("the bisect says that %q is going on (%v); want one of the three", got.Run, err)
	}
	if err := b.keeper.Cancel(first); err != nil {
		t.Fatal(err)
	}
	second := b.make(t, q)
	got := b.await(t, second, ended)
	if got.State != ownruns.StateDone || got.Result.Kind != bisect.Culprit || got.Result.Steps[0].Revisions[0].Name != "r0011" || len(got.Result.Steps[0].Runs) < 2 {
		t.Errorf("the second is %+v, %+v; want r0011, confirmed in several runs", got, got.Result)
	}
	if jobs, err := b.queue.List(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("%d runs are left in the queue (%v)", len(jobs), err)
	}
}

// A run that somebody cancels says nothing about its revision: it is made again, and no revision is left out.
func TestRunThatSomebodyCancels(t *testing.T) {
	h := newHook(t)
	spoilt := 0
	w := &world{spoil: func(run *lab.Run, p lab.Plan) {
		if spoilt < 2 && p.Treatment != nil {
			spoilt++
			run.State, run.Error, run.Trials = store.StateInterrupted, "somebody cancelled it", []*lab.Trial{}
		}
	}}
	b := newBox(t, w)
	got := b.await(t, b.make(t, request(h.URL, 17)), ended)
	if got.State != ownruns.StateDone || got.Result.Kind != bisect.Culprit || len(got.Result.Untestable) != 0 || spoilt != 2 {
		t.Errorf("the bisect: %+v, after %d runs that were cancelled", got, spoilt)
	}
	spoilt = -10
	if got := b.await(t, b.make(t, request(h.URL, 17)), ended); got.State != ownruns.StateFailed || !strings.Contains(got.Error, "somebody cancelled it") {
		t.Errorf("the bisect is %s: %q; want failed, as its runs are cancelled again and again", got.State, got.Error)
	}
}

func TestRequestsThatAreWrong(t *testing.T) {
	h := newHook(t)
	b := newBox(t, &world{})
	for want, change := range map[string]func(*Request){
		"revisions: 1 revisions":      func(q *Request) { q.Revisions = revisions(1) },
		"revisions: 1001; at most":    func(q *Request) { q.Revisions = revisions(1001) },
		"is the 1. already":           func(q *Request) { q.Revisions[1].Name = q.Revisions[0].Name },
		"two dots":                    func(q *Request) { q.Revisions[1].Name = "../x" },
		"revisions[1].words":          func(q *Request) { q.Revisions[1].Words = "a\nb" },
		"plan.treatment":              func(q *Request) { q.Plan.Treatment = &lab.Arm{Link: "3g"} },
		"plan.looks":                  func(q *Request) { q.Plan.Looks = 4 },
		"plan.archive: all revisions": func(q *Request) { q.Plan.Archive = "shop.wacz" },
		"plan.name: {revision}":       func(q *Request) { q.Plan.Name = plan.RevisionMark },
		"confidence":                  func(q *Request) { q.Confidence = 1 },
		"pairs: 3":                    func(q *Request) { q.Pairs = 3 },
		"hook.limit_s":                func(q *Request) { q.Limit = time.Millisecond },
		"hook.secret":                 func(q *Request) { q.Secret = lab.NewSecret("hunter2") },
		"hook.url: http://":           func(q *Request) { q.URL = "http://deploy.example/" },
		"private network":             func(q *Request) { q.URL = "https://10.0.0.1/" },
		"of the box itself":           func(q *Request) { q.URL = "https://127.0.0.2/" },
	} {
		q := request(h.URL, 3)
		q.Plan = plan.Request{Plan: lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}}}
		change(&q)
		var wrong *WrongError
		if _, _, err := b.keeper.Make(t.Context(), q); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("Make() = %v; want a WrongError with %q", err, want)
		}
	}
	if len(b.keeper.List()) != 0 || len(h.count()) != 0 {
		t.Error("a bisect that was refused is there, or its hook was asked")
	}
}

func TestHolds(t *testing.T) {
	dir := t.TempDir()
	b, err := openBox(t.Context(), dir, &world{log: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	q := request(newHook(t).URL, 3)
	q.Plan.Archive = "shop-" + plan.RevisionMark + ".wacz"
	id := b.make(t, q)
	b.keeper.change(b.keeper.line.All[id], func() { b.keeper.line.All[id].runs = []string{"20260101-100000-record"} })
	check := func(k *Keeper, want string) {
		t.Helper()
		for name, held := range map[string]bool{
			"shop-r0000.wacz": true, "shop-r0002.wacz": true, "20260101-100000-record": true, "shop-r0003.wacz": false, "shop.wacz": false, "": false,
		} {
			if got := k.Holds(name); held && got != want || !held && got != "" {
				t.Errorf("Holds(%q) = %q; want %q, if held: %v", name, got, want, held)
			}
		}
	}
	check(b.keeper, id)
	again, err := Open(Config{Dir: b.keeper.Dir, Runs: b.keeper.Runs, Store: b.keeper.Store, Sender: b.keeper.Sender})
	if err != nil {
		t.Fatal(err)
	}
	check(again, id)
	if err := b.keeper.Cancel(id); err != nil {
		t.Fatal(err)
	}
	check(b.keeper, "")
	if err := b.close(); err != nil {
		t.Error(err)
	}
}
