package service

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/credentials"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/retention"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/web/panel"
)

// retained is a retainer of eight runs, the oldest 800 days old, with the last one that goes on.
func retained(t *testing.T) *retainer {
	t.Helper()
	data := t.TempDir()
	runs, err := store.Open(t.Context(), data, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runs.Close() })
	jobs, err := store.OpenQueue(t.Context(), filepath.Join(data, queueFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = jobs.Close() })
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	for i, id := range []string{"a", "recorded", "pinned", "waits", "b", "c", "newest", "going"} {
		run := &lab.Run{ID: id, Name: "n", Page: "https://x.test/", State: store.StateDone, Wall: now.AddDate(0, 0, 100*(i-8)),
			Summary: []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 1, Median: 1}}}
		if id == "going" {
			run.State = store.StateRunning
		}
		f, err := store.Create(data, run)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		for name, text := range map[string]string{"trials/001/screen.reel": strings.Repeat("x", 1000), "archive.wacz": "PK", "report.html": "<p>",
			"trials/001/trial.json": "{}"} {
			path := filepath.Join(f.Path(), name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if id != "going" {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := runs.Pin("pinned", store.Pin{By: "box", Why: "the release"}); err != nil {
		t.Fatal(err)
	}
	if err := jobs.Add(t.Context(), store.Job{ID: "waits", Device: "laptop", Created: now}); err != nil {
		t.Fatal(err)
	}
	k, err := automation.Open(t.Context(), automation.Config{File: filepath.Join(data, automationFile), Store: runs,
		Runs: runqueue.New(runqueue.Config{Jobs: jobs, Store: runs}), Sender: webhook.Sender{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	plan := lab.Plan{Arm: lab.Arm{Page: "https://x.test/", Archive: "recorded"}}
	if _, err := k.PutWorkflow(t.Context(), "checkout", plan, nil, "box", automation.Expect{}); err != nil {
		t.Fatal(err)
	}
	tokens := credentials.Open(credentials.Options{})
	t.Cleanup(func() { _ = tokens.Close() })
	return &retainer{runs: runs, jobs: jobs.Jobs, keeper: k, tokens: tokens, log: slog.New(slog.DiscardHandler),
		clock: steadyClock{now: func() time.Time { return now }, since: func() time.Duration { return 0 }},
		room:  func(string) (int64, int64, error) { return 1e12, 2e12, nil }}
}

// What a series, a workflow, the queue or a pin needs stays; the numbers of all runs stay.
func TestRetentionKeepsWhatIsNeeded(t *testing.T) {
	r := retained(t)
	policy := retention.Policy{KeepDays: 1}
	preview, err := r.Preview(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	needed := map[string]string{}
	for _, k := range preview.Kept {
		needed[k.Run] = k.Needed
	}
	for id, why := range map[string]string{"recorded": "the workflow checkout", "pinned": "pinned", "waits": "queue", "newest": "newest of its series",
		"going": "goes on"} {
		if !strings.Contains(needed[id], why) {
			t.Errorf("run %s is needed for %q, want %q", id, needed[id], why)
		}
	}
	if len(preview.Delete) != 3 || preview.Delete[0].Run != "a" || preview.Frees != 3*1002 || preview.Free != 1e12 {
		t.Errorf("the preview is %+v; want the evidence of a, b and c, 1002 bytes each", preview)
	}
	reel := func(id string) bool {
		_, err := os.Stat(filepath.Join(r.runs.Root(), "runs", id, "trials/001/screen.reel"))
		return err == nil
	}
	if !reel("a") {
		t.Error("the preview deleted something")
	}
	before, err := r.runs.Past(t.Context(), seriesKey(t, r.runs), 100)
	if err != nil || len(before) != 7 {
		t.Fatalf("%d runs in the series (%v), want 7", len(before), err)
	}
	done, err := r.Apply(t.Context(), policy)
	if err != nil || len(done.Delete) != 3 || done.Frees != 3*1002 {
		t.Fatalf("Apply() = %+v, %v; want three", done, err)
	}
	for id, want := range map[string]bool{"a": false, "b": false, "c": false, "recorded": true, "pinned": true, "waits": true, "newest": true, "going": true} {
		if reel(id) != want {
			t.Errorf("the film of %s is there: %v, want %v", id, !want, want)
		}
	}
	for _, name := range []string{"run.json", "report.html", "trials/001/trial.json", "thinned.json"} {
		if _, err := os.Stat(filepath.Join(r.runs.Root(), "runs", "a", name)); err != nil {
			t.Error(err)
		}
	}
	if after, err := r.runs.Past(t.Context(), seriesKey(t, r.runs), 100); err != nil || len(after) != 7 {
		t.Errorf("%d runs in the series afterwards (%v), want 7", len(after), err)
	}
	if again, err := r.Apply(t.Context(), policy); err != nil || len(again.Delete) != 0 {
		t.Errorf("a second Apply() = %+v, %v; want nothing to delete", again.Delete, err)
	}
	if err := r.runs.Remove("pinned"); !errors.Is(err, store.ErrPinned) {
		t.Errorf("Remove() of a pinned run = %v, want ErrPinned", err)
	}
}

func seriesKey(t *testing.T, runs *store.Store) string {
	t.Helper()
	all, err := runs.Series(t.Context(), "", store.Series{}, 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d series (%v), want 1", len(all), err)
	}
	return all[0].Key
}

// By itself the box deletes nothing for its age while the clock is new or has just stepped, and
// writes what it deletes into the log.
func TestRetentionWaitsForASteadyClock(t *testing.T) {
	r := retained(t)
	r.policy = retention.Policy{KeepDays: 1}
	wall, elapsed := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC), time.Duration(0)
	r.clock = steadyClock{now: func() time.Time { return wall }, since: func() time.Duration { return elapsed }}
	pass := func(clock, step time.Duration) int { // both clocks go on, and the wall clock steps
		wall, elapsed = wall.Add(clock+step), elapsed+clock
		r.automatic(t.Context(), true)
		return len(r.tokens.Events(10))
	}
	if pass(0, 0) != 0 || pass(steadyFor-time.Minute, 0) != 0 {
		t.Error("evidence was deleted soon after the start")
	}
	const year = 365 * 24 * time.Hour
	if pass(time.Minute, 10*year) != 0 {
		t.Error("evidence was deleted when the clock had stepped ten years")
	}
	if pass(steadyFor-time.Minute, -10*year) != 0 {
		t.Error("evidence was deleted when the clock had stepped back")
	}
	pass(steadyFor, 0)
	if all := r.tokens.Events(10); len(all) != 1 || all[0].Who != "retention" || !strings.Contains(all[0].What, "3 runs") {
		t.Errorf("the log has %+v; want that retention deleted the evidence of 3 runs", all)
	}
}

// A disk that is full for a run is given room by retention before the run is refused.
func TestRetentionMakesRoom(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	r := retained(t)
	free := int64(0)
	r.room = func(string) (int64, int64, error) { return free, 1e9, nil }
	carrier := newRunner(t)
	carrier.disk = newDisk(t.TempDir(), nil)
	carrier.disk.patience = testlab.Hang
	looks := 0
	carrier.disk.look = func(string) error {
		if looks++; looks == 1 {
			return errors.New("the disk is full")
		}
		return nil
	}
	plan := lab.Plan{Trials: 1, Still: 1.5, Limit: 60, Arm: lab.Arm{Page: "https://x.test/"}}
	carrier.devices.add("port", failingDevice{})
	carrier.retainer = r
	var refusal *panel.Refusal
	if _, err := carrier.Accept(t.Context(), plan); !errors.As(err, &refusal) || refusal.Status != http.StatusInsufficientStorage {
		t.Errorf("Accept() without a policy = %v, want a refusal 507", err)
	}
	r.policy = retention.Policy{KeepFreeGB: 1e-6} // 1000 bytes: one run's evidence
	looks = 0
	carrier.disk.again()
	if _, err := carrier.Accept(t.Context(), withDevice(plan)); err != nil {
		t.Errorf("Accept() with a policy = %v, want room for the run", err)
	}
	if all := r.tokens.Events(10); len(all) != 1 || !strings.Contains(all[0].What, "1 runs") {
		t.Errorf("the log has %+v; want the evidence of one run", all)
	}
}

func TestLowDisk(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	dir := mountSmall(t)
	if err := lowOn(dir); err != nil {
		t.Errorf("lowOn() of an empty disk = %v, want nil", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 19<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lowOn(dir); err == nil || !strings.Contains(err.Error(), "nearly full") {
		t.Errorf("lowOn() of a disk with a twentieth free = %v, want a warning", err)
	}
}

// TestRetentionDuringABisect: the runs of a bisect that goes on are kept whole.
func TestRetentionDuringABisect(t *testing.T) {
	r := retained(t)
	policy := retention.Policy{KeepDays: 1}
	d, err := r.Preview(t.Context(), policy)
	if err != nil || len(d.Delete) < 2 {
		t.Fatalf("without a bisect %d runs would be thinned, %v; want several", len(d.Delete), err)
	}
	last := d.Delete[len(d.Delete)-1].Run
	e, err := r.runs.Run(last)
	if err != nil {
		t.Fatal(err)
	}
	r.ownRuns = []ownRuns{{"bisect", func() time.Time { return e.Wall }, func(string) string { return "" }}}
	after, err := r.Preview(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range after.Delete {
		if one.Run == last {
			t.Errorf("run %s, made since the bisect began, would be thinned", last)
		}
	}
	if len(after.Delete) == 0 {
		t.Error("runs before the bisect are kept, too")
	}
}
