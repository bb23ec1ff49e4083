package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/analysis/trace"
	"eidetic/analysis/trace/tracetest"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/experiment"
	"eidetic/internal/tell/timeline"
)

// TestTraces: a real Chromium and a real Firefox trace a load of the sample page; their clocks are joined to the box's,
// the work of the page's scripts is named, and report, timeline, export and files have it.
func TestTraces(t *testing.T) {
	needLab(t)
	testlab.NeedProgram(t, "firefox-esr")
	out := t.TempDir()
	plan := filepath.Join(out, "plan.yaml")
	const text = "page: https://www.shop.test/\nstill_s: 0.5\nlimit_s: 40\ntrials: 1\ntolerance_ms: 10000\ntrace_all: true\ntreatment:\n  browser: firefox-esr\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := finishCmd(t, appliance(t, "run", "--plan", plan, "--out", out))
	t.Log(got.out)
	dir, run := readRun(t, out)
	for _, trial := range run.Trials {
		name := filepath.Join(dir, "trials", store.TrialName(trial.Number))
		if trial.Trace == nil || trial.Trace.Void != "" || trial.Trace.BoundMS <= 0 || trial.Traced {
			t.Fatalf("trial %d: %+v, traced %t, %q; want a whole trace", trial.Number, trial.Trace, trial.Traced, trial.Invalid)
		}
		want := map[string]string{lab.Control: "Chromium", lab.Treatment: "Firefox"}[trial.Arm]
		if trial.Trace.Browser != want || trial.Trace.OffsetNS != 0 || !strings.Contains(trial.Trace.Clock, "CLOCK_MONOTONIC") {
			t.Errorf("trial %d: %+v; want %s, on the box's own clock", trial.Number, trial.Trace, want)
		}
		checkTrace(t, filepath.Join(name, trial.Files[experiment.TraceRole]), trial)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !bytes.Contains(page, []byte(`id="why"`)) {
		t.Errorf("the report does not say why (%v)", err)
	}
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	reader := timeline.NewReader(files)
	for _, trial := range run.Trials {
		tl := reader.Of(trial)
		if !slices.ContainsFunc(tl.Tracks, func(track trace.Track) bool { return track.Kind == trace.Browser && len(track.Events) > 10 }) {
			t.Errorf("the timeline of trial %d has no thread of the browser: %q", trial.Number, tl.Notes)
		}
		page := map[string]string{lab.Control: "Memory: renderer ", lab.Treatment: "Memory: Isolated Web"}[trial.Arm]
		if !slices.ContainsFunc(tl.Tracks, func(track trace.Track) bool { return track.Kind == trace.Memory && strings.HasPrefix(track.Name, page) }) {
			t.Errorf("the timeline of trial %d has no %sprocess: %q", trial.Number, page, tl.Notes)
		}
	}
	if steps := finishCmd(t, appliance(t, "export", "--format", "paths", dir)); steps.status != exitGood || !strings.HasPrefix(steps.out, "run,arm,") {
		t.Errorf("export --format paths: %d %s%s", steps.status, steps.out, steps.err)
	}
	exported := finishCmd(t, appliance(t, "export", "--format", "trace", dir))
	if n, err := tracetest.CheckChrome(strings.NewReader(exported.out)); err != nil || !strings.Contains(exported.out, `"cat":"browser"`) {
		t.Errorf("export --format trace: %d events, %v; want some of the browser", n, err)
	}
	readings := finishCmd(t, appliance(t, "export", "--format", "memory", dir))
	lines := strings.Split(strings.TrimSpace(readings.out), "\r\n")
	if last := strings.Split(lines[len(lines)-1], ","); len(lines) < 50 || len(last) != 8 || last[7] == "" {
		t.Errorf("export --format memory: %d lines, the last %q; want its share, too", len(lines), last)
	}
	if table := finishCmd(t, appliance(t, "export", "--format", "causes", dir)); table.status != exitGood || !strings.HasPrefix(table.out, "run,kind,") {
		t.Errorf("export --format causes: %d %s%s", table.status, table.out, table.err)
	}
}

// checkTrace reads a trial's trace: the page's own script worked, between the start and the last visual change.
func checkTrace(t *testing.T, name string, trial *lab.Trial) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]func(io.Reader) (*trace.Profile, error){"Chromium": trace.ReadChrome, "Firefox": trace.ReadGecko}[trial.Trace.Browser]
	p, err := read(z)
	if err != nil {
		t.Fatal(err)
	}
	script, threads := 0.0, map[string]float64{}
	from, to := trace.Window(trial)
	for _, w := range p.Work(from, to) {
		threads[w.Process+": "+w.Thread+": "+string(w.Group)] += w.MS
		if w.Main && strings.HasPrefix(w.URL, "https://www.shop.test/") {
			script += w.MS
		}
	}
	t.Logf("%s, %d stretches: %v", trial.Trace.Browser, len(p.Slices), threads)
	if script < 1 {
		t.Errorf("trial %d: %.1f ms of work for the page's own scripts in %v", trial.Number, script, threads)
	}
}
