package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// run.json and report.json give the same numbers and facts.
func TestDecodeResult(t *testing.T) {
	run := sample("20261121-091400-demo", StateDone)
	run.Trials[0].Measurements = []lab.Measurement{{Name: "speed_index_ms", Value: 912.5, Unit: "ms"},
		{Name: "unique_frames", Value: 61, Unit: "frames"}}
	run.Summary = []lab.Summary{{Metric: "unique_frames", Unit: "frames", Arm: lab.Control, N: 1}}
	for name, v := range map[string]any{"run.json": run, "report.json": NewReport(run)} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeResult(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		trial := got.Trials[0]
		if got.ID != run.ID || got.State != StateDone || trial.Arm != run.Trials[0].Arm || trial.Valid != run.Trials[0].Valid {
			t.Errorf("%s: DecodeResult() = %+v; want the ID, state and trial of the run", name, got)
		}
		if ms := trial.Measurements; len(ms) != 2 || ms[0].Name != "speed_index_ms" || ms[0].Value != 912.5 || ms[0].Unit != "ms" ||
			ms[1].Unit != "frames" {
			t.Errorf("%s: measurements = %+v; want speed_index_ms and unique_frames", name, ms)
		}
		want, found := Facts(run), Facts(got)
		if len(want) != len(found) || found["page"] != run.Page {
			t.Errorf("%s: Facts() = %v; want %v", name, found, want)
		}
	}
}

func TestDecodeResultRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "unexpected end",
		"{\n\"schema\": 3}":              "line 2: ",
		`{"schema": "eidetic/report/9"}`: "another version",
		`{"schema": "eidetic/report/2"}`: "is not a run ID",
		`{"id": "a", "state": "asleep"}`: "asleep",
		strings.Repeat("[", maxDepth+2):  "nested deeper",
		`{"schema": "eidetic/report/2", "run": {"id": "a", "state": "done"}, "trials": [{"number": 0}]}`: "number: 0 is outside",
	} {
		if _, err := DecodeResult(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("DecodeResult(%.40q) error = %v; want %q", text, err, want)
		}
	}
}

// Whatever DecodeResult accepts is within bounds, and its facts are short.
func FuzzDecodeResult(f *testing.F) {
	for _, v := range []any{sample("a", StateDone), NewReport(sample("a", StateDone))} {
		text, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add(
		[]byte(
			`{"schema":"eidetic/report/2","run":{"id":"a","state":"done"},"trials":[{"number":1,"metrics":{"a_ms":1e300}}],"summary":[{"metric":"a"}]}`,
		),
	)
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		run, err := DecodeResult(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, trial := range run.Trials {
			if trial.Number < 1 || trial.Number > MaxTrials {
				t.Errorf("trial %d", trial.Number)
			}
		}
		if len(Facts(run)) > maxFacts+3 {
			t.Errorf("%d facts", len(Facts(run)))
		}
	})
}

// TestReadResultOfAKilledRun: in a run's own folder "running" counts while its writer lives; a copy elsewhere says what
// it said.
func TestReadResultOfAKilledRun(t *testing.T) {
	root := filepath.Join(t.TempDir(), "out")
	f := create(t, root, sample("20261121-091400-demo", StateRunning))
	state := func(path, want string) {
		t.Helper()
		if run, err := ReadResult(path); err != nil || run.State != want {
			t.Errorf("ReadResult(%s) = %+v, %v; want the state %s", path, run, err, want)
		}
	}
	copied := filepath.Join(t.TempDir(), RunFile)
	content, err := os.ReadFile(filepath.Join(f.Path(), RunFile))
	if err = errors.Join(err, os.WriteFile(copied, content, 0o644)); err != nil {
		t.Fatal(err)
	}
	names := []string{filepath.Join(root, RunFile), filepath.Join(root, Latest, reportFile), filepath.Join(f.Path(), RunFile)}
	for _, name := range names {
		state(name, StateRunning)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		state(name, StateInterrupted)
	}
	state(copied, StateRunning)
}
