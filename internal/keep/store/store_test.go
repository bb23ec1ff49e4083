package store

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) {
	// The test of kill -9 starts this program again as the process to be killed.
	if root := os.Getenv("EIDETIC_TEST_WRITER"); root != "" {
		write(root)
		return
	}
	testlab.NoLeaks(m)
}

// write begins a run, reports it on standard output, and waits to be killed.
func write(root string) {
	f, err := Create(root, sample("20261121-100000-killed", StateRunning))
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(f.Path() + "\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func sample(id, state string) *lab.Run {
	return &lab.Run{
		ID: id, Name: "demo", Wall: time.Date(2026, 11, 21, 9, 14, 0, 0, time.UTC), State: state, Page: "https://www.shop.example/",
		Trials: []*lab.Trial{{
			Number: 1, Arm: lab.Control, Valid: true, Requests: 62, Frames: 300, FinalFrame: "ab",
			Measurements: []lab.Measurement{metric.SpeedIndex.Measure(751.2, nil)}, Events: []lab.Event{},
			Files: map[string]string{"video": "evidence.webm"},
		}},
		Summary: []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 1, Median: 751.2}},
	}
}

func create(t *testing.T, root string, run *lab.Run) *Folder {
	t.Helper()
	f, err := Create(root, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func open(t *testing.T, root string) *Store {
	t.Helper()
	s, err := Open(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestCreateSaveRead(t *testing.T) {
	root := filepath.Join(t.TempDir(), "out")
	run := sample("20261121-091400-demo", StateRunning)
	f := create(t, root, run)
	if got, err := ReadRun(f.Path()); err != nil || got.State != StateRunning {
		t.Fatalf("ReadRun of a run whose writer is alive: %v, %v", got, err)
	}
	run.State = StateDone
	run.Trials[0].Requests++ // as a trial that is judged again
	if err := f.Save(run); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(f.Path(), "trials", "001", TrialFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if trial, err := DecodeTrial(file); err != nil || trial.Requests != run.Trials[0].Requests {
		t.Errorf("the trial's own file: %v, %+v; want the %d requests of the last Save", err, trial, run.Trials[0].Requests)
	}
	got, err := ReadRun(filepath.Join(root, "latest"))
	if err == nil {
		t.Errorf("ReadRun accepted a run whose ID differs from its folder's name: %v", got)
	}
	got, err = ReadRun(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run, got); diff != "" {
		t.Errorf("(-saved +read):\n%s", diff)
	}
	for _, name := range []string{"run.json", "report.json", "trials/001/trial.json", "latest/run.json"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	temps, _ := filepath.Glob(filepath.Join(f.Path(), ".*.tmp"))
	if len(temps) > 0 {
		t.Errorf("temporary files left behind: %v", temps)
	}
}

// The exact names of the fields that the project's acceptance test reads.
func TestReportJSON(t *testing.T) {
	run := sample("a", StateDone)
	run.Plan = lab.Plan{Timing: "recorded", Seed: 1<<64 - 1}
	f := create(t, t.TempDir(), run)
	b, err := os.ReadFile(filepath.Join(f.Path(), "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema  string
		Run     map[string]any
		Trials  []map[string]any
		Summary []map[string]any
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `"seed": 18446744073709551615`) {
		t.Errorf("the seed lost its digits: %s", b)
	}
	if got.Schema != "eidetic/report/2" || len(got.Trials) != 1 || len(got.Summary) != 1 || got.Run["id"] != "a" ||
		got.Run["plan"].(map[string]any)["timing"] != "recorded" {
		t.Fatalf("got %s", b)
	}
	for name, want := range map[string]any{
		"number": 1.0, "valid": true, "invalid": []any{}, "misses": 0.0, "requests": 62.0, "final_frame_sha256": "ab",
		"frames": 300.0, "frames_lost": 0.0, "metrics": map[string]any{"speed_index_ms": 751.2},
	} {
		if diff := cmp.Diff(want, got.Trials[0][name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	root := t.TempDir()
	create(t, root, sample("a", StateRunning))
	if _, err := Create(root, sample("a", StateRunning)); err == nil {
		t.Error("the second Create of a run succeeded; want an error")
	}
	for _, id := range []string{"", ".", "..", "../x", "a/b", ".hidden", "a b", strings.Repeat("a", 129), "a\x00"} {
		if _, err := Create(root, sample(id, StateRunning)); err == nil {
			t.Errorf("%q was accepted as an ID", id)
		}
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(file, sample("b", StateRunning)); err == nil || !strings.Contains(err.Error(), "output folder") {
		t.Errorf("Create() in a file: %v; want an error that names the output folder", err)
	}
	nan := sample("nan", StateRunning)
	nan.Trials[0].Measurements[0].Value = math.NaN()
	if _, err := Create(root, nan); err == nil || !strings.Contains(err.Error(), "trial 1: measurement speed_index_ms is NaN") {
		t.Errorf("Create() with NaN: %v; want the metric's name", err)
	}
	if _, err := os.Stat(filepath.Join(root, "runs", "nan")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a refused Create left a folder behind")
	}
}

// The user's own files in the output folder are not touched.
func TestPublishKeepsFiles(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "report.html"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	create(t, root, sample("a", StateDone))
	create(t, root, sample("b", StateDone))
	if b, _ := os.ReadFile(filepath.Join(root, "report.html")); string(b) != "mine" {
		t.Errorf("the user's report.html is now %q; want it unchanged", b)
	}
	if target, _ := os.Readlink(filepath.Join(root, "latest")); target != "runs/b" {
		t.Errorf("latest is %q; want runs/b", target)
	}
}

func TestKilledWriterIsInterrupted(t *testing.T) {
	root := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EIDETIC_TEST_WRITER="+root)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := stdout.Read(b); err != nil {
		t.Fatal(err)
	}
	s := open(t, root)
	state := func() string {
		t.Helper()
		entries, err := s.Runs(t.Context(), "", 0)
		if err != nil || len(entries) != 1 {
			t.Fatalf("Runs() = %v, %v; want one run", entries, err)
		}
		return entries[0].State
	}
	if got := state(); got != StateRunning {
		t.Errorf("state while the writer lives = %s; want running", got)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := state(); got != StateInterrupted {
		t.Errorf("state after kill -9 = %s; want interrupted", got)
	}
	// The next run can be created.
	create(t, root, sample("20261121-110000-next", StateDone))
	if entries, err := s.Runs(t.Context(), "", 0); err != nil || len(entries) != 2 {
		t.Errorf("Runs() after the next run = %v, %v; want 2 runs", entries, err)
	}
}

func TestHalfWrittenFolders(t *testing.T) {
	root := t.TempDir()
	create(t, root, sample("good", StateDone))
	for id, content := range map[string]string{"half": `{"id":"half","trials":[{"num`, "other": `{"id":"good","state":"done"}`,
		"state": `{"id":"state","state":"?"}`, "null": "null", "zero": ""} {
		dir := filepath.Join(root, "runs", id)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "runs", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(root, "runs", "pipe")
	if err := os.MkdirAll(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run.json", ".lock"} {
		if err := syscall.Mkfifo(filepath.Join(pipe, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, root)
	entries, err := s.Runs(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, e := range entries {
		states[e.ID] = e.State
		if e.State == StateInterrupted && e.Error == "" {
			t.Errorf("%s is interrupted and does not say why", e.ID)
		}
	}
	want := map[string]string{"good": "done"}
	for _, id := range []string{"half", "other", "state", "null", "zero", "empty", "pipe"} {
		want[id] = StateInterrupted
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIndexIsMadeAnew(t *testing.T) {
	root := t.TempDir()
	create(t, root, sample("a", StateDone))
	path := filepath.Join(root, "index.db")
	good := func(t *testing.T) []byte {
		t.Helper()
		s, err := Open(t.Context(), root, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, damage := range map[string]func([]byte) []byte{
		"missing":   nil,
		"no SQLite": func([]byte) []byte { return []byte(strings.Repeat("this is no database ", 500)) },
		"cut off":   func(b []byte) []byte { return b[:len(b)/2+100] },
		"zeroed":    func(b []byte) []byte { clear(b[5000:]); return b },
		"empty":     func([]byte) []byte { return nil },
		"header":    func(b []byte) []byte { copy(b[16:], "\xff\xff\xff\xff\xff\xff"); return b },
		"version":   func(b []byte) []byte { b[63] = 99; return b },
	} {
		t.Run(name, func(t *testing.T) {
			b := good(t)
			if damage == nil {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(path, damage(b), 0o644); err != nil {
				t.Fatal(err)
			}
			s := open(t, root)
			entries, err := s.Runs(t.Context(), "", 0)
			if err != nil || len(entries) != 1 || entries[0].ID != "a" || entries[0].Valid != 1 {
				t.Errorf("Runs() = %v, %v", entries, err)
			}
		})
	}
}

func TestIndexPagesAndForgets(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for i, id := range []string{"a", "b", "c", "d"} {
		run := sample(id, StateDone)
		run.Wall = run.Wall.Add(time.Duration(i/2) * time.Hour) // pairs with the same time
		create(t, root, run)
	}
	var got []string
	before := ""
	for {
		entries, err := s.Runs(t.Context(), before, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			break
		}
		before = entries[0].ID
		got = append(got, before)
	}
	if diff := cmp.Diff([]string{"d", "c", "b", "a"}, got); diff != "" {
		t.Error(diff)
	}
	if err := os.RemoveAll(filepath.Join(root, "runs", "b")); err != nil {
		t.Fatal(err)
	}
	if entries, err := s.Runs(t.Context(), "", 0); err != nil || len(entries) != 3 {
		t.Errorf("Runs() after a folder was removed = %d entries, %v; want 3", len(entries), err)
	}
	if _, err := s.index.Get(t.Context(), "b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get() of a removed run: %v; want ErrNotFound", err)
	}
	if _, err := s.Run("b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Run() of a removed run: %v; want ErrNotFound", err)
	}
}

// Save syncs the files of a run before it writes the final state; a pipe and a dangling
// link in the folder do not block it.
func TestSaveLeavesWhatIsNoFile(t *testing.T) {
	root := t.TempDir()
	run := sample("a", StateRunning)
	f, err := Create(root, run)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(syscall.Mkfifo(filepath.Join(f.Path(), "pipe"), 0o600),
		os.Symlink("nowhere", filepath.Join(f.Path(), "link"))); err != nil {
		t.Fatal(err)
	}
	run.State = StateDone
	if err := f.Save(run); err != nil {
		t.Fatal(err)
	}
	if got, err := open(t, root).Run("a"); err != nil || got.State != StateDone {
		t.Errorf("Run() = %v, %v; want a finished run", got, err)
	}
}

// Two stores, as of two processes, can use one index at a time.
func TestIndexIsShared(t *testing.T) {
	root := t.TempDir()
	a, b := open(t, root), open(t, root)
	create(t, root, sample("a", StateDone))
	var all sync.WaitGroup
	for _, s := range []*Store{a, b, a, b} {
		all.Go(func() {
			for range 5 {
				if entries, err := s.Runs(context.Background(), "", 0); err != nil || len(entries) != 1 {
					t.Errorf("Runs() = %v, %v; want one run", entries, err)
				}
			}
		})
	}
	all.Wait()
}

// Entries stay short, whatever a run holds.
func TestEntryIsShort(t *testing.T) {
	root := t.TempDir()
	run := sample("a", StateDone)
	run.Name = strings.Repeat("é", 1<<20)
	run.Summary = make([]lab.Summary, 1000)
	create(t, root, run)
	entries, err := open(t, root).Runs(t.Context(), "", 0)
	if err != nil || len(entries) != 1 {
		t.Fatal(err)
	}
	if e := entries[0]; len(e.Name) > 1010 || len(e.Summary) != 64 {
		t.Errorf("a name of %d bytes and %d summaries", len(e.Name), len(e.Summary))
	}
}

func TestNewID(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 14, 0, 0, time.UTC)
	for name, want := range map[string]string{
		"demo": "20261121-091400-demo", "": "20261121-091400-run", "Checkout page!": "20261121-091400-checkout-page",
		"../../x": "20261121-091400-x", "日本": "20261121-091400-run",
		strings.Repeat("x", 100): "20261121-091400-" + strings.Repeat("x", 40),
	} {
		if got := NewID(at, name); got != want || !ValidID(got) {
			t.Errorf("NewID(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	ctx := t.Context()
	q, err := OpenQueue(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range []Job{{ID: "1", Device: "a"}, {ID: "2", Device: "a"}, {ID: "3", Device: "b"}} {
		j.Plan, j.Created = lab.Plan{Trials: 3, Seed: 1<<64 - 1}, time.Unix(5, 0)
		if err := q.Add(ctx, j); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Add(ctx, Job{ID: "1"}); !errors.Is(err, ErrExists) {
		t.Errorf("Add() of a known ID: %v; want ErrExists", err)
	}
	next := func(want string) {
		t.Helper()
		j, err := q.Next(ctx)
		if want == "" && errors.Is(err, ErrNotFound) {
			return
		}
		if err != nil || j.ID != want || j.State != StateRunning || !cmp.Equal(j.Plan, lab.Plan{Trials: 3, Seed: 1<<64 - 1}) {
			t.Fatalf("got %+v, %v, want %s", j, err, want)
		}
	}
	next("1")
	next("3") // the device of 2 is busy
	next("")
	if err := q.Finish(ctx, "1"); err != nil {
		t.Fatal(err)
	}
	if err := q.Leave(ctx, "3", StateFailed, "no grabber"); err != nil {
		t.Fatal(err)
	}
	next("2")
	if gone, err := q.Forget(ctx, "2"); err != nil || gone {
		t.Errorf("Forget() of a running job = true, %v; want false", err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if q, err = OpenQueue(ctx, path); err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	jobs, err := q.Jobs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, j := range jobs {
		got[j.ID] = j.State
	}
	if diff := cmp.Diff(map[string]string{"2": StateInterrupted, "3": StateFailed}, got); diff != "" {
		t.Error(diff)
	}
}
