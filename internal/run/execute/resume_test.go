package execute

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// checked is a plan of a test, without files.
func checked(t *testing.T, p lab.Plan) plan.Checked {
	t.Helper()
	c, err := plan.Check(plan.Request{Plan: p}, plan.Options{From: &plan.Folder{Sent: p.Files}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// goingOn makes the execution that goes on with a run that cut made.
func goingOn(t *testing.T, root, id string) *Execution {
	t.Helper()
	kept, err := store.ReadRun(filepath.Join(root, "runs", id))
	if err != nil {
		t.Fatal(err)
	}
	asked := checked(t, kept.Plan)
	asked.Plan = kept.Plan // as it was kept, without defaults
	x := &Execution{ID: id, Plan: asked, Root: root, Software: kept.Environment.Appliance, begun: time.Now(), News: News{}, Log: slog.New(slog.DiscardHandler)}
	x.run = &lab.Run{ID: id, State: store.StateRunning, Plan: kept.Plan, Environment: kept.Environment, Warnings: []string{"as always"}}
	return x
}

// A run goes on with its trials, seed and notes, and says so; what its end had added is added anew.
func TestResumedRun(t *testing.T) {
	root := t.TempDir()
	dir := cut(t, root, "a")
	if err := Conclude(dir, CutOff); err != nil { // a service did so meanwhile
		t.Fatal(err)
	}
	x := goingOn(t, root, "a")
	if err := x.begin(); err != nil {
		t.Fatal(err)
	}
	run := x.run
	if run.State != store.StateRunning || run.Error != "" || run.Comparison != nil || len(run.Trials) != 16 || !x.resumed ||
		len(run.Resumed) != 1 || run.Resumed[0].Trials != 16 {
		t.Errorf("%s %q, %d trials, resumed %+v; want a running run with its trials", run.State, run.Error, len(run.Trials), run.Resumed)
	}
	if len(run.Trials[0].FrameTimes) == 0 {
		t.Error("the trials have lost their series")
	}
	run.State = store.StateDone
	conclude(run)
	said := 0
	for _, w := range run.Warnings {
		if strings.Contains(w, "interrupted after 16 trials, and went on at ") {
			said++
		}
		if strings.Contains(w, "before all that were planned") {
			t.Errorf("a run that is done says %q", w)
		}
	}
	if said != 1 || !slices.Contains(run.Warnings, "as always") || run.Comparison == nil || run.Comparison.Partial {
		t.Errorf("warnings %q, %+v; want the interruption, once", run.Warnings, run.Comparison)
	}
	if err := x.folder.Close(); err != nil {
		t.Fatal(err)
	}
}

// A run that was cut off in its recording records anew: what it had filmed is in nobody's way.
func TestRunCutOffInItsRecording(t *testing.T) {
	root := t.TempDir()
	run := &lab.Run{ID: "a", State: store.StateRunning, Plan: checked(t, lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}}).Plan}
	run.Environment.Appliance = "appliance test"
	folder, err := store.Create(root, run)
	if err != nil {
		t.Fatal(err)
	}
	film := filepath.Join(folder.Path(), "recording-treatment", "screen.reel")
	if err := errors.Join(os.MkdirAll(filepath.Dir(film), 0o755), os.WriteFile(film, nil, 0o600), folder.Close()); err != nil {
		t.Fatal(err)
	}
	x := goingOn(t, root, "a")
	if err := x.begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(film); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the film of the recording that was cut off: %v; want that it is gone", err)
	}
	if err := x.folder.Close(); err != nil {
		t.Fatal(err)
	}
}

// A run that could not have come from one execution does not go on, and is left as it is.
func TestRunThatCannotGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Execution)
		says   string
	}{
		"other plan":    {func(x *Execution) { x.Plan.Seed = 8 }, "its plan is another one"},
		"other version": {func(x *Execution) { x.Software = "v9" }, "their trials may differ"},
		"other file": {func(x *Execution) {
			x.Plan.Contents = map[string][]byte{"polyfill.js": []byte("1")}
		}, "polyfill.js has changed since it began"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := cut(t, root, "a")
			x := goingOn(t, root, "a")
			c.change(x)
			if err := x.begin(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("begin() = %v; want %q", err, c.says)
			}
			if run, err := store.ReadRun(dir); err != nil || run.State != store.StateInterrupted || len(run.Resumed) != 0 {
				t.Errorf("the run: %+v, %v; want it as it was", run, err)
			}
		})
	}
	for name, c := range map[string]struct {
		change func(*lab.Run)
		says   string
	}{
		"fill":   {func(r *lab.Run) { r.Plan.Miss = lab.MissFill }, "miss: fill"},
		"done":   {func(r *lab.Run) { r.State = store.StateDone }, "it is done"},
		"no end": {func(r *lab.Run) { r.Resumed = []lab.Resumption{{Trials: 1}, {Trials: 2}, {Trials: 2}} }, "it went on 2 times after trial 2"},
		"good":   {func(r *lab.Run) { r.Resumed = []lab.Resumption{{Trials: 0}, {Trials: 1}, {Trials: 2}} }, ""},
	} {
		run := &lab.Run{State: store.StateInterrupted, Trials: make([]*lab.Trial, 2)}
		c.change(run)
		err := Resumable(run, "")
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Resumable() = %v; want %q", name, err, c.says)
		}
	}
}

// The newest unfinished run of the plan is the one to go on with; how it matched is not the plan's.
func TestUnfinished(t *testing.T) {
	root := t.TempDir()
	asked := checked(t, lab.Plan{Seed: 7, Arm: lab.Arm{Page: "https://a.test/"}})
	if id, err := Unfinished(t.Context(), filepath.Join(root, "nope"), asked, ""); id != "" || err != nil {
		t.Errorf("Unfinished() of no folder = %q, %v; want none", id, err)
	}
	for i, c := range []struct {
		id, state string
		seed      uint64
	}{{"older", store.StateRunning, 7}, {"newer", store.StateRunning, 7}, {"other", store.StateRunning, 8}, {"done", store.StateDone, 7}} {
		run := &lab.Run{ID: c.id, State: c.state, Wall: time.Unix(int64(1000+i), 0), Plan: asked.Plan}
		run.Plan.Seed, run.Plan.Match, run.Plan.Link = c.seed, lab.NormalMatch, lab.NativeLink
		run.Environment.Appliance = "v1"
		f, err := store.Create(root, run)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for software, want := range map[string]string{"v1": "newer", "v2": ""} {
		if id, err := Unfinished(t.Context(), root, asked, software); id != want || err != nil {
			t.Errorf("Unfinished() for %s = %q, %v; want %q", software, id, err, want)
		}
	}
}
