package store

import (
	"errors"
	"testing"
)

// While one process completes an interrupted run, others see the run as interrupted and
// cannot reopen it.
func TestReopen(t *testing.T) {
	root := t.TempDir()
	first := create(t, root, sample("a", StateRunning))
	dir := first.Path()
	if _, _, err := Reopen(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("Reopen() of a run that is being written: %v; want ErrHeld", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	f, run, err := Reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if seen, err := ReadRun(dir); err != nil || seen.State != StateInterrupted || run.State != StateInterrupted {
		t.Errorf("ReadRun() while reopened = %+v, %v; want an interrupted run", seen, err)
	}
	if _, _, err := Reopen(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("the second Reopen() = %v; want ErrHeld", err)
	}
	run.Error = "said at last"
	if err := errors.Join(f.Save(run), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Reopen(dir); !errors.Is(err, ErrEnded) {
		t.Errorf("Reopen() of a complete run: %v; want ErrEnded", err)
	}
}
