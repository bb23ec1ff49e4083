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
		"none":                  {change: func(r *lab.Run) { r.Comparison = nil }, status: exitCannot, says: "does not say"},
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
