package experiment

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/lab"
)

// fetching is a network whose first sessions fetch what the recording lacks.
type fetching struct {
	*world
	left int // sessions that fetch
}

func (f *fetching) Arm(ctx context.Context) (Session, error) {
	s, err := f.world.Arm(ctx)
	if f.left--; err == nil && f.left >= 0 {
		s = fetchingSession{s}
	}
	return s, err
}

type fetchingSession struct{ Session }

func (s fetchingSession) Traffic() Traffic {
	t := s.Session.Traffic()
	t.Filled = 2
	return t
}

func (s fetchingSession) Disarm() ([]lab.Served, error) {
	_, err := s.Session.Disarm()
	return []lab.Served{
		{Stage: lab.StageExact, Method: "GET", URL: "https://x.test/known"},
		{Stage: lab.StageLive, Method: "GET", URL: "https://x.test/new", Status: 200, Bytes: 5, Time: 7},
		{Stage: lab.StageLive, Method: "GET", URL: "https://x.test/" + strings.Repeat("é", 500), Status: 200},
		{Stage: lab.StageBox},
	}, err
}

// TestTrialsThatFetch: a trial that fetched what the recording lacks does not count; it is made
// again at once, which uses up no repetition, as long as pages come to an end of what is new.
func TestTrialsThatFetch(t *testing.T) {
	for _, c := range []struct {
		name          string
		fetch         int   // trials of the control that fetch
		lost          []int // frames lost, of each trial in order
		trials, valid int   // of the control
		err           error
	}{
		{"none", 0, nil, 3, 3, nil},
		{"one", 1, nil, 4, 3, nil},
		{"and others are invalid", 2, []int{0, 0, 4, 0, 4, 0, 0}, 7, 3, nil},
		{"each", 100, nil, maxFilling + 2, 0, errNothingValid},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := world{changes: []time.Duration{time.Second}, lostOf: c.lost}
				run := &lab.Run{}
				list := arms(&w, lab.Control)
				list[0].Network = &fetching{&w, c.fetch}
				last := Step{}
				r := w.runner()
				r.Progress = func(s Step) { last = s }
				if err := r.Run(t.Context(), plan(), list, run, folder{root}, func() error { return nil }); !errors.Is(err, c.err) {
					t.Fatalf("Run() = %v; want %v", err, c.err)
				}
				valid := 0
				for i, trial := range run.Trials {
					if trial.Valid {
						valid++
					}
					if i >= c.fetch {
						continue
					}
					if trial.Valid || trial.Filled != 2 || len(trial.FilledRequests) != 2 || len(trial.Invalid) == 0 ||
						!strings.Contains(trial.Invalid[0], "2 of 3 requests were not in the archive, first GET https://x.test/new, and were fetched") {
						t.Errorf("trial %d fetched: valid %v, %d, %v, %q; want it invalid for that", trial.Number, trial.Valid, trial.Filled,
							trial.FilledRequests, trial.Invalid)
					}
					if long := trial.FilledRequests[1].URL; len(long) > 510 || strings.ToValidUTF8(long, "") != long {
						t.Errorf("a long URL is kept as %d bytes, %q; want at most 510 of UTF-8", len(long), long)
					}
				}
				if valid != c.valid || len(run.Trials) != c.trials || c.err == nil && last.Of != c.trials {
					t.Errorf("%d trials of %d, %d valid; want %d and %d", len(run.Trials), last.Of, valid, c.trials, c.valid)
				}
			})
		})
	}
}
