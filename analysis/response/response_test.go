package response_test

import (
	"errors"
	"image"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/response"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

const width, height = 200, 150

func at(frame float64) lab.Time {
	return filmtest.Started.Add(time.Duration(frame / 60 * float64(time.Second)))
}

// TestAnswers: inputs at known instants, answered in known frames, beside a caret that
// blinks elsewhere.
func TestAnswers(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		waits, lasts := []int{2 + r.IntN(20), 2 + r.IntN(20)}, []int{1 + r.IntN(15), 1 + r.IntN(15)}
		inputs := []int{10, 100}
		scene := func(pix []byte, n int) {
			filmtest.Fill(pix, width, image.Rect(0, 0, width, height), 255, 255, 255)
			if n/20%2 == 0 {
				filmtest.Fill(pix, width, image.Rect(5, 5, 7, 15), 0, 0, 0)
			}
			v := 0
			for k, in := range inputs {
				v += min(max(n-in-waits[k]+1, 0), lasts[k])
			}
			filmtest.Fill(pix, width, image.Rect(100, 50, 150, 90), uint8(255-v*8), 40, 40)
		}
		f := filmtest.New(width, height, 60, scene, filmtest.Beat(200, 60, 60, 0))
		if seed%2 == 1 {
			f.Over(filmtest.Noise(seed, 0.4))
		}
		region := image.Rect(90, 40, 160, 100)
		c, err := visual.Changes(f, visual.ChangeOptions{Regions: []visual.Region{{Name: "button", Area: region}}, Tolerance: visual.Tolerance{5, 5, 5}})
		if err != nil {
			t.Fatal(err)
		}
		var events []lab.Event
		for _, in := range inputs {
			events = append(events, lab.Event{Name: "click", Earliest: at(float64(in) - 0.3), Latest: at(float64(in) + 0.3)})
		}
		got, err := response.Measure(c, 0, events, response.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for k, a := range got {
			first, settled := inputs[k]+waits[k], inputs[k]+waits[k]+lasts[k]-1
			if a.First != first || a.Settled != settled {
				t.Errorf("seed %d: click %d answered in frame %d, settled in %d; want %d, %d", seed, k, a.First, a.Settled, first, settled)
			}
			truth := float64(waits[k]) * 1000 / 60
			if math.Abs(a.ToFirst.MS-truth) > 0.01 || a.ToFirst.Low > truth-16 || a.ToFirst.High < truth+4 {
				t.Errorf("seed %d: click %d answered after %+v, want %.2f ms with the frame and the input's interval as bounds", seed, k, a.ToFirst, truth)
			}
		}
		if n := len(response.Measurements(got, "button")); n != 4 {
			t.Errorf("%d measurements, want 4", n)
		}
	}
}

// TestNoAnswer: an input that nothing follows, and a change that never ends.
func TestNoAnswer(t *testing.T) {
	f := filmtest.New(width, height, 60, func(pix []byte, n int) {
		filmtest.Fill(pix, width, image.Rect(0, 0, width, height), uint8(max(n-60, 0)), 1, 2)
	}, filmtest.Beat(100, 60, 60, 0))
	c, err := visual.Changes(f, visual.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := response.Measure(c, 0, []lab.Event{{Earliest: at(5), Latest: at(5)}, {Earliest: at(50), Latest: at(50)}}, response.Options{})
	if err != nil || got[0].First != -1 || got[0].Settled != -1 || got[1].First != 61 || got[1].Settled != -1 {
		t.Errorf("%+v, %v; want no answer, and one in frame 61 that does not settle", got, err)
	}
	if _, err := response.Measure(c, 1, nil, response.Options{}); err == nil {
		t.Error("a region that is not there: no error")
	}
	if _, err := response.Measure(c, 0, []lab.Event{{Earliest: 2, Latest: 1}}, response.Options{}); err == nil {
		t.Error("an interval that is reversed: no error")
	}
}

// TestWindow: a window's final rectangle is found beside a clock that changed.
func TestWindow(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		x, y := 10+r.IntN(60), 20+r.IntN(40)
		want := image.Rect(x, y, x+40+r.IntN(80), y+30+r.IntN(50))
		scene := func(pix []byte, n int) {
			filmtest.Fill(pix, width, image.Rect(0, 0, width, height), 40, 60, 80)
			filmtest.Fill(pix, width, image.Rect(190, 2, 196, 8), uint8(n), 0, 0)
			if n >= 10 { // it grows to its size
				s := min(n-9, 8)
				filmtest.Fill(pix, width, image.Rect(want.Min.X, want.Min.Y, want.Min.X+want.Dx()*s/8, want.Min.Y+want.Dy()*s/8), 240, 240, 240)
			}
		}
		f := filmtest.New(width, height, 60, scene, filmtest.Beat(40, 60, 60, 0))
		got, err := response.Window(f, 0, 0, visual.Tolerance{})
		if err != nil || got != want {
			t.Errorf("seed %d: window %v (%v), want %v", seed, got, err, want)
		}
		if _, err := response.Window(f, 0, 9, visual.Tolerance{}); !errors.Is(err, response.ErrNoWindow) {
			t.Errorf("without a window: %v", err)
		}
	}
}

// TestFirstWindow: neither a caret nor nothing is a window; a splash screen that goes again is the first one.
func TestFirstWindow(t *testing.T) {
	scene := func(pix []byte, n int) {
		filmtest.Fill(pix, width, image.Rect(0, 0, width, height), 0, 255, 0)
		if n >= 5 {
			filmtest.Fill(pix, width, image.Rect(3, 3, 5, 13), 0, 0, 0)
		}
		switch {
		case n >= 12 && n < 20:
			filmtest.Fill(pix, width, image.Rect(80, 60, 120, 90), 40, 40, 40)
		case n >= 30:
			filmtest.Fill(pix, width, image.Rect(10, 20, 190, 140), 250, 250, 250)
		}
	}
	f := filmtest.New(width, height, 60, scene, filmtest.Beat(40, 60, 60, 0))
	for _, c := range []struct{ start, end, want int }{{0, 40, 12}, {0, 11, 0}, {22, 40, 30}} {
		if got, err := response.FirstWindow(f, c.start, c.end); got != c.want || err != nil {
			t.Errorf("FirstWindow(%d … %d) = %d, %v; want %d", c.start, c.end, got, err, c.want)
		}
	}
}

// counted counts how often each frame's pixels are read.
type counted struct {
	visual.Frames
	reads map[int]int
}

func (c counted) Pixels(i int) ([]byte, error) {
	c.reads[i]++
	return c.Frames.Pixels(i)
}

// TestFirstWindowReadsOnce: a frame is read once however many follow, and by what changed it is told where the picture
// differs from the first one: what changed back counts no more.
func TestFirstWindowReadsOnce(t *testing.T) {
	scene := func(pix []byte, n int) {
		filmtest.Fill(pix, width, image.Rect(0, 0, width, height), 0, 255, 0)
		if n > 0 { // a stroke that wanders: all that it ever covered would be a window
			filmtest.Fill(pix, width, image.Rect(4*n, 20, 4*n+3, 30), 0, 0, 0)
		}
		if n == 39 {
			filmtest.Fill(pix, width, image.Rect(13, 61, 100, 141), 250, 250, 250)
		}
	}
	f := counted{filmtest.New(width, height, 60, scene, filmtest.Beat(40, 60, 60, 0)), map[int]int{}}
	if got, err := response.FirstWindow(f, 0, 40); got != 39 || err != nil {
		t.Errorf("FirstWindow() = %d, %v; want 39", got, err)
	}
	for frame, n := range f.reads {
		if n > 1 {
			t.Errorf("frame %d was read %d times; want once", frame, n)
		}
	}
	if len(f.reads) != 40 {
		t.Errorf("%d frames were read; want 40", len(f.reads))
	}
}
