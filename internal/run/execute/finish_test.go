package execute

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
)

// A run whose report could not be written has failed, and its folder says so.
func TestRunWithoutItsReport(t *testing.T) {
	x := &Execution{Root: t.TempDir(), begun: time.Now(), run: &lab.Run{ID: "1", State: store.StateRunning}}
	var err error
	if x.folder, err = store.Create(x.Root, x.run); err != nil {
		t.Fatal(err)
	}
	defer x.folder.Close()
	x.run.Trials = []*lab.Trial{{Number: 1, Arm: lab.Control, Page: "https://x.test/", Valid: true}}
	if err := os.MkdirAll(filepath.Join(x.folder.Path(), report.FileName, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	err = x.finish(t.Context(), nil)
	read, readErr := store.ReadRun(x.folder.Path())
	if err == nil || readErr != nil || read.State != store.StateFailed || read.Error == "" {
		t.Errorf("finished with %v; the folder says %+v (%v)", err, read, readErr)
	}
}
