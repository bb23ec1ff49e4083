package capture_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/capture"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
)

func TestPaceKeepsItsScheduleAndCountsMissedTicks(t *testing.T) {
	const period = 10 * time.Millisecond
	now := lab.Time(5_000)
	p := capture.Pace{
		Period: period,
		Clock:  func() lab.Time { return now },
		Wait:   func(t lab.Time) { now = t.Add(100) }, // wakes 100 ns late
	}
	var ticks []uint64
	var at []time.Duration
	// What each picture takes: late by less than a period is not a loss.
	for _, work := range []time.Duration{1, 1, 15, 1, 35, 1, 1} {
		n, err := p.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		ticks, at = append(ticks, n), append(at, now.Sub(5_000))
		now = now.Add(work * time.Millisecond)
	}
	if d := cmp.Diff([]uint64{0, 1, 2, 3, 4, 7, 8}, ticks); d != "" {
		t.Error(d)
	}
	const ms = time.Millisecond
	want := []time.Duration{0, 10*ms + 100, 20*ms + 100, 35*ms + 100, 40*ms + 100, 75*ms + 100, 80*ms + 100}
	if d := cmp.Diff(want, at); d != "" {
		t.Error(d)
	}
}

// A machine that stalls while the next tick is waited for: the picture is then
// that of the tick that has come, and not of one long past.
func TestPaceCountsTicksThatItOversleeps(t *testing.T) {
	const period = 10 * time.Millisecond
	now := lab.Time(5_000)
	late := []time.Duration{0, 0, 9, 35, 0, 0} // ms after each due time
	p := capture.Pace{
		Period: period,
		Clock:  func() lab.Time { return now },
		Wait:   func(t lab.Time) { now, late = t.Add(late[0]*time.Millisecond), late[1:] },
	}
	var ticks []uint64
	for range 7 {
		n, err := p.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		ticks = append(ticks, n)
	}
	if d := cmp.Diff([]uint64{0, 1, 2, 3, 7, 8, 9}, ticks); d != "" {
		t.Error(d)
	}
}

// A tick that is far away does not keep a source from ending.
func TestPaceEndsBeforeATickThatIsFarAway(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	now := lab.Time(5_000)
	p := capture.Pace{
		Period: time.Hour,
		Clock:  func() lab.Time { return now },
		Wait:   func(t lab.Time) { now = t; cancel() },
	}
	if _, err := p.Next(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Next(ctx); !errors.Is(err, context.Canceled) || now.Sub(5_000) >= time.Hour {
		t.Errorf("Next() = %v after %v; want the end long before the tick", err, now.Sub(5_000))
	}
}

// Nor does it keep a source without ticks of its own.
func TestSyntheticEndsBeforeAFrameThatIsFarAway(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	now := lab.Time(5_000)
	s, err := synthetic.New(synthetic.Options{
		Format:  lab.Format{Pixels: lab.BGRX, Width: 320, Height: 200, Rate: 0.001},
		Content: synthetic.Static,
		Clock:   func() lab.Time { return now },
		Wait:    func(t lab.Time) { now = t; cancel() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next() = %v; want the end before the frame", err)
	}
}
