package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
	"eidetic/netlab/archive"
)

// TestFilledOfAKilledRun: what a killed run had fetched is in its folder as an archive once the run
// is concluded, and the report tells it.
func TestFilledOfAKilledRun(t *testing.T) {
	dir := cut(t, t.TempDir(), "killed")
	wall := time.Now()
	w, err := archive.Create(filepath.Join(dir, FilledFile), archive.CreateOptions{Software: "test", Wall: wall, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	e := &lab.Exchange{Wall: wall, Method: "GET", URL: "https://x.test/new", Protocol: "h2", Status: 200, Response: lab.Message{Body: []byte("new")},
		Chunks: []lab.Chunk{{Bytes: 3}}}
	if err := w.Add(e); err != nil {
		t.Fatal(err)
	}
	working := filepath.Join(dir, FilledFile+archive.WorkingSuffix)
	content, err := os.ReadFile(working)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Discard(); err != nil {
		t.Fatal(err)
	}
	// The process is killed while it writes the next record.
	if err := os.WriteFile(working, append(content, content[:50]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Conclude(dir, CutOff); err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(filepath.Join(dir, FilledFile))
	if err != nil || len(a.Exchanges()) != 1 || string(a.Exchanges()[0].Response.Body) != "new" {
		t.Fatalf("what was fetched: %v; want the exchange", err)
	}
	if _, err := os.Stat(working); err == nil {
		t.Error("the working file is left")
	}
	run, err := store.ReadRun(dir)
	if err != nil || run.Filled == nil || run.Filled.Exchanges != 1 || run.Filled.File != FilledFile {
		t.Errorf("run.json says %+v of it, %v", run.Filled, err)
	}
	page, err := os.ReadFile(filepath.Join(dir, report.FileName))
	if err != nil || !strings.Contains(string(page), FilledFile) {
		t.Errorf("the report does not name %s: %v", FilledFile, err)
	}

	// A run that had fetched nothing gets no archive.
	dir = cut(t, t.TempDir(), "nothing")
	if w, err = archive.Create(filepath.Join(dir, FilledFile), archive.CreateOptions{Software: "test", Wall: wall}); err != nil {
		t.Fatal(err)
	}
	if err := Conclude(dir, CutOff); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, FilledFile+"*"))
	if run, rerr := store.ReadRun(dir); err != nil || len(left) > 0 || rerr != nil || run.Filled != nil {
		t.Errorf("a run that fetched nothing has %q, %v", left, err)
	}
	_ = w.Discard() // its file is gone
}

// TestFilledWarning: the run says which trials fetched.
func TestFilledWarning(t *testing.T) {
	run := &lab.Run{Trials: []*lab.Trial{{Number: 1}, {Number: 2}, {Number: 3}}}
	if got := filledWarning(run); got != "" {
		t.Errorf("a run that fetched nothing says %q", got)
	}
	run.Trials[0].Filled = 5
	if got := filledWarning(run); !strings.HasPrefix(got, "5 requests that the recording lacks were fetched from their origins in trial 1,") {
		t.Errorf("one trial: %q", got)
	}
	run.Trials[2].Filled = 2
	if got := filledWarning(run); !strings.HasPrefix(got, "7 requests") || !strings.Contains(got, "in 2 trials") || !strings.Contains(got, "last time in trial 3") {
		t.Errorf("two trials: %q", got)
	}
}
