package execute

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/report/reporttest"
)

// cut makes the folder of a run whose process was killed: its state is running, it has no
// results, and its lock is free.
func cut(t *testing.T, root, id string) string {
	t.Helper()
	run := reporttest.Compared(7, 8, 800)
	run.ID, run.State, run.Summary, run.Comparison = id, store.StateRunning, []lab.Summary{}, nil
	run.Plan.Seed = 7
	folder, err := store.Create(root, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	return folder.Path()
}

// An interrupted run gets the results and the report of its completed trials.
func TestRunThatWasCutOff(t *testing.T) {
	root := t.TempDir()
	dir := cut(t, root, "a")
	damaged := cut(t, root, "damaged") // one trial.json is damaged
	if err := os.WriteFile(filepath.Join(damaged, "trials", "003", "trial.json"), []byte(`{"number":3,`), 0o600); err != nil {
		t.Fatal(err)
	}
	goesOn, err := store.Create(root, &lab.Run{ID: "held", State: store.StateRunning})
	if err != nil {
		t.Fatal(err)
	}
	defer goesOn.Close()
	runs, err := store.Open(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	series, err := os.ReadFile(filepath.Join(dir, "trials", "001", "trial.json"))
	if err != nil {
		t.Fatal(err)
	}
	ConcludeAll(t.Context(), runs, nil, slog.New(slog.DiscardHandler))
	for _, dir := range []string{dir, damaged} {
		run, err := store.ReadRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		c := run.Comparison
		if run.State != store.StateInterrupted || run.Error != CutOff || len(run.Trials) != 16 || len(run.Summary) == 0 || c == nil {
			t.Fatalf("%s: %s %q, %d trials, %d summaries, %v", run.ID, run.State, run.Error, len(run.Trials), len(run.Summary), c)
		}
		if !c.Partial || c.Seed != 7 || c.Verdict != lab.Slower || !strings.Contains(c.Headline, "ended early") {
			t.Errorf("%s: %+v", run.ID, c)
		}
		page, err := os.ReadFile(filepath.Join(dir, report.FileName))
		if err != nil || !strings.Contains(string(page), c.Headline) || !strings.Contains(string(page), "before all that were planned") {
			t.Errorf("%s: the report (%v) does not say what was found, and of what", run.ID, err)
		}
	}
	if now, err := os.ReadFile(filepath.Join(dir, "trials", "001", "trial.json")); err != nil || string(now) != string(series) {
		t.Errorf("Conclude changed a trial.json (%v)", err)
	}
	if run, err := store.ReadRun(goesOn.Path()); err != nil || run.State != store.StateRunning {
		t.Errorf("the run in progress: %+v (%v)", run, err)
	}
	if left, err := runs.CutOff(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
	// A second process that concludes the run later changes nothing.
	if err := Conclude(dir, "again"); err != nil {
		t.Error(err)
	}
	if run, err := store.ReadRun(dir); err != nil || run.Error != CutOff {
		t.Errorf("%+v (%v)", run, err)
	}
}

// A run whose recording failed has a report that says why.
func TestFailedRunHasAReport(t *testing.T) {
	x := &Execution{Root: t.TempDir(), begun: time.Now(), run: &lab.Run{ID: "1", State: store.StateRunning}}
	var err error
	if x.folder, err = store.Create(x.Root, x.run); err != nil {
		t.Fatal(err)
	}
	defer x.folder.Close()
	if err := x.finish(t.Context(), os.ErrDeadlineExceeded); err == nil {
		t.Error("a run that failed has no error")
	}
	page, err := os.ReadFile(filepath.Join(x.folder.Path(), report.FileName))
	if err != nil || !strings.Contains(string(page), "This run failed: "+os.ErrDeadlineExceeded.Error()) {
		t.Errorf("the report (%v) does not say why", err)
	}
}

// TestThrownAwayNamesWhatToMend: a trial that was made again, since another was less exact, is no fault of anything.
func TestThrownAwayNamesWhatToMend(t *testing.T) {
	again := func() *lab.Trial {
		return &lab.Trial{Invalid: []string{lab.Superseded + "trial 1 is of the same place in the order, and has less blur"}}
	}
	lost := func() *lab.Trial {
		return &lab.Trial{Invalid: []string{"frames were lost: 3"}, Faults: []string{"frames were lost: 3"}}
	}
	good := func() *lab.Trial { return &lab.Trial{Valid: true} }
	for _, c := range []struct {
		trials []*lab.Trial
		want   string
	}{
		{[]*lab.Trial{good(), again(), again()}, ""},
		{[]*lab.Trial{good(), again(), again(), lost()}, "1 of 4 trials is invalid and in no number, and 2 were replaced by trials with less blur; the other 1 holds. What to mend first, the reason of 1: frames were lost."},
		{[]*lab.Trial{lost(), lost()}, "2 of 2 trials are invalid and in no number. What to mend first, the reason of 2: frames were lost."},
	} {
		if got := thrownAway(c.trials, len(c.trials), valid(c.trials)); got != c.want {
			t.Errorf("thrownAway(%d trials) = %q; want %q", len(c.trials), got, c.want)
		}
	}
}
