package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

func plan() Plan {
	p := DefaultPlan("https://www.shop.test/", "http://box.test/sync", 3)
	p.Limit = 10 * time.Second
	return p
}

// doneAfter is the event of lab.done("cart shown"), once at has passed.
func doneAfter(at, since time.Duration) *lab.Event {
	if since <= at {
		return nil
	}
	arrived := now().Add(at - since)
	return &lab.Event{Name: "done", Detail: "cart shown", Earliest: arrived, Latest: arrived}
}

// TestDoneIsAnEvent: a trial's events hold the page's name for lab.done(), before the end
// that it causes.
func TestDoneIsAnEvent(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := world{changes: []time.Duration{200 * time.Millisecond}, traffic: func(since time.Duration) Traffic {
			return Traffic{Done: doneAfter(time.Second, since)}
		}}
		got, err := w.runner().Trial(t.Context(), plan(), 1, dir)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range got.Events {
			all = append(all, e.Name+" "+e.Detail)
		}
		want := []string{"navigate Return on the synchronisation page, which leads to https://www.shop.test/", "done cart shown",
			"end done"}
		if !slices.Equal(all, want) {
			t.Errorf("the trial's events are %q, want %q", all, want)
		}
		if at := got.Events[1].Latest; at != w.pressed.Add(time.Second) {
			t.Errorf("lab.done() is logged at %v, it arrived at %v", at, w.pressed.Add(time.Second))
		}
	})
	log, err := os.ReadFile(filepath.Join(dir, EventsFile))
	if err != nil || !strings.Contains(string(log), `"detail":"cart shown"`) {
		t.Errorf("%s holds %s, %v; want the name that the page gave", EventsFile, log, err)
	}
}

// TestBlankFilm: a trial whose film shows no page load is invalid, unless the plan expects that.
func TestBlankFilm(t *testing.T) {
	for _, expected := range []bool{false, true} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := world{changes: []time.Duration{200 * time.Millisecond}, noLoad: "the final picture is blank"}
			p := plan()
			p.ExpectBlank = expected
			got, err := w.runner().Trial(t.Context(), p, 1, dir)
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Contains(strings.Join(got.Invalid, "\n"), "the final picture is blank; look at its video, and say expect_blank")
			if got.Valid != expected || said == expected {
				t.Errorf("expect_blank %v: valid %v, because %q", expected, got.Valid, got.Invalid)
			}
		})
	}
}

// TestComputingPageIsNotAtRest: screen and network are still from 0.9 s on, but the browser
// computes until 3.5 s. The trial ends when the page has been still and idle.
func TestComputingPageIsNotAtRest(t *testing.T) {
	for busy, want := range map[time.Duration][2]time.Duration{
		100 * time.Millisecond:  {2400 * time.Millisecond, 2600 * time.Millisecond}, // 0.9 s and the plan's 1.5
		3500 * time.Millisecond: {3500 * time.Millisecond, 5100 * time.Millisecond},
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := world{changes: []time.Duration{200 * time.Millisecond, 900 * time.Millisecond}, busyUntil: busy}
			got, err := w.runner().Trial(t.Context(), plan(), 1, dir)
			if err != nil || got.Ended != lab.EndStable {
				t.Fatalf("Trial() = ended by %q, %v; want %q", got.Ended, err, lab.EndStable)
			}
			end := got.Events[len(got.Events)-1].Latest.Sub(w.pressed)
			if end < want[0] || end > want[1] {
				t.Errorf("a page that computes until %v is at rest after %v; want %v to %v", busy, end, want[0], want[1])
			}
		})
	}
}

func TestTrial(t *testing.T) {
	page := []time.Duration{200 * time.Millisecond, 900 * time.Millisecond}
	tests := []struct {
		name     string
		world    world
		ended    lab.End
		valid    bool
		because  string
		analysed int
		requests int
	}{
		{name: "a page that comes to rest", world: world{changes: page}, ended: lab.EndStable, valid: true, analysed: 1},
		{name: "a red page ends at once", world: world{changes: page, final: lab.SyncRed()}, ended: lab.EndRed, valid: true, analysed: 1},
		{name: "lab.done ends at once", world: world{changes: page, traffic: func(since time.Duration) Traffic {
			return Traffic{InFlight: 1, Done: doneAfter(time.Second, since)}
		}}, ended: lab.EndDone, valid: true, analysed: 1},
		{name: "a request in flight keeps it from ending", world: world{changes: page, traffic: func(time.Duration) Traffic {
			return Traffic{InFlight: 1}
		}}, ended: lab.EndLimit, because: "did not come to rest", analysed: 1},
		{name: "a page that asks for a part of what was recorded", world: world{changes: page, traffic: func(time.Duration) Traffic {
			return Traffic{Recorded: 89, Asked: 10}
		}}, ended: lab.EndStable, because: "asked for only 10 of the 89 exchanges that were recorded of it", analysed: 1},
		{name: "a page that never shows", world: world{}, ended: lab.EndLimit, because: "did not come to rest", analysed: 1},
		{name: "a browser without a page", world: world{slowBy: time.Hour}, because: "did not show the green", analysed: 0},
		{name: "a browser that crashes", world: world{changes: page, diesAfter: 300 * time.Millisecond}, because: "the browser crashed",
			analysed: 1},
		{name: "a page that crashes in a browser that goes on", world: world{changes: page, crash: "it took all memory"}, ended: lab.EndStable,
			because: "the page crashed, and the browser showed a picture of its own in its place: it took all memory", analysed: 1},
		{name: "a screen that falls silent", world: world{changes: page, silentAt: 300 * time.Millisecond},
			because: "the source of the pictures was interrupted", analysed: 1},
		{name: "lost frames", world: world{changes: page, lost: 3}, ended: lab.EndStable, because: "frames were lost", analysed: 1},
		{name: "a miss", world: world{changes: page, requests: []lab.Served{
			{Stage: lab.StageBox}, {Stage: lab.StageExact},
			{Stage: lab.StageMiss, Method: "GET", URL: "https://x.test/a"},
		}}, ended: lab.EndStable, because: "1 of 2 requests were not in the archive, first GET https://x.test/a", analysed: 1, requests: 2},
		{name: "an error of ours", world: world{changes: page, requests: []lab.Served{
			{Stage: lab.StageExact, Method: "GET", URL: "https://x.test/a", Error: "no space left"},
			{Stage: lab.StageExact, Error: "broken pipe", Aborted: true},
		}}, ended: lab.EndStable, because: "1 answers failed on our side, first GET https://x.test/a: no space left",
			analysed: 1, requests: 2},
		{name: "a link that was late", world: world{changes: page, linkFault: "3 packets left the link late"}, ended: lab.EndStable,
			because: "3 packets left the link late", analysed: 1},
		{name: "a link that was a little late", world: world{changes: page, late: 16 * time.Millisecond}, ended: lab.EndStable,
			valid: true, analysed: 1},
		{name: "a link that was too late", world: world{changes: page, late: 17 * time.Millisecond}, ended: lab.EndStable,
			because: "a stall of 17 ms while the page loaded, 0 ms after the start (tolerance 16.7 ms)", analysed: 1},
		{name: "a link that was late when all was over", world: world{changes: page, late: time.Second, lateAt: 1200 * time.Millisecond},
			ended: lab.EndStable, valid: true, analysed: 1},
		{name: "a quota that nobody noticed", world: world{changes: page, machine: &lab.Machine{Holds: 9, Held: 900}},
			ended: lab.EndStable, valid: true, analysed: 1},
		{name: "a service that works beside the trial", world: world{changes: page, machine: &lab.Machine{Service: 0.5, Connections: 1076}},
			ended:   lab.EndStable,
			because: "the service was busy beside the trial, with 50 % of a core, while 1076 connections a second came to this machine", analysed: 1},
		{name: "a service that shows a page", world: world{changes: page, machine: &lab.Machine{Service: 0.1}},
			ended: lab.EndStable, valid: true, analysed: 1},
		{name: "a clock that steps", world: world{changes: page, step: time.Second}, ended: lab.EndStable, because: "clock stepped by 1s",
			analysed: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := test.world
				got, err := w.runner().Trial(t.Context(), plan(), 1, dir)
				if err != nil {
					t.Fatal(err)
				}
				if got.Ended != test.ended {
					t.Errorf("ended by %q, want %q", got.Ended, test.ended)
				}
				if got.Valid != test.valid {
					t.Errorf("valid = %v, because %q", got.Valid, got.Invalid)
				}
				if all := strings.Join(got.Invalid, "; "); !strings.Contains(all, test.because) {
					t.Errorf("invalid because %q, want %q", all, test.because)
				}
				if w.analysed != test.analysed || w.stopped != 1 {
					t.Errorf("analysed %d times, want %d; device stopped %d times, want once", w.analysed, test.analysed, w.stopped)
				}
				if w.restarted != w.pressed {
					t.Errorf("the link was restarted at %v, the start at %v", w.restarted, w.pressed)
				}
				if got.Requests != test.requests {
					t.Errorf("%d requests, want %d", got.Requests, test.requests)
				}
				if share, asked := lab.ReplayConfidence(w.requests); asked > 0 && metric.ReplayConfidence.In(got) != share {
					t.Errorf("replay_confidence %v, want %v", metric.ReplayConfidence.In(got), share)
				}
			})
			for _, file := range []string{ReplayFile, EventsFile} {
				if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestAwake: the processors are kept awake during the load and no longer.
func TestAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world{changes: []time.Duration{time.Second}}
		if _, err := w.runner().Trial(t.Context(), plan(), 1, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if w.slept || w.awake != 0 {
			t.Errorf("slept while loading: %v; still kept awake: %d", w.slept, w.awake)
		}
	})
}

func TestTrialThatMakesAllFurtherPointless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world{filmErr: errors.New("no display")}
		_, err := w.runner().Trial(t.Context(), plan(), 1, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "no display") {
			t.Errorf("error %v, want the screen's", err)
		}
		if w.stopped != 1 {
			t.Errorf("device stopped %d times, want once", w.stopped)
		}
	})
}

func TestInterruptedTrialStopsTheDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		w := world{changes: []time.Duration{time.Second}}
		_, err := w.runner().Trial(ctx, plan(), 1, t.TempDir())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
		if w.stopped != 1 {
			t.Errorf("device stopped %d times, want once", w.stopped)
		}
	})
}

func TestPhaseIsSpreadAndSeeded(t *testing.T) {
	const period = time.Second / 60
	var low, high int
	for n := range 200 {
		p := phase(7, n)
		if p != phase(7, n) {
			t.Fatal("the same seed and trial gave two phases")
		}
		if p < 0 || p >= period {
			t.Fatalf("phase %v is outside one frame", p)
		}
		if p < period/2 {
			low++
		} else {
			high++
		}
	}
	if low < 60 || high < 60 {
		t.Errorf("%d phases in the first half of a frame, %d in the second", low, high)
	}
}

type folder struct{ root string }

func (f folder) TrialDir(n int) (string, error) {
	dir := filepath.Join(f.root, string(rune('0'+n)))
	return dir, os.MkdirAll(dir, 0o755)
}

func arms(w *world, names ...string) (all []Arm) {
	for _, name := range names {
		all = append(all, Arm{Name: name, Page: "https://www.x.test/" + name, Network: w})
	}
	return all
}

func TestRun(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := world{changes: []time.Duration{time.Second}}
		run := &lab.Run{}
		saved := 0
		if err := w.runner().Run(t.Context(), plan(), arms(&w, lab.Control), run, folder{root},
			func() error { saved++; return nil }); err != nil {
			t.Fatal(err)
		}
		if len(run.Trials) != 3 || saved != 3 || w.stopped != 3 {
			t.Errorf("%d trials, saved %d times, %d devices; want 3 of each", len(run.Trials), saved, w.stopped)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := world{slowBy: time.Hour}
		err := w.runner().Run(t.Context(), plan(), arms(&w, lab.Control), &lab.Run{}, folder{root}, func() error { return nil })
		if !errors.Is(err, errNothingValid) {
			t.Errorf("error %v, want that nothing was valid", err)
		}
	})
}

// TestSlowBirth: a plan whose loads may take long gives a fresh device as long to show the green page.
func TestSlowBirth(t *testing.T) {
	for limit, want := range map[time.Duration]bool{time.Minute: false, 5 * time.Minute: true} {
		synctest.Test(t, func(t *testing.T) {
			w := world{changes: []time.Duration{time.Second}, slowBy: 2 * time.Minute}
			p := plan()
			p.Limit = limit
			got, err := w.runner().Trial(t.Context(), p, 1, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			late := "within 1m0s; a slower device gets more by limit_s"
			if all := strings.Join(got.Invalid, "; "); got.Valid != want || !want && !strings.Contains(all, late) {
				t.Errorf("with a limit of %v: valid %v, because %q; want %v, or %q", limit, got.Valid, all, want, late)
			}
		})
	}
}

// A run interrupted after any of its trials, valid or not, continues as if it had not
// been interrupted.
func TestRunGoesOn(t *testing.T) {
	root := t.TempDir()
	carryOut := func(t *testing.T, run *lab.Run, lost []int) int {
		w := world{changes: []time.Duration{time.Second}, lostOf: lost}
		saved := 0
		if err := w.runner().Run(t.Context(), plan(), arms(&w, lab.Control, lab.Treatment), run, folder{root},
			func() error { saved++; return nil }); err != nil {
			t.Fatal(err)
		}
		return saved
	}
	summary := func(trials []*lab.Trial) (all []string) {
		for _, trial := range trials {
			all = append(all, fmt.Sprint(trial.Number, trial.Arm, trial.Block, trial.Valid))
		}
		return all
	}
	synctest.Test(t, func(t *testing.T) {
		lost := []int{0, 4, 0, 0, 4, 0, 0, 0, 0}
		whole := &lab.Run{}
		carryOut(t, whole, lost)
		for n := range len(whole.Trials) + 1 {
			run := &lab.Run{Trials: slices.Clone(whole.Trials[:n])}
			saved := carryOut(t, run, lost[n:])
			if got, want := summary(run.Trials), summary(whole.Trials); !slices.Equal(got, want) || saved != len(want)-n {
				t.Errorf("after %d trials: %q, saved %d times; want %q, %d times", n, got, saved, want, len(want)-n)
			}
		}
	})
}

// A run looks at its comparison after whole blocks, as often as its plan says but for the end, and
// ends when it knows. One that was interrupted ends at the same trial.
func TestRunEndsWhenItKnows(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var looks []string
		carryOut := func(run *lab.Run, knows int) {
			w := world{changes: []time.Duration{time.Second}}
			p := plan()
			p.Trials, p.Looks = 20, []int{5, 10, 15, 20}
			looks = nil
			p.Look = func(run *lab.Run, at int) bool {
				looks = append(looks, fmt.Sprint(at, " after ", len(run.Trials)))
				return at == knows
			}
			if err := w.runner().Run(t.Context(), p, arms(&w, lab.Control, lab.Treatment), run, folder{root}, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		all := []string{"0 after 10", "1 after 20", "2 after 30"}
		for knows, want := range []int{10, 20, 30, 40} {
			run := &lab.Run{}
			if carryOut(run, knows); len(run.Trials) != want || !slices.Equal(looks, all[:min(knows+1, len(all))]) {
				t.Errorf("known at look %d: %d trials, looks %q; want %d trials", knows, len(run.Trials), looks, want)
			}
			again := &lab.Run{Trials: slices.Clone(run.Trials[:7])}
			if carryOut(again, knows); len(again.Trials) != want {
				t.Errorf("known at look %d, and interrupted: %d trials; want %d", knows, len(again.Trials), want)
			}
		}
	})
}

// A run that chooses its size makes whole blocks until it has so many pairs, looks after the pairs that it makes, and
// chooses the same when it goes on after an interruption.
func TestRunChoosesItsSize(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var looked []int
		carryOut := func(run *lab.Run, pairs int) {
			w := world{changes: []time.Duration{time.Second}}
			p := plan()
			p.Trials, p.Looks, looked = 40, []int{20, 40}, nil
			p.Look = func(run *lab.Run, _ int) bool { looked = append(looked, len(run.Trials)); return false }
			p.Size = func(run *lab.Run) (int, []int, bool) {
				asked++
				return pairs, []int{pairs / 2, pairs}, len(run.Trials) >= 16
			}
			if err := w.runner().Run(t.Context(), p, arms(&w, lab.Control, lab.Treatment), run, folder{root}, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for pairs, want := range map[int]int{8: 20, 17: 40, 22: 50, 40: 80, 0: 80} {
			asked = 0
			run := &lab.Run{}
			carryOut(run, pairs)
			if len(run.Trials) != want || asked != 2 {
				t.Errorf("%d pairs: %d trials, asked %d times; want %d, and once after ten pairs", pairs, len(run.Trials), asked, want)
			}
			if pairs == 22 && !slices.Equal(looked, []int{30}) {
				t.Errorf("looks after %v trials; want one after 15 of 22 pairs", looked)
			}
			again := &lab.Run{Trials: slices.Clone(run.Trials[:13])}
			if carryOut(again, pairs); len(again.Trials) != want {
				t.Errorf("%d pairs, interrupted: %d trials; want %d", pairs, len(again.Trials), want)
			}
		}
	})
}

// An invalid trial is repeated at once, for the same arm and in the same block.
func TestInvalidTrialsAreRepeated(t *testing.T) {
	for _, c := range []struct {
		name  string
		lost  []int // frames, of each trial in order
		valid int
		takes int
	}{
		{"none", nil, 3, 3},
		{"one", []int{0, 4, 0}, 3, 4},
		{"as many as may be repeated", []int{0, 4, 4, 0, 4}, 2, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := world{changes: []time.Duration{time.Second}, lostOf: c.lost}
				run := &lab.Run{}
				last := Step{}
				r := w.runner()
				r.Progress = func(s Step) { last = s }
				if err := r.Run(t.Context(), plan(), arms(&w, lab.Control), run, folder{root}, func() error { return nil }); err != nil {
					t.Fatal(err)
				}
				valid := 0
				for i, trial := range run.Trials {
					if trial.Valid {
						valid++
					}
					if trial.Number != i+1 || trial.Block != 1 {
						t.Errorf("trial %d of block %d is the %d. in the run", trial.Number, trial.Block, i+1)
					}
				}
				if valid != c.valid || len(run.Trials) != c.takes || last.Of != c.takes {
					t.Errorf("%d trials of %d, %d valid; want %d and %d", len(run.Trials), last.Of, valid, c.takes, c.valid)
				}
			})
		})
	}
}

func TestRunOfTwoArms(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := world{changes: []time.Duration{time.Second}}
		run := &lab.Run{}
		both := arms(&w, lab.Control, lab.Treatment)
		ready := 0
		both[1].Ready = func() error { ready++; return nil }
		if err := w.runner().Run(t.Context(), plan(), both, run, folder{root}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if len(run.Trials) != 6 || ready != 3 {
			t.Fatalf("%d trials, the treatment made ready %d times; want 6 and 3", len(run.Trials), ready)
		}
		for _, trial := range run.Trials {
			if trial.Page != "https://www.x.test/"+trial.Arm {
				t.Errorf("trial %d of the %s loaded %s", trial.Number, trial.Arm, trial.Page)
			}
		}
	})
}

// Each block has equally many trials of each arm, and every order is equally likely.
func TestSchedule(t *testing.T) {
	orders := map[string]int{}
	for seed := range uint64(2000) {
		order, count := "", map[Slot]int{}
		for _, s := range Schedule(seed, 8, 2) {
			count[s]++
			if s.Block == 2 {
				order += string(rune('A' + s.Arm))
			}
		}
		if len(count) != 4 || count[Slot{0, 1}] != 4 || count[Slot{1, 2}] != 4 {
			t.Fatalf("blocks of %v", count)
		}
		orders[order]++
	}
	if len(orders) != 70 {
		t.Fatalf("%d orders of four and four, want all 70", len(orders))
	}
	for order, n := range orders { // 28.6 each, standard deviation 5.3
		if n < 8 || n > 52 {
			t.Errorf("%s was drawn %d times of 2000", order, n)
		}
	}
}

func TestBlockSizes(t *testing.T) {
	for n, want := range map[int][]int{1: {1}, 6: {6}, 7: {7}, 8: {4, 4}, 10: {5, 5}, 13: {4, 4, 5}, 16: {5, 5, 6}} {
		if got := blockSizes(n); !slices.Equal(got, want) {
			t.Errorf("%d trials are in blocks of %v, want %v", n, got, want)
		}
	}
}

// gestures notes which gesture each trial was to make.
type gestures struct{ made map[string][]string }

func (g gestures) Begin(Film) (Play, error) { return g, nil }

func (g gestures) Run(_ context.Context, s Scene) error {
	g.made[s.Trial.Arm] = append(g.made[s.Trial.Arm], s.Steps[1].Replay)
	return nil
}

// The arms take the gestures of a set equally often, by their weights; the trial that is made by itself
// takes the first.
func TestGesturesTakeTurns(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := world{changes: []time.Duration{time.Second}}
		made := gestures{map[string][]string{}}
		runner := w.runner()
		runner.Journey = made
		p := plan()
		p.Trials, p.Steps = 4, []lab.Step{{Open: "https://www.x.test/"}, {Replay: "slow.jsonl weight 3, fast.jsonl"}}
		if err := runner.Run(t.Context(), p, arms(&w, lab.Control, lab.Treatment), &lab.Run{}, folder{root}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		turns := []string{"slow.jsonl", "slow.jsonl", "fast.jsonl", "slow.jsonl"}
		if d := cmp.Diff(map[string][]string{lab.Control: turns, lab.Treatment: turns}, made.made); d != "" {
			t.Error("-want +got\n", d)
		}
		clear(made.made)
		if _, err := runner.Trial(t.Context(), p, 0, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string][]string{lab.Control: {"slow.jsonl"}}, made.made); d != "" {
			t.Error("one trial: -want +got\n", d)
		}
	})
}
