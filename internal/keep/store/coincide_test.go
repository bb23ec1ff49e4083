package store

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// A run that is saved twice in one tick of the clock, with the same size, is listed with
// its last content.
func TestSavedTwiceInATick(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	run := sample("a", StateDone)
	f := create(t, root, run)
	file, tick := filepath.Join(f.Path(), RunFile), time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, name := range []string{"demo", "omed"} {
		run.Name = name
		if err := f.Save(run); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, tick, tick); err != nil {
			t.Fatal(err)
		}
		if all, err := s.Runs(t.Context(), "", 0); err != nil || len(all) != 1 || all[0].Name != name {
			t.Errorf("listed as %+v (%v), want the name %s", all, err, name)
		}
	}
}

// A run that is removed while runs are listed is either listed unchanged or not at all.
func TestListWhileRunsAreRemoved(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	const rounds = 200
	var all sync.WaitGroup
	all.Go(func() {
		for n := range rounds {
			id := fmt.Sprint("a", n)
			f, err := Create(root, &lab.Run{ID: id, State: StateDone})
			if err != nil {
				t.Error(err)
				return
			}
			_ = f.Close()
			if err := s.Remove(id); err != nil {
				t.Error(err)
				return
			}
		}
	})
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	defer all.Wait()
	for {
		list, err := s.Runs(t.Context(), "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.State != StateDone {
				t.Fatalf("a run removed during the listing is listed as %s: %s; want its state as saved", e.State, e.Error)
			}
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}
