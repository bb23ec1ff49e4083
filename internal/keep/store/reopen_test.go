package store

import (
	"errors"
	"os"
	"path/filepath"
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

// A run goes on in one process at a time, with its whole trials, also when another one has
// concluded it; one that ended does not.
func TestResume(t *testing.T) {
	root := t.TempDir()
	first := create(t, root, sample("a", StateRunning))
	if _, _, err := Resume(root, "a"); !errors.Is(err, ErrHeld) {
		t.Errorf("Resume() of a run that is being written: %v; want ErrHeld", err)
	}
	cut, err := first.TrialDir(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(cut, "reel"), []byte("x"), 0o600), first.Close()); err != nil {
		t.Fatal(err)
	}
	for _, concluded := range []bool{false, true} {
		if concluded {
			f, run, err := Reopen(first.Path())
			if err != nil {
				t.Fatal(err)
			}
			run.Error = "it was stopped"
			if err := errors.Join(f.Save(run), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		f, run, err := Resume(root, "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(cut); !errors.Is(err, os.ErrNotExist) || len(run.Trials) != 1 {
			t.Errorf("%d trials, and the one that was cut off: %v; want 1, removed", len(run.Trials), err)
		}
		run.State = StateRunning
		if err := f.Save(run); err != nil {
			t.Fatal(err)
		}
		if seen, err := ReadRun(first.Path()); err != nil || seen.State != StateRunning {
			t.Errorf("ReadRun() of a resumed run = %+v, %v; want a running one", seen, err)
		}
		if _, _, err := Resume(root, "a"); !errors.Is(err, ErrHeld) {
			t.Errorf("the second Resume() = %v; want ErrHeld", err)
		}
		if _, _, err := Reopen(first.Path()); !errors.Is(err, ErrHeld) {
			t.Errorf("Reopen() of a resumed run = %v; want ErrHeld", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	done := create(t, root, sample("done", StateDone))
	if err := done.Close(); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]error{"done": ErrEnded, "nope": ErrNotFound, "../a": ErrNotFound} {
		if _, _, err := Resume(root, id); !errors.Is(err, want) {
			t.Errorf("Resume(%s) = %v; want %v", id, err, want)
		}
	}
}
