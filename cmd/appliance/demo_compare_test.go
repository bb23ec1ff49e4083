package main

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestDemoComparesLinks: both arms are loaded from one recording, each over its
// own link, and the run says that one pair tells nothing. Whether the trials
// count is the machine's affair.
func TestDemoComparesLinks(t *testing.T) {
	needLab(t)
	out := t.TempDir()
	got := finishCmd(t, appliance(t, "demo", "--link", "native", "--treatment-link", "lte", "--trials", "1", "--no-serve", "--out", out))
	t.Log(got.out, got.err)
	_, run := readRun(t, out)
	arms := map[string]*lab.Trial{}
	for _, trial := range run.Trials {
		arms[trial.Arm] = trial
	}
	control, treatment := arms[lab.Control], arms[lab.Treatment]
	if len(run.Trials) < 2 || control == nil || treatment == nil {
		t.Fatalf("the run is %s with %d trials: %s", run.State, len(run.Trials), run.Error)
	}
	if control.Misses+treatment.Misses != 0 || control.FinalFrame != treatment.FinalFrame {
		t.Errorf("%d and %d misses, final pictures %s and %s", control.Misses, treatment.Misses, control.FinalFrame, treatment.FinalFrame)
	}
	c := run.Comparison
	if c == nil || c.Verdict != lab.Unknown || c.Control != "link native" || c.Treatment != "link lte" {
		t.Errorf("the comparison is %+v", c)
	}
	if got.status != exitCannot || !strings.Contains(got.err, "not known") && run.State == "done" {
		t.Errorf("status %d: a run that tells nothing is not good", got.status)
	}
}
