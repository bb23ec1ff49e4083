package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/internal/tell/terminal"
)

// What a run stands for: nothing else than a regression is status 1, and what
// tells nothing is not taken for good.
func TestGate(t *testing.T) {
	invalid := func(arm string) func(*lab.Run) {
		return func(r *lab.Run) {
			for _, trial := range r.Trials {
				if trial.Arm == arm {
					trial.Valid = false
				}
			}
		}
	}
	found := func(verdict string) func(*lab.Run) {
		return func(r *lab.Run) {
			r.Comparison = &lab.Comparison{Verdict: verdict, Detail: "3 pairs\x1b[2J of valid trials"}
		}
	}
	for name, c := range map[string]struct {
		alone  bool // has no second arm
		change func(*lab.Run)
		status int
		says   string
	}{
		"no difference":         {change: found(lab.NoChange)},
		"faster":                {change: found(lab.Faster)},
		"slower":                {change: found(lab.Slower), status: exitFailed},
		"mixed":                 {change: found(lab.Mixed), status: exitFailed},
		"unknown":               {change: found(lab.Unknown), status: exitCannot, says: "3 pairs\uFFFD[2J of valid trials; ask for more trials with --trials"},
		"a word of tomorrow":    {change: found("sideways"), status: exitCannot, says: "not known"},
		"none":                  {change: func(r *lab.Run) { r.Comparison = nil }, status: exitCannot, says: "its comparison is missing"},
		"control is invalid":    {change: invalid(lab.Control), status: exitCannot, says: "no trial of the control"},
		"treatment is invalid":  {change: invalid(lab.Treatment), status: exitCannot, says: "no trial of the treatment"},
		"failed":                {change: func(r *lab.Run) { r.State, r.Error = store.StateFailed, "no\x07way" }, status: exitCannot, says: "no\uFFFDway"},
		"interrupted":           {change: func(r *lab.Run) { r.State = store.StateInterrupted }, status: exitCannot, says: "interrupted"},
		"one arm":               {alone: true, change: func(r *lab.Run) { r.Comparison = nil }},
		"one arm, none counts":  {alone: true, change: invalid(lab.Control), status: exitCannot, says: "no trial of the control"},
		"slower, and cut short": {change: func(r *lab.Run) { found(lab.Slower)(r); r.State = store.StateInterrupted }, status: exitCannot, says: "interrupted"},
	} {
		run := reporttest.Compared(1, 6, 0)
		c.change(run)
		err := gate(run, !c.alone)
		said := ""
		var exit *exitError
		if errors.As(err, &exit) && exit.err != nil {
			said = exit.Error()
		}
		if statusOf(err) != c.status || !strings.Contains(said, c.says) || (said == "") != (c.says == "") {
			t.Errorf("%s: status %d, %q; want %d, %q", name, statusOf(err), said, c.status, c.says)
		}
	}
}

// A budget that is not kept is status 1, and one of which nothing can be said has a status of its own. A regression
// comes first, and so does what is not known of the comparison.
func TestGateOfBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		low, high float64 // of the treatment's median
		n         int
		verdict   string
		status    int
		says      string
		printed   string
	}{
		"within":               {900, 1000, 10, lab.NoChange, exitGood, "", "SpeedIndex of the treatment is within its budget of 1000 ms: 950 ms"},
		"over":                 {1001, 1100, 10, lab.NoChange, exitFailed, "", "SpeedIndex of the treatment is over its budget of 1000 ms"},
		"over, not compared":   {1001, 1100, 10, lab.Unknown, exitFailed, "", "is over its budget"},
		"not known":            {990, 1010, 10, lab.Faster, exitUnsure, "cannot be said with this many trials: 1000 ms (95 % interval 990 ms … 1010 ms); ask for more", "cannot be said"},
		"few trials":           {100, 101, 5, lab.NoChange, exitUnsure, "5 are valid and have it, and at least 6 are needed", "cannot be said"},
		"not known, slower":    {990, 1010, 10, lab.Slower, exitFailed, "", "cannot be said"},
		"not known, no answer": {990, 1010, 10, lab.Unknown, exitCannot, "whether the treatment is slower is not known", "cannot be said"},
	} {
		run := reporttest.Compared(1, 6, 0)
		run.Comparison.Verdict, run.Plan.Budgets = c.verdict, map[string]lab.Budget{"speed_index_ms": {Max: 1000}}
		run.Summary = []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 10, Median: 5000, Low: 5000, High: 5000},
			{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Treatment, N: c.n, Median: (c.low + c.high) / 2, Low: c.low, High: c.high}}
		err := gate(run, true)
		said := ""
		var exit *exitError
		if errors.As(err, &exit) && exit.err != nil {
			said = strings.ReplaceAll(exit.Error(), "\u202f", "")
		}
		if statusOf(err) != c.status || !strings.Contains(said, c.says) || (said == "") != (c.says == "") {
			t.Errorf("%s: status %d, %q; want %d, %q", name, statusOf(err), said, c.status, c.says)
		}
		var out bytes.Buffer
		to := terminal.New(&out)
		terminal.Found(&to, run, true)
		if text := strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "\u202f", "")), " "); !strings.Contains(text, c.printed) {
			t.Errorf("%s: printed %q; want %q", name, text, c.printed)
		}
		if line := terminal.ScriptLine(run, ""); !strings.Contains(line, " budgets=") {
			t.Errorf("%s: the line for scripts is %q; want its budgets", name, line)
		}
	}
}

// A demo none of whose trials counts is not mistaken for a regression, and
// names the report that has the reasons.
func TestDemoWithoutAValidTrial(t *testing.T) {
	needLab(t)
	out := t.TempDir()
	got := finishCmd(t, appliance(t, "demo", "--live", "--trials", "1", "--limit", "300ms", "--still", "200ms", "--no-serve", "--out", out))
	dir, run := readRun(t, out)
	file := filepath.Join(out, "runs", run.ID, "report.html")
	if got.status != exitCannot || !strings.Contains(got.err, "no trial was valid") || !strings.Contains(got.out, "from disk: "+file+"\n") {
		t.Errorf("status %d\n%s%s", got.status, got.out, got.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "report.html")); err != nil {
		t.Error(err)
	}
}

// A recording that holds nothing does not replace one that is good, and leaves no file.
func TestForcedRecordingIsJudgedFirst(t *testing.T) {
	good := shopArchive(t)
	before, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	record := listens(t, "record", "--archive", good, "--force", "--proxy", "127.0.0.1:0", "--ca-dir", t.TempDir())
	status, said := record.interrupt(t)
	rejected := filepath.Join(filepath.Dir(good), ".new-"+filepath.Base(good))
	if status != exitFailed || !strings.Contains(said, "nothing was recorded") || !strings.Contains(said, good+" is as it was") ||
		strings.Contains(said, rejected) {
		t.Errorf("status %d: %s", status, said)
	}
	if after, err := os.ReadFile(good); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the good recording is gone: %d bytes, %v", len(after), err)
	}
	if _, err := os.Stat(rejected); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat the empty recording: %v; want none", err)
	}
}
