package cadence_test

import (
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"eidetic/analysis/cadence"
	"eidetic/analysis/filmtest"
	"eidetic/analysis/visual"
)

// spot draws a box at a place that follows from the state, on grey.
func spot(w, h int) filmtest.Scene {
	return func(pix []byte, n int) {
		filmtest.Fill(pix, w, image.Rect(0, 0, w, h), 90, 100, 110)
		x := n * 7 % (w - 8)
		filmtest.Fill(pix, w, image.Rect(x, h/3, x+8, h/3+8), 240, uint8(n*37), 20)
	}
}

func measure(t *testing.T, f *filmtest.Film, o visual.ChangeOptions, c cadence.Options) *cadence.Result {
	t.Helper()
	curves, err := visual.Changes(f, o)
	if err != nil {
		t.Fatal(err)
	}
	frames := make([]cadence.Frame, len(curves.Infos))
	for i, info := range curves.Infos {
		frames[i] = cadence.Frame{Index: curves.Start + i, Time: info.Time, Seq: info.Seq, Changed: curves.Regions[0].Changed[i] > 0}
	}
	r, err := cadence.Measure(frames, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTruth: on schedules that are drawn by lot, with frames that repeat, stall and are
// lost, with and without noise, every number is the schedule's.
func TestTruth(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			var shots []filmtest.Shot
			unique, missed, jank, longest, before := 0, 0, 0, 0, 0
			for state := range 120 {
				hold := 1
				switch r.IntN(12) {
				case 0:
					hold = 2
				case 1:
					hold = 3 + r.IntN(10) // a busy loop
				}
				for range hold {
					shots = append(shots, filmtest.Shot{State: state})
				}
				if state == 0 || state == 119 { // before the first change, after the last
					continue
				}
				unique++
				missed += hold - 1
				longest = max(longest, hold)
				if before > 0 && hold > before {
					jank++
				}
				before = hold
			}
			unique++ // the last state's first frame
			f := filmtest.New(96, 54, 60, spot(96, 54), shots)
			var o visual.ChangeOptions
			if seed%2 == 1 {
				f.Over(filmtest.Noise(seed, 2))
				o.Tolerance = visual.Tolerance{20, 20, 20}
			}
			got := measure(t, f, o, cadence.Options{})
			if got.Unique != unique || got.Missed != missed || got.Jank != jank {
				t.Errorf("unique %d, missed %d, jank %d; want %d, %d, %d", got.Unique, got.Missed, got.Jank, unique, missed, jank)
			}
			if want := float64(longest) * 1000 / 60; math.Abs(got.LongestMS-want) > 0.01 {
				t.Errorf("longest gap %.2f ms, want %.2f", got.LongestMS, want)
			}
			span := float64(unique-1+missed) / 60
			if want := float64(unique-1) / span; math.Abs(got.FPS-want) > 0.001*want {
				t.Errorf("rate %.3f, want %.3f", got.FPS, want)
			}
		})
	}
}

// TestBeat: a screen of 59.94 Hz filmed at 60 repeats a picture every 17 s. Told the
// screen's rate, no refresh is missed; a true miss is still found.
func TestBeat(t *testing.T) {
	shown := 60000.0 / 1001
	for seed := range 20 {
		shots := filmtest.Beat(3600, 60, shown, float64(seed)/20)
		late := seed%2 == 1
		if late {
			for i := range shots { // state 700 never came: 699 stayed
				if shots[i].State == 700 {
					shots[i].State = 699
				}
			}
		}
		f := filmtest.New(32, 24, 60, spot(32, 24), shots)
		want := 0
		if late {
			want = 1
		}
		screen := time.Duration(float64(time.Second) / shown)
		if got := measure(t, f, visual.ChangeOptions{}, cadence.Options{Refresh: screen}); got.Missed != want {
			t.Errorf("phase %d/20: %d missed refreshes of the screen's, want %d", seed, got.Missed, want)
		}
		if got := measure(t, f, visual.ChangeOptions{}, cadence.Options{}); got.Missed < want+3 || got.Missed > want+4 {
			t.Errorf("phase %d/20: %d missed refreshes of the recording's, want the beat's 3 or 4 more than %d", seed, got.Missed, want)
		}
	}
}

// TestBusyLoops: each stall of a known length is found where it is.
func TestBusyLoops(t *testing.T) {
	var shots []filmtest.Shot
	state := 0
	want := map[int]float64{}
	for _, loop := range []float64{30, 50, 100, 200} {
		for range 30 {
			shots = append(shots, filmtest.Shot{State: state})
			state++
		}
		hold := int(math.Ceil(loop * 60 / 1000))
		for range hold {
			shots = append(shots, filmtest.Shot{State: state - 1})
		}
		want[len(shots)] = loop
	}
	for range 30 {
		shots = append(shots, filmtest.Shot{State: state})
		state++
	}
	got := measure(t, filmtest.New(96, 54, 60, spot(96, 54), shots), visual.ChangeOptions{}, cadence.Options{})
	if len(got.Stalls) != len(want) {
		t.Fatalf("stalls %+v, want %v", got.Stalls, want)
	}
	for _, s := range got.Stalls {
		if d := s.ExtraMS - want[s.Frame]; math.Abs(d) > 1000.0/60 {
			t.Errorf("frame %d: a stall of %.1f ms, want %.1f within a frame", s.Frame, s.ExtraMS, want[s.Frame])
		}
	}
}

// TestRegions: an animation of 30 a second beside one of 60, and a caret that is ignored.
func TestRegions(t *testing.T) {
	const w, h = 120, 60
	scene := func(pix []byte, n int) {
		filmtest.Fill(pix, w, image.Rect(0, 0, w, h), 255, 255, 255)
		filmtest.Fill(pix, w, image.Rect(n%50, 10, n%50+5, 20), 0, 0, 0)
		half := n / 2 % 50
		filmtest.Fill(pix, w, image.Rect(60+half, 10, 65+half, 20), 0, 0, 0)
		if n%30 < 15 {
			filmtest.Fill(pix, w, image.Rect(30, 50, 32, 58), 0, 0, 0)
		}
	}
	f := filmtest.New(w, h, 60, scene, filmtest.Beat(240, 60, 60, 0))
	o := visual.ChangeOptions{Regions: []visual.Region{{Name: "left", Area: image.Rect(0, 0, 58, 30)},
		{Name: "right", Area: image.Rect(58, 0, 120, 30)}, {Name: "caret", Area: image.Rect(0, 40, 60, 60)}},
		Ignore: []image.Rectangle{image.Rect(30, 50, 32, 58)}}
	curves, err := visual.Changes(f, o)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []float64{60, 30, 0} {
		frames := make([]cadence.Frame, len(curves.Infos))
		for i, info := range curves.Infos {
			frames[i] = cadence.Frame{Index: i, Time: info.Time, Seq: info.Seq, Changed: curves.Regions[k].Changed[i] > 0}
		}
		r, err := cadence.Measure(frames, cadence.Options{})
		if err != nil || math.Abs(r.FPS-want) > 0.03 {
			t.Errorf("%s: %.2f frames a second (%v), want %v", curves.Regions[k].Name, r.FPS, err, want)
		}
	}
}

// TestLost: frames that the recorder lost are told, and are no missed refreshes of the rate.
func TestLost(t *testing.T) {
	f := filmtest.New(64, 48, 60, spot(64, 48), filmtest.Beat(100, 60, 60, 0)).Drop(40, 41, 70)
	r := measure(t, f, visual.ChangeOptions{}, cadence.Options{})
	if r.Lost != 3 || r.Missed != 3 || len(r.Stalls) != 2 {
		t.Errorf("lost %d, missed %d, stalls %v; want 3, 3 and 2", r.Lost, r.Missed, r.Stalls)
	}
}

// TestFew: nothing, one frame and equal frames have no rate, and never a NaN.
func TestFew(t *testing.T) {
	if _, err := cadence.Measure(nil, cadence.Options{}); err == nil {
		t.Error("no frames: no error")
	}
	back := []cadence.Frame{{Time: 5}, {Time: 3}}
	if _, err := cadence.Measure(back, cadence.Options{}); err == nil {
		t.Error("times that go back: no error")
	}
	for _, frames := range [][]cadence.Frame{{{}}, make([]cadence.Frame, 9), {{}, {Changed: true}}, {{}, {Changed: true}, {Changed: true}}} {
		r, err := cadence.Measure(frames, cadence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Measurements("any pixel differs") {
			if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) || m.Name == "animation_fps" {
				t.Errorf("%d frames: %s = %v", len(frames), m.Name, m.Value)
			}
		}
	}
}
