package automation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// measured is a run of n valid trials, on a machine of so many processors.
func measured(id, name string, n, cores int) *lab.Run {
	run := &lab.Run{ID: id, Name: name, State: store.StateDone, Plan: lab.Plan{Device: "virtual"},
		Environment: lab.Environment{Host: lab.Host{Processor: "EPYC", Cores: cores, MemoryBytes: 8e9}}}
	for i := range n {
		run.Trials = append(run.Trials, &lab.Trial{Number: i + 1, Arm: lab.Control, Valid: true})
	}
	return run
}

// TestReferences: a reference is found by name, branch and version or revision, and only by a run of the same class of
// machine.
func TestReferences(t *testing.T) {
	b := newTestBox(t, nil)
	ctx := t.Context()
	put := func(branch string, run *lab.Run, revision string) RunReference {
		t.Helper()
		r, err := b.PutReference(ctx, branch, run, revision, "ada")
		if err != nil {
			t.Fatalf("PutReference(%s, %s): %v", branch, run.ID, err)
		}
		return r
	}
	put("main", measured("r1", "shop", 6, 2), "1111111aaaa")
	put("main", measured("r2", "shop", 6, 2), "2222222bbbb")
	again := put("main", measured("r2", "shop", 6, 2), "2222222bbbb")
	put("main", measured("r3", "shop", 6, 64), "3333333cccc")
	put("main", measured("x1", "other", 6, 2), "")
	put("release/4.2", measured("r4", "shop", 6, 2), "")
	if again.Version != 2 || again.Machine != "virtual, 2 × EPYC, 8 GB" {
		t.Errorf("a reference that is made again = %+v; want version 2 of its machine", again)
	}
	for name, want := range map[string]string{
		"main@latest":        "r2", // r3 is of another machine
		"main@1":             "r1",
		"main@2222222":       "r2",
		"main@1111111aaaa":   "r1",
		"release/4.2@latest": "r4",
		"main@3":             "error: of this machine, which is virtual, 2 × EPYC, 8 GB: that of virtual, 64 × EPYC, 8 GB tells nothing of it",
		"main@22222":         "error: has no reference 22222",
		"main@9":             "error: has no reference 9",
		"trunk@latest":       "error: has no reference yet: make a run of it one, by appliance reference set trunk RUN",
		"main@":              "error: write BRANCH@latest",
		"../x@latest":        "error: write BRANCH@latest",
		"latest":             "error: write BRANCH@latest",
	} {
		got, err := b.ReferenceFor(ctx, measured("new", "shop", 6, 2), name)
		says, refused := strings.CutPrefix(want, "error: ")
		var wrong *WrongError
		if refused != (err != nil) || !refused && got.Run != want || refused && (!errors.As(err, &wrong) || !strings.Contains(err.Error(), says)) {
			t.Errorf("ReferenceFor(%s) = %s, %v; want %s", name, got.Run, err, want)
		}
	}
	boxed := measured("new", "shop", 6, 2)
	boxed.Environment.Box = &lab.BoxState{Calibration: &lab.Calibration{}}
	if got, err := b.ReferenceFor(ctx, boxed, "main@latest"); err != nil || got.Run != "r3" {
		t.Errorf("ReferenceFor() of a calibrated box = %s, %v; want the newest of any machine", got.Run, err)
	}
	running := measured("r9", "shop", 6, 2)
	running.State = store.StateRunning
	many := measured("r9", "shop", 6, 2)
	many.Plan.Pages = []lab.PlanPage{{Name: "cart", Page: "https://a.test/"}}
	for want, c := range map[string]struct {
		branch, revision string
		run              *lab.Run
	}{
		"is running: a reference":     {"main", "", running},
		"5 valid trials: a reference": {"main", "", measured("r9", "shop", 5, 2)},
		"0 valid trials of cart":      {"main", "", many},
		"branch \"-x\"":               {"-x", "", measured("r9", "shop", 6, 2)},
		"branch \"a..b\"":             {"a..b", "", measured("r9", "shop", 6, 2)},
		"revision: \"a b\"":           {"main", "a b", measured("r9", "shop", 6, 2)},
	} {
		var wrong *WrongError
		if _, err := b.PutReference(ctx, c.branch, c.run, c.revision, "ada"); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("PutReference(%s) = %v; want %q", c.branch, err, want)
		}
	}
	if name, err := b.ReferTo(ctx, "r2"); name != "main@2" || err != nil {
		t.Errorf("ReferTo(r2) = %q, %v; want main@2", name, err)
	}
	if err := b.RemoveReference(ctx, again.ID); err != nil {
		t.Error(err)
	}
	if name, err := b.ReferTo(ctx, "r2"); name != "" || err != nil || !errors.Is(b.RemoveReference(ctx, again.ID), store.ErrNotFound) {
		t.Errorf("ReferTo() of a reference that was removed = %q, %v; want none", name, err)
	}
	for i := range mostOfReference + 5 {
		put("main", measured(fmt.Sprintf("s%d", i), "shop", 6, 2), "")
	}
	if all, err := b.References(ctx, "shop", "main", 100); err != nil || len(all) != mostOfReference || all[0].Version != mostOfReference+8 {
		t.Errorf("References() = %d, %v; want the newest %d", len(all), err, mostOfReference)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := b.PutReference(gone, "main", measured("z", "shop", 6, 2), "", "ada"); err == nil {
		t.Error("a reference is kept after the end")
	}
}
