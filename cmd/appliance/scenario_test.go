package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// TestScenarioSteps carries out, in one trial, what a step can do besides pointing at pixels: an element by
// its selector, a later page, pings, another start of the browser, a window, and an idle time.
func TestScenarioSteps(t *testing.T) {
	needLab(t)
	out := t.TempDir()
	plan := filepath.Join(out, "plan.yaml")
	const text = `still_s: 0.5
limit_s: 40
trials: 1
inject: mine.js
browser: {name: chromium, viewport: 900x600}
steps:
  - {name: open, open: "https://www.shop.test/tricks/consent"}
  - {name: consent, click: "css #accept"}
  - {name: later, open: "https://www.shop.test/tricks/pad?delay=20"}
  - {name: pad, click: "340,360", pings: 3, echo: 2, region: "40,160,600,400"}
  - {name: tab, launch: "https://www.shop.test/tricks/dialog", end: "changed and colour #123456 in 1,592,8,6 and still 500ms"}
  - {name: sizes, click: "css #open", window: true}
  - {name: rest, idle: 300ms}
`
	const script = "addEventListener('DOMContentLoaded', () => { const d = document.createElement('div');\n" +
		"d.style = 'position:fixed;left:0;bottom:0;width:10px;height:10px;background:#123456'; document.body.append(d); });\n"
	for file, content := range map[string]string{plan: text, filepath.Join(out, "mine.js"): script} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := finishCmd(t, appliance(t, "run", "--plan", plan, "--out", out))
	t.Log(got.out, got.err)
	content, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatalf("status %d: %s%s: %v", got.status, got.out, got.err, err)
	}
	var report store.Report
	if err := json.Unmarshal(content, &report); err != nil || len(report.Trials) == 0 {
		t.Fatalf("%d trials, %v", len(report.Trials), err)
	}
	for _, trial := range report.Trials {
		steps := map[string]store.ReportStep{}
		for _, s := range trial.Steps {
			steps[s.Name] = s
		}
		if trial.Ended != lab.EndSteps || trial.Misses != 0 || len(steps) != 7 {
			t.Fatalf("trial %d ended by %q after %d steps with %d misses: %q", trial.Number, trial.Ended, len(steps), trial.Misses, trial.Invalid)
		}
		if s := steps["consent"]; !strings.HasPrefix(s.FoundBy, "#accept: ") || s.AimY < 500 || s.AimY > 599 {
			t.Errorf("consent was aimed at %d,%d, found by %q; want the button at the bottom of 900×600", s.AimX, s.AimY, s.FoundBy)
		}
		if s := steps["pad"]; len(s.Answers) != 3 || s.Metrics["response_ms"] < 20 || s.Metrics["response_settled_ms"] < s.Metrics["response_ms"] {
			t.Errorf("pad: %d answers, %v; want three, none before 20 ms", len(s.Answers), s.Metrics)
		}
		if s := steps["pad"]; len(s.Echoes) != 2 || s.Metrics["response_echo_ms"] <= 0 || s.Echoes[0].High < s.Echoes[0].MS {
			t.Errorf("pad: echoes %+v, %v; want two of Caps Lock", s.Echoes, s.Metrics)
		}
		if s := steps["sizes"]; len(s.Window) != 4 || s.Window[2] < 300 || s.Window[2] > 800 || s.Metrics["window_last_change_ms"] <= 0 {
			t.Errorf("sizes: window %v, %v; want the dialogue", s.Window, s.Metrics)
		}
		if s := steps["rest"]; s.Metrics["idle_fps"] != 0 || len(s.Restless) > 0 {
			t.Errorf("rest: %v, restless %q; want a screen that rests", s.Metrics, s.Restless)
		}
	}
}
