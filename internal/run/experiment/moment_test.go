package experiment

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/lab"
)

// meteredWorld tells what the synchronisation page took.
type meteredWorld struct{ *world }

func (w meteredWorld) Arm(ctx context.Context) (Session, error) {
	return meteredSession{fakeSession{w.world}}, nil
}

type meteredSession struct{ fakeSession }

// On this busy machine the layout is over 200 ms after the page has been still for the plan's time.
func (s meteredSession) PageMeter() (float64, bool) {
	return 43.5, now().Sub(s.w.born) > greenAfter+plan().Settle+200*time.Millisecond
}

// A trial keeps what was known before its arm could act, and the meter again when the browser is gone.
func TestMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{changes: []time.Duration{200 * time.Millisecond, 900 * time.Millisecond}}
		r := w.runner()
		r.Network = meteredWorld{w}
		used := time.Duration(0)
		r.Usage = func() map[string]time.Duration {
			used += 100 * time.Millisecond
			return map[string]time.Duration{"browser": used}
		}
		readings, pressed := 0.0, false
		r.Meter = func(context.Context) (lab.MeterReading, error) {
			if readings++; w.stopped != int(readings)-1 {
				t.Errorf("meter %v while %d browsers have ended", readings, w.stopped)
			}
			pressed = pressed || w.pressed != 0 && w.pressed.Sub(w.born) > greenAfter+plan().Settle+200*time.Millisecond
			return lab.MeterReading{Wall: 60 + readings, Processor: 50 + readings}, nil
		}
		trial, err := r.Trial(t.Context(), DefaultPlan("https://shop.test/", "sync", 1), 1, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{lab.CovariateMeter: 61, lab.CovariateMeterProcessor: 51, lab.CovariatePage: 43.5, lab.CovariateSettle: 100}
		if !maps.Equal(trial.Before, want) || !maps.Equal(trial.After, map[string]float64{lab.CovariateMeter: 62, lab.CovariateMeterProcessor: 52}) {
			t.Errorf("Before = %v, After = %v; want %v and the second reading", trial.Before, trial.After, want)
		}
		if !pressed {
			t.Error("the key was pressed before the layout on the synchronisation page was over")
		}
		r.Meter = func(context.Context) (lab.MeterReading, error) { return lab.MeterReading{}, errors.New("no memory") }
		if trial, err = r.Trial(t.Context(), DefaultPlan("https://shop.test/", "sync", 1), 2, t.TempDir()); err != nil || !trial.Valid {
			t.Errorf("Trial() with a meter that fails = %+v, %v; want a valid one", trial, err)
		}
	})
}

func TestKeyToRequest(t *testing.T) {
	r := (&world{}).runner()
	start := &lab.Event{Earliest: lab.Time(1e9), Latest: lab.Time(1e9)}
	of := func(list ...lab.Served) (ms float64, ok bool) {
		trial := &lab.Trial{Page: "https://shop.test/a#top", Before: map[string]float64{}}
		r.known(trial, list, start)
		ms, ok = trial.Before[lab.CovariateRequest]
		return ms, ok
	}
	early, box := lab.Served{Time: lab.Time(9e8), URL: "https://other.test/"}, lab.Served{Time: lab.Time(11e8), Stage: lab.StageBox, URL: "https://box.test/"}
	page := lab.Served{Time: lab.Time(1.12e9), URL: "https://shop.test/a"}
	if ms, ok := of(early, box, page); !ok || ms != 120 {
		t.Errorf("key to request = %v, %v; want 120 ms", ms, ok)
	}
	if ms, ok := of(lab.Served{Time: lab.Time(1.1e9), URL: "https://other.test/"}, page); ok {
		t.Errorf("key to request = %v although another request came first; want none", ms)
	}
}
