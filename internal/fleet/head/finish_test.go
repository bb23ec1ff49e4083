package head

import (
	"os"
	"path/filepath"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/tell/report/reporttest"
)

// A box that began a part anew has named its run otherwise than the part.
func TestNameByRun(t *testing.T) {
	run := reporttest.Run(1, 1)
	run.ID = "20261121-091400-demo.02-2"
	folder, err := store.Create(t.TempDir(), run)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(t.TempDir(), "20261121-091400-demo.02")
	if err := os.Rename(folder.Path(), part); err != nil {
		t.Fatal(err)
	}
	dir, err := nameByRun(part)
	if err != nil || filepath.Base(dir) != run.ID {
		t.Fatalf("nameByRun() = %s, %v; want a folder named %s", dir, err, run.ID)
	}
	if _, err := store.ReadWhole(dir); err != nil {
		t.Errorf("ReadWhole() = %v; want the run", err)
	}
	if again, err := nameByRun(dir); err != nil || again != dir {
		t.Errorf("nameByRun(a folder of the right name) = %s, %v; want the same", again, err)
	}
	if none, err := nameByRun(filepath.Join(part, "none")); err != nil || none != filepath.Join(part, "none") {
		t.Errorf("nameByRun(no folder) = %s, %v; want it unchanged", none, err)
	}
}
