package experiment

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/lab"
)

// Warm-ups come before the others, equally many of each arm of each cell; they never count, whatever they are like, and
// leave the order of the others as it is. A run that was interrupted makes none again.
func TestWarmups(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{changes: []time.Duration{time.Second}, lostOf: []int{9, 0}}
		r := w.runner()
		cells := func() (all []Arm) {
			for _, cell := range []string{"home", "checkout"} {
				for _, a := range arms(w, lab.Control, lab.Treatment) {
					a.Cell = cell
					all = append(all, a)
				}
			}
			return all
		}
		p := plan()
		p.Trials = 3
		do := func(run *lab.Run) {
			t.Helper()
			w.lost = 0
			if err := r.Run(t.Context(), p, cells(), run, folder{root}, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		cold := &lab.Run{}
		w.lostOf = nil
		do(cold)
		p.Warmups, w.lostOf = 2, []int{9, 0}
		run := &lab.Run{}
		do(run)
		if len(cold.Trials) != 12 || len(run.Trials) != 8+12 || run.Measured() != 12 {
			t.Fatalf("%d trials without warm-ups, %d with, of which %d are to count; want 12, 20 and 12", len(cold.Trials), len(run.Trials), run.Measured())
		}
		made := map[string]int{}
		for i, trial := range run.Trials {
			warm := i < 8
			if trial.Number != i+1 || trial.Warmup != warm || trial.Valid == warm || warm != (trial.Block == 0) {
				t.Errorf("trial %d: number %d, warm-up %t, valid %t (%q), block %d", i+1, trial.Number, trial.Warmup, trial.Valid, trial.Invalid, trial.Block)
			}
			if !warm {
				if other := cold.Trials[i-8]; trial.Arm != other.Arm || trial.Cell != other.Cell || trial.Block != other.Block {
					t.Errorf("trial %d is of %s of %s; without warm-ups of %s of %s", i+1, trial.Arm, trial.Cell, other.Arm, other.Cell)
				}
				continue
			}
			made[trial.Arm+" of "+trial.Cell]++
			if !strings.Contains(trial.Invalid[0], "warm-up") || (len(trial.Invalid) > 1) != (i == 0) {
				t.Errorf("warm-up %d: %q", i+1, trial.Invalid)
			}
		}
		for arm, n := range made {
			if n != 2 || len(made) != 4 {
				t.Errorf("%d warm-ups of the %s, of %d arms; want 2 of 4", n, arm, len(made))
			}
		}
		for _, kept := range []int{3, 8, 11} {
			again := &lab.Run{Trials: run.Trials[:kept:kept]}
			before := w.stopped
			do(again)
			if made := w.stopped - before; made != 20-kept || len(again.Trials) != 20 || again.Measured() != 12 {
				t.Errorf("going on after %d trials: %d made, %d in all, %d to count; want %d, 20, 12", kept, made, len(again.Trials), again.Measured(), 20-kept)
			}
		}
	})
}
