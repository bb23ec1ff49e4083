package store

import (
	"errors"
	"testing"
)

// While somebody makes the result of a run that was cut off, nobody takes the
// run for one that goes on, and nobody else makes it too.
func TestReopen(t *testing.T) {
	root := t.TempDir()
	first := create(t, root, sample("a", StateRunning))
	dir := first.Path()
	if _, _, err := Reopen(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("a run that goes on: %v", err)
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
		t.Errorf("meanwhile it is seen as %+v (%v)", seen, err)
	}
	if _, _, err := Reopen(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("a second one: %v", err)
	}
	run.Error = "said at last"
	if err := errors.Join(f.Save(run), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Reopen(dir); !errors.Is(err, ErrEnded) {
		t.Errorf("one that has ended: %v", err)
	}
}
