package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// TestBadPlans: each is refused before anything starts, with file, line and what to do.
func TestBadPlans(t *testing.T) {
	dir := t.TempDir()
	const head = "steps:\n  - open: https://www.shop.test/store/\n"
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"unknown field":   {head + "  - klick: 1,2\n", []string{"[3:5]", "klick"}},
		"no target":       {head + "  - name: pay\n    click: there\n", []string{"plan.yaml:4", "steps[1].click", "picture FILE"}},
		"nothing to do":   {head + "  - name: pay\n", []string{"plan.yaml:3", "does nothing", "click"}},
		"no picture":      {head + "  - click: picture lamp.png\n", []string{"plan.yaml:3", "lamp.png", "beside the plan"}},
		"two of a name":   {head + "  - {name: a, key: x}\n  - {name: a, key: y}\n", []string{"plan.yaml:4", "name of its own"}},
		"no end":          {head + "  - {key: x, end: soon}\n", []string{"plan.yaml:3", "none of still"}},
		"browser":         {head + "browser: netscape\n", []string{"plan.yaml:3", "chromium, firefox"}},
		"first no page":   {"steps:\n  - key: x\npage: https://www.shop.test/\n", []string{"plan.yaml:2", "open: URL"}},
		"css in firefox":  {head + "  - click: \"css #buy\"\nbrowser: firefox\n", []string{"plan.yaml:3", "aim at a picture", "browser: chromium"}},
		"open in firefox": {head + "  - open: https://www.shop.test/\nbrowser: firefox\n", []string{"plan.yaml:3", "click a link"}},
		"state":           {head + "state: app-cold\n", []string{"plan.yaml:3", "begin the steps with launch"}},
		"script":          {head + "inject: none.js\n", []string{"plan.yaml:3", "none.js", "not beside the plan"}},
		"viewport":        {head + "browser: {name: chromium, viewport: wide}\n", []string{"plan.yaml:3", "WIDTHxHEIGHT"}},
		"extension":       {head + "browser: {name: chromium, extensions: [/none]}\n", []string{"plan.yaml:3", "manifest.json"}},
		"pings":           {head + "  - {key: a, pings: 3, end: still 1s}\n", []string{"plan.yaml:3", "leave out its end"}},
		"page twice":      {"pages:\n  - page: https://a.test/x\n  - page: https://b.test/x\n", []string{"plan.yaml:3", "pages[1].name", "a name of its own"}},
		"user's cookie":   {"page: https://a.test/\nusers:\n  - name: a\n    cookies:\n      - {name: s, value: \"1; x\"}\n", []string{"plan.yaml:5", "users[0].cookies[0].value"}},
		"user's viewport": {"page: https://a.test/\nusers:\n  - {name: a, viewport: 9x9}\n", []string{"plan.yaml:3", "each side from 100 to 4096"}},
		"page's step":     {"pages:\n  - name: a\n    steps:\n      - open: https://a.test/\n      - click: there\n", []string{"plan.yaml:5", "pages[0].steps[1].click"}},
		"ten thousand":    {"pages:\n" + strings.Repeat("- page: https://a.test/\n", 2000), []string{"pages: 2000 pages; at most 50", "divide the plan"}},
		"browser's file":  {head + "browser: {command: /no/such/browser}\n", []string{"/no/such/browser", "no such file"}},
	} {
		file := filepath.Join(dir, "plan.yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		status := run(t.Context(), []string{"run", "--plan", file, "--out", filepath.Join(dir, "out")}, &streams{strings.NewReader(""), &said, &said})
		if status != exitUsage {
			t.Errorf("%s: status %d, want %d: %s", name, status, exitUsage, said.String())
		}
		for _, want := range c.says {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%s: %q is missing in:\n%s", name, want, said.String())
			}
		}
	}
}

// TestJourney carries out three steps of the shop's journey in one trial, and judges them again.
func TestJourney(t *testing.T) {
	needLab(t)
	out := t.TempDir()
	plan := filepath.Join(out, "plan.yaml")
	const text = `name: short journey
still_s: 0.5
limit_s: 40
trials: 1
steps:
  - {name: open, open: "https://www.shop.test/store/"}
  - name: search
    mask: ["180,10,300,52"]
    steps:
      - click: 50%,5%
      - type: table
  - {name: product, click: "15%,30%", end: changed and still 500ms}
`
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := finishCmd(t, appliance(t, "run", "--plan", plan, "--out", out))
	t.Log(got.out)
	dir, r := readRun(t, out)
	if len(r.Trials) == 0 {
		t.Fatalf("status %d: %s%s; want trials", got.status, got.out, got.err)
	}
	content, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report store.Report
	if err := json.Unmarshal(content, &report); err != nil {
		t.Fatal(err)
	}
	for _, trial := range report.Trials {
		if trial.Misses != 0 || trial.Ended != lab.EndSteps {
			t.Errorf("trial %d: %d misses, ended by %q: %q", trial.Number, trial.Misses, trial.Ended, trial.Invalid)
		}
		names := map[string]store.ReportStep{}
		for _, s := range trial.Steps {
			names[s.Name] = s
		}
		for name, end := range map[string]string{"open": "changed+still+network", "search": "changed+still+network", "product": "changed+still"} {
			s := names[name]
			if s.TrialStep == nil || s.End != end || s.Metrics["time_to_end_ms"] <= 0 || s.Requests == 0 || s.FinalFrame == "" {
				t.Errorf("trial %d, step %s: %+v; want the end %s, its time, requests and a last picture", trial.Number, name, s, end)
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !bytes.Contains(page, []byte(`id="step-1"`)) {
		t.Errorf("the report has no steps (%v)", err)
	}

	other := strings.Replace(text, "end: changed and still 500ms", "end: changed", 1)
	if err := os.WriteFile(plan, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	again := finishCmd(t, appliance(t, "analyze", "--plan", plan, dir))
	if again.status != exitGood || !strings.Contains(again.out, "changed (changed)") {
		t.Errorf("analyze --plan: status %d, %s%s; want the changed end", again.status, again.out, again.err)
	}
}
