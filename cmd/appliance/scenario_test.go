package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// TestScenarioSteps carries out, in one trial, what a step can do besides pointing at pixels: an element by
// its selector, a later page, pings, another start of the browser, a window, an idle time, and a file.
func TestScenarioSteps(t *testing.T) {
	needLab(t)
	out := t.TempDir()
	plan := filepath.Join(out, "plan.yaml")
	text := `still_s: 0.5
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
	text += strings.Replace(chooseStep, "850,20", "css .upload", 1)
	const script = "addEventListener('DOMContentLoaded', () => { const d = document.createElement('div');\n" +
		"d.style = 'position:fixed;left:0;bottom:0;width:10px;height:10px;background:#123456'; document.body.append(d); });\n" +
		chooseScript
	for file, content := range map[string]string{
		plan: text, filepath.Join(out, "mine.js"): script, filepath.Join(out, "a b.txt"): chosenText,
	} {
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
		if trial.Ended != lab.EndSteps || trial.Misses != 0 || len(steps) != 8 {
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

// A step that chooses a file, by an invisible button in a shadow tree in a corner of every page, which becomes blue when it has got what
// lies beside the plan.
const (
	chosenText   = "the file's content"
	chooseStep   = "  - {name: file, choose: a b.txt, at: \"850,20\", end: \"colour #0000ff in 50%,50%,10%,10% and still 300ms\"}\n"
	chooseScript = "addEventListener('DOMContentLoaded', () => { const f = document.createElement('input'); f.type = 'file';\n" +
		"f.style = 'position:fixed;z-index:9;right:0;top:0;width:100px;height:40px;opacity:0'; f.className = 'upload';\n" +
		"document.body.append(document.createElement('div')); document.body.lastChild.attachShadow({mode: 'open'}).append(f);\n" +
		"f.onchange = async () => { if (f.files[0].name === 'a b.txt' && await f.files[0].text() === \"" + chosenText + "\")\n" +
		"{ const d = document.createElement('div'); d.style = 'position:fixed;inset:0;background:#00f';\n" +
		"document.body.append(d); } }; });\n"
)

// TestChooseFileInFirefox: the same dialogue in the other browser. TestScenarioSteps tries Chromium.
func TestChooseFileInFirefox(t *testing.T) {
	testlab.Long(t, "a second browser")
	needLab(t)
	testlab.NeedProgram(t, "firefox-esr", "firefox")
	out := t.TempDir()
	plan := filepath.Join(out, "plan.yaml")
	const text = "still_s: 0.5\nlimit_s: 40\ntrials: 1\ninject: mine.js\nbrowser: {name: firefox, viewport: 900x600}\nsteps:\n" +
		"  - {name: open, open: \"https://www.shop.test/tricks/pad\"}\n" + chooseStep
	for file, content := range map[string]string{
		plan: text, filepath.Join(out, "mine.js"): chooseScript, filepath.Join(out, "a b.txt"): chosenText,
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := finishCmd(t, appliance(t, "run", "--plan", plan, "--out", out)); got.status != 0 {
		t.Errorf("status %d: %s%s; want 0", got.status, got.out, got.err)
	}
}
