package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/compare"
	"eidetic/internal/tell/report/reporttest"
)

// writeResult puts a run's file where compare finds it.
func writeResult(t *testing.T, path string, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// later is a run whose loads are slower by so many ms, in another browser.
func later(trials int, slower float64) *lab.Run {
	run := reporttest.Run(2, trials)
	run.ID = "20261122-091400-demo"
	run.Environment.Browser = "Chromium 157.0.1.2"
	for _, trial := range run.Trials {
		for i, m := range trial.Measurements {
			if m.Unit == "ms" {
				trial.Measurements[i].Value += slower
			}
		}
	}
	return run
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	old := writeResult(t, filepath.Join(dir, "old", "run.json"), reporttest.Run(1, 12))
	same := writeResult(t, filepath.Join(dir, "same", "report.json"), store.NewReport(later(12, 0)))
	slower := writeResult(t, filepath.Join(dir, "slower", "report.json"), store.NewReport(later(12, 400)))
	few := writeResult(t, filepath.Join(dir, "few", "run.json"), later(4, 400))
	going := later(12, 0)
	going.State = store.StateRunning
	unfinished := writeResult(t, filepath.Join(dir, "going", "run.json"), going)
	huge := writeResult(t, filepath.Join(dir, "huge", "run.json"), later(6, 1e300))
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte("{\n\"id\": 3}"), 0o600); err != nil {
		t.Fatal(err)
	}
	calibrated := func(name, box string, slower float64) string {
		run := later(12, slower)
		run.ID, run.Plan.Device = name, "virtual"
		level := 800 + slower
		run.Environment.Box = &lab.BoxState{Name: box, ID: box, Health: "drifting", Calibration: &lab.Calibration{
			Reference: "r", Until: run.Wall, Runs: 10, Levels: []lab.CalibrationLevel{
				{Metric: "speed_index_ms", Unit: "ms", Median: level, Between: 8, Within: 20, Runs: 10, Trials: 8},
			},
		}}
		return writeResult(t, filepath.Join(dir, name, "run.json"), run)
	}
	ofOne, ofTwo := calibrated("one", "lab-1", 0), calibrated("two", "lab-2", 400)
	for name, c := range map[string]struct {
		args   []string
		status int
		says   []string
	}{
		"slower":        {[]string{"--reference", old, slower}, exitFailed, []string{"The run is slower than the reference, by more than 5 %: SpeedIndex +393 ms", "11 and 11 trials", "reference", "browser: Chromium 142.0.7444.59, then Chromium 157.0.1.2"}},
		"of a folder":   {[]string{"--reference", filepath.Dir(old), slower}, exitFailed, []string{"slower"}},
		"the same":      {[]string{"--reference", old, same}, exitGood, []string{"No difference of more than 5 % from the reference was found"}},
		"in the margin": {[]string{"--reference", old, "--margin", "80", slower}, exitGood, []string{"No difference of more than 80 %"}},
		"faster":        {[]string{"--reference", slower, old}, exitGood, []string{"The run is faster"}},
		"few":           {[]string{"--reference", old, few}, exitCannot, []string{"Too few trials", "whether the run is slower is not known", "make the runs with more trials"}},
		"going on":      {[]string{"--reference", old, unfinished}, exitCannot, []string{"run 20261122-091400-demo: it is running: only one that is done can be compared"}},
		"two boxes":     {[]string{"--reference", ofOne, ofTwo}, exitGood, []string{"adjusted to lab-1/virtual: lab-2/virtual measures +50 %", "run, adjusted", "Warning: lab-2/virtual was drifting when run two ended"}},
		"uncalibrated":  {[]string{"--reference", old, ofTwo}, exitCannot, []string{"by how much these differ is not known", "compare runs of one box"}},
		"broken":        {[]string{"--reference", old, broken}, exitUsage, []string{"broken.json is not a run.json or report.json: line 2: "}},
		"overflow":      {[]string{"--reference", old, huge}, exitCannot, []string{"which nothing takes"}},
		"no file":       {[]string{"--reference", filepath.Join(dir, "nope"), slower}, exitUsage, []string{"--reference: ", "no such file"}},
		"no reference":  {[]string{slower}, exitUsage, []string{"--reference"}},
		"margin":        {[]string{"--reference", old, "--margin", "NaN", slower}, exitUsage, []string{"--margin NaN: a percentage from 0 to 1000"}},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			status := run(t.Context(), append([]string{"compare"}, c.args...), &streams{strings.NewReader(""), &said, &said})
			if status != c.status {
				t.Errorf("status %d, want %d: %s", status, c.status, &said)
			}
			if name == "slower" {
				c.says = append(c.says, exampleOutput(t)...)
			}
			for _, want := range c.says {
				if !strings.Contains(said.String(), want) {
					t.Errorf("it says %q, without %q", &said, want)
				}
			}
		})
	}
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"compare", "--json", "--reference", old, slower}, &streams{strings.NewReader(""), &out, &errs})
	var got compare.Between
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || status != exitFailed {
		t.Fatalf("status %d, %v: %s%s", status, err, &out, &errs)
	}
	if got.Reference != "20261121-091400-demo" || got.Run != "20261122-091400-demo" || got.Margin != 5 ||
		got.Comparison.Verdict != lab.Slower ||
		len(got.Different) == 0 {
		t.Errorf("%+v", got)
	}
}

// exampleOutput is what the guide says that compare prints, line by line.
func exampleOutput(t *testing.T) []string {
	t.Helper()
	guide, err := os.ReadFile("../../docs/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(guide), "appliance compare --reference before/report.json after/report.json\n```\n\n```\n")
	block, _, found := strings.Cut(after, "```")
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	if !found || len(lines) < 4 {
		t.Fatalf("the guide's example is not where it was: %q", block)
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "…" })
}
