package main

import (
	"os"
	"path/filepath"
	"testing"

	"eidetic/internal/lab"
)

// TestNoisyScreen: a load whose screen is filmed through a grabber with noise begins, comes to rest, and is measured.
func TestNoisyScreen(t *testing.T) {
	needLab(t)
	out := t.TempDir()
	plan := filepath.Join(out, "plan.yaml")
	const text = `name: noisy screen
page: https://www.shop.test/
still_s: 0.5
limit_s: 40
trials: 1
tolerance_ms: 2000
screen: {through: "noise=1"}
`
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := finishCmd(t, appliance(t, "run", "--plan", plan, "--out", out))
	t.Log(got.out)
	_, r := readRun(t, out)
	if len(r.Trials) == 0 {
		t.Fatalf("status %d: %s%s; want a trial", got.status, got.out, got.err)
	}
	for _, trial := range r.Trials {
		if trial.Ended != lab.EndStable || len(trial.Measurements) == 0 {
			t.Errorf("trial %d ended by %q with %d measurements: %q; want one that comes to rest", trial.Number, trial.Ended, len(trial.Measurements), trial.Invalid)
		}
		if c := trial.Capture; c == nil || c.Noise == nil || c.Noise.Pixel < 2 {
			t.Errorf("trial %d tells no noise of its screen: %+v", trial.Number, c)
		}
	}
}
