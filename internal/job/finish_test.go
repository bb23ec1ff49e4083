package job

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/report"
	"eidetic/internal/store"
)

// A run whose report could not be written is not done, and its folder says so.
func TestRunWithoutItsReport(t *testing.T) {
	j := &Job{Root: t.TempDir(), begun: time.Now(), run: &lab.Run{ID: "1", State: store.StateRunning}}
	var err error
	if j.folder, err = store.Create(j.Root, j.run); err != nil {
		t.Fatal(err)
	}
	defer j.folder.Close()
	j.run.Trials = []*lab.Trial{{Number: 1, Arm: lab.Control, Page: "https://x.test/", Valid: true}}
	if err := os.MkdirAll(filepath.Join(j.folder.Path(), report.FileName, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	err = j.finish(t.Context(), nil)
	read, readErr := store.ReadRun(j.folder.Path())
	if err == nil || readErr != nil || read.State != store.StateFailed || read.Error == "" {
		t.Errorf("finished with %v; the folder says %+v (%v)", err, read, readErr)
	}
}
