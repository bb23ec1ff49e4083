package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// startApp carries a plan with an app out, and returns its run. Reasons of machines that are slow do not count.
func startApp(t *testing.T, text string) *lab.Run {
	t.Helper()
	out := t.TempDir()
	plan := filepath.Join(out, "plan.yaml")
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := finishCmd(t, appliance(t, "run", "--plan", plan, "--out", out))
	_, r := readRun(t, out)
	if len(r.Trials) == 0 {
		t.Fatalf("status %d: %s%s; want trials", got.status, got.out, got.err)
	}
	return r
}

// numbersOf are a trial's measurements by their names.
func numbersOf(trial *lab.Trial) map[string]float64 {
	all := map[string]float64{}
	for _, m := range trial.Measurements {
		all[m.Name] = m.Value
	}
	return all
}

// TestApp: a program that is no browser is filmed from its start, typed into, and left alone.
func TestApp(t *testing.T) {
	needLab(t)
	testlab.NeedProgram(t, "mousepad")
	r := startApp(t, `app: {command: mousepad --disable-server, viewport: 640x480}
still_s: 0.3
limit_s: 40
trials: 1
steps:
  - {name: start, launch: app, window: true, end: changed and still 300ms}
  - {name: write, type: The quick brown fox, end: changed and still 300ms}
  - {name: rest, idle: 300ms}
`)
	if !strings.HasPrefix(r.Environment.Browser, "mousepad") || r.Page != "app:mousepad" {
		t.Errorf("the run is of %q, page %q; want mousepad and app:mousepad", r.Environment.Browser, r.Page)
	}
	for _, trial := range r.Trials {
		m := numbersOf(trial)
		if trial.Ended != lab.EndSteps || trial.Misses != 0 {
			t.Errorf("trial %d: ended by %q, %d misses: %q", trial.Number, trial.Ended, trial.Misses, trial.Invalid)
		}
		first, end := m["start/first_window_ms"], m["start/time_to_end_ms"]
		if first <= 0 || end < first || m["start/window_pixels"] < 640*480/10 || m["write/first_feedback_ms"] <= 0 {
			t.Errorf("trial %d measured %v; want a first window before the end, its size, and the text", trial.Number, m)
		}
		if mb, ok := m["rest/program_memory_mb"]; !ok || mb < 2 || mb > 2000 {
			t.Errorf("trial %d: %v MB of memory in %v", trial.Number, mb, m)
		}
		if share, ok := m["rest/idle_processor_percent"]; !ok || share < 0 || share > 800 {
			t.Errorf("trial %d: %v %% of a processor in %v", trial.Number, share, m)
		}
	}
}

// TestAppsCompared: two programs take turns, each from its own start, cold and as they have run before.
func TestAppsCompared(t *testing.T) {
	testlab.Long(t, "a second program, and a second state")
	needLab(t)
	testlab.NeedProgram(t, "mousepad")
	testlab.NeedProgram(t, "xedit")
	for _, state := range []string{lab.StateAppCold, lab.StateAppWarm} {
		r := startApp(t, `state: `+state+`
app: {command: mousepad --disable-server}
treatment: {app: {command: xedit}}
still_s: 0.5
limit_s: 40
trials: 2
`)
		met := map[string]int{}
		for _, trial := range r.Trials {
			if trial.Ended == lab.EndSteps && numbersOf(trial)["start/window_stable_ms"] > 0 {
				met[trial.Arm]++
			} else {
				t.Errorf("%s, trial %d of %s: ended by %q: %q", state, trial.Number, trial.Arm, trial.Ended, trial.Invalid)
			}
		}
		if met[lab.Control] < 2 || met[lab.Treatment] < 2 {
			t.Errorf("%s: %v trials of the arms came to their end; want 2 of each", state, met)
		}
	}
}
