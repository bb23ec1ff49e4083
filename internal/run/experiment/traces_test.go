package experiment

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/lab"
)

// tracedWorld is a world whose browsers trace themselves, the n-th as verdicts[n] says.
type tracedWorld struct {
	*world
	verdicts []error
	begun    []lab.Time
}

func (w *tracedWorld) BirthTraced(ctx context.Context, url string) (Life, error) {
	life, err := w.Birth(ctx, url)
	return tracedFake{life, w}, err
}

type tracedFake struct {
	Life
	w *tracedWorld
}

func (l tracedFake) Trace(context.Context) (func(context.Context, string) (lab.BrowserTrace, error), error) {
	n := len(l.w.begun)
	l.w.begun = append(l.w.begun, now())
	if l.w.pressed != 0 {
		return nil, errors.New("the page was there before the trace began")
	}
	return func(_ context.Context, path string) (lab.BrowserTrace, error) {
		t := lab.BrowserTrace{Browser: "fake"}
		if n < len(l.w.verdicts) && l.w.verdicts[n] != nil {
			return t, l.w.verdicts[n]
		}
		return t, os.WriteFile(path, []byte("trace"), 0o600)
	}, nil
}

// TestTraces: traced trials come after the others, in blocks of their own; they never count, are repeated once where
// the trace is void, and a run that was interrupted goes on after them.
func TestTraces(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &tracedWorld{world: &world{changes: []time.Duration{time.Second}}, verdicts: []error{nil, errors.New("the buffer was full")}}
		r := w.runner()
		r.Device = w
		run := &lab.Run{}
		p := plan()
		p.Trials, p.Traces = 2, 2
		do := func() error {
			return r.Run(t.Context(), p, arms(w.world, lab.Control, lab.Treatment), run, folder{root}, func() error { return nil })
		}
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if len(run.Trials) != 9 || len(w.begun) != 5 {
			t.Fatalf("%d trials, %d of them traced; want 4, and 4 with a repetition", len(run.Trials), len(w.begun))
		}
		for i, trial := range run.Trials {
			traced := i >= 4
			if trial.Traced != traced || trial.Valid == traced || (trial.Trace != nil) != traced || traced == (trial.Block <= 1) || trial.Number != i+1 {
				t.Errorf("trial %d: number %d, traced %t, valid %t, trace %v, block %d", i+1, trial.Number, trial.Traced, trial.Valid, trial.Trace, trial.Block)
			}
			if traced && (len(trial.Invalid) != 1 || !strings.Contains(trial.Invalid[0], "no statistic")) {
				t.Errorf("trial %d: %q", trial.Number, trial.Invalid)
			}
			if whole := trial.Files[TraceRole] != ""; traced && (whole == (i == 5) || (trial.Trace.Void != "") != (i == 5)) {
				t.Errorf("trial %d: trace %+v, %v", trial.Number, trial.Trace, trial.Files)
			}
		}
		before := len(w.begun)
		run.Trials = run.Trials[:7]
		if err := do(); err != nil || len(run.Trials) != 9 || len(w.begun) != before+2 {
			t.Errorf("going on after 7 trials: %v, %d trials, %d traces", err, len(run.Trials), len(w.begun))
		}
		p.Traces, p.TraceAll, run.Trials = 0, true, nil
		if err := do(); err != nil || len(run.Trials) != 4 || !run.Trials[0].Valid || run.Trials[0].Trace == nil || run.Trials[0].Traced {
			t.Errorf("trace_all: %v, %d trials, the first %+v", err, len(run.Trials), run.Trials[0])
		}
		r.Device, run.Trials = w.world, nil
		if err := do(); !errors.Is(err, ErrNoTraces) {
			t.Errorf("a device that cannot be traced: %v", err)
		}
	})
}

// TestTracesOfCells: each page and user has its traced trials of each arm, in blocks of its own.
func TestTracesOfCells(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &tracedWorld{world: &world{changes: []time.Duration{time.Second}}}
		r := w.runner()
		r.Device = w
		var all []Arm
		for _, cell := range []string{"home", "checkout"} {
			for _, a := range arms(w.world, lab.Control, lab.Treatment) {
				a.Cell = cell
				all = append(all, a)
			}
		}
		p := plan()
		p.Trials, p.Traces = 1, 2
		run := &lab.Run{}
		if err := r.Run(t.Context(), p, all, run, folder{root}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		made := map[string]int{}
		for i, trial := range run.Trials {
			if trial.Traced != (i >= 4) || trial.Cell == "" {
				t.Errorf("trial %d: traced %t, of %q", trial.Number, trial.Traced, trial.Cell)
			}
			if trial.Traced {
				made[trial.Cell+" "+trial.Arm]++
			}
		}
		for arm, n := range made {
			if n != 2 || len(made) != 4 || len(run.Trials) != 4+8 {
				t.Errorf("%d traced trials of %s, of %d arms, in %d trials; want 2, 4, 12", n, arm, len(made), len(run.Trials))
			}
		}
	})
}
