package store

import (
	"testing"
	"time"

	"eidetic/internal/lab"
)

// A clock that goes back gives no run the ID of another, and the list has both.
func TestIDsOfAClockThatGoesBack(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for _, step := range []time.Duration{0, time.Hour, 0, -365 * 24 * time.Hour, time.Hour} {
		id := s.FreeID(at.Add(step), "checkout")
		if seen[id] {
			t.Errorf("the ID %s was given twice", id)
		}
		seen[id] = true
		f, err := Create(s.Root(), &lab.Run{ID: id, State: StateDone, Wall: at.Add(step)})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := s.Runs(t.Context(), "", 0); err != nil || len(all) != 5 {
		t.Errorf("Runs() = %d runs, %v; want 5", len(all), err)
	}
}
