package visual_test

import (
	"errors"
	"image"
	"math"
	"testing"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

const width, height = 96, 64

// painted is a green page for ten frames, then a page whose last box comes in frame 40.
func painted(sigma float64) *filmtest.Film {
	page := filmtest.NewPage(width, height, 4)
	f := filmtest.New(width, height, 60, func(pix []byte, n int) {
		if n < 10 {
			filmtest.Fill(pix, width, image.Rect(0, 0, width, height), 0, 250, 4)
			return
		}
		page.Show(pix, width, height, 0, 0)
		if n >= 40 {
			filmtest.Fill(pix, width, image.Rect(10, 10, 50, 40), 20, 30, 200)
		}
	}, filmtest.Beat(70, 60, 60, 0))
	if sigma > 0 {
		f.Over(filmtest.Noise(7, sigma))
	}
	return f
}

// TestFirstContentBehindNoise: a page that is one colour has no content yet, though a cable's noise makes no two of its
// pixels equal.
func TestFirstContentBehindNoise(t *testing.T) {
	for _, sigma := range []float64{0, 0.3, 0.5, 1, 2} {
		f := filmtest.New(width, height, 60, func(pix []byte, n int) {
			if n < 10 {
				filmtest.Fill(pix, width, image.Rect(0, 0, width, height), 0, 250, 4)
				return
			}
			filmtest.Fill(pix, width, image.Rect(0, 0, width, height), 240, 240, 240)
			if n >= 20 {
				filmtest.Fill(pix, width, image.Rect(10, 10, 40, 14), 90, 90, 90)
			}
		}, filmtest.Beat(40, 60, 60, 0))
		if sigma > 0 {
			f.Over(filmtest.Noise(7, sigma))
		}
		r, err := visual.Analyze(f, visual.Options{Start: 5})
		if err != nil {
			t.Fatal(err)
		}
		if r.FirstContent != 20 {
			t.Errorf("noise with a deviation of %v: first content in frame %d, want 20", sigma, r.FirstContent)
		}
	}
}

// TestColoursAsTheSourceSays: a pixel is of the colour that it stands for in the source's matrix and range.
func TestColoursAsTheSourceSays(t *testing.T) {
	for _, c := range []struct {
		f          lab.Format
		code, want uint32 // 0x00YYUUVV of pure red, or 0x00RRGGBB
	}{
		{lab.Format{Pixels: lab.YUYV}, 0x515af0, 0xfe0000},
		{lab.Format{Pixels: lab.YUYV, Matrix: lab.BT709}, 0x3f66f0, 0xff0100},
		{lab.Format{Pixels: lab.YUYV, Matrix: lab.BT2020}, 0x4a61f0, 0xff0001},
		{lab.Format{Pixels: lab.YUYV, Matrix: lab.BT601, Range: lab.FullRange}, 0x4c55ff, 0xfe0000},
		{lab.Format{Pixels: lab.BGRX, Range: lab.LimitedRange}, 0xeb107e, 0xff0080},
		{lab.Format{Pixels: lab.BGRX}, 0xeb107e, 0xeb107e},
	} {
		c.f.Width, c.f.Height, c.f.Rate = 2, 1, 60
		a, err := visual.NewAccess(c.f)
		if err != nil {
			t.Fatal(err)
		}
		row := []uint32{c.code}
		if a.Colours(row); a.RGB(c.code) != c.want || row[0] != c.want {
			t.Errorf("%+v: %06x is %06x and %06x, want %06x", c.f, c.code, a.RGB(c.code), row[0], c.want)
		}
	}
}

// TestTolerance: the noise that the green page shows is the tolerance with which changes and
// the final frame are found, and without it every frame changes.
func TestTolerance(t *testing.T) {
	f := painted(1.2)
	tolerance, err := visual.Noise(f, f.Format().Bounds(), 0, 9)
	if err != nil || tolerance[1] < 3 || tolerance[1] > 20 {
		t.Fatalf("tolerance %v, %v; want the range of the noise and a quarter more", tolerance, err)
	}
	if clean, err := visual.Noise(painted(0), f.Format().Bounds(), 0, 9); err != nil || clean != (visual.Tolerance{}) {
		t.Errorf("a source without noise: tolerance %v, %v; want none", clean, err)
	}
	if _, err := visual.Noise(f, f.Format().Bounds(), 3, 3); !errors.Is(err, visual.ErrNoStill) {
		t.Errorf("one frame: %v, want %v", err, visual.ErrNoStill)
	}
	r, err := visual.Analyze(f, visual.Options{Start: 9, Tolerance: tolerance})
	if err != nil {
		t.Fatal(err)
	}
	if r.FirstChange != 10 || r.LastChange != 40 || r.Unique != 2 || r.LoadHistogram[len(r.LoadHistogram)-1] != 100 {
		t.Errorf("first change %d, last %d, %d unique, at the end %.1f %% equal; want 10, 40, 2 and 100", r.FirstChange, r.LastChange, r.Unique,
			r.LoadHistogram[len(r.LoadHistogram)-1])
	}
	if r, err = visual.Analyze(f, visual.Options{Start: 9}); err != nil || r.LastChange != 69 {
		t.Errorf("without tolerance: the last change is in %d (%v), want the last frame", r.LastChange, err)
	}
}

// TestSpeedline: a page that comes at once has its index there; a box that comes later adds its
// share of the time between. On generated loads both indices equal speedline's, see
// make bench-analysis.
func TestSpeedline(t *testing.T) {
	r, err := visual.Analyze(painted(0), visual.Options{Start: 9, Also: visual.Speedline | visual.Completeness})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, m := range r.Measurements() {
		values[m.Name] = m.Value
	}
	first, last := 1000.0/60, 31*1000.0/60
	share := r.Progress[20] / 100 // of the first paint, which is in frames 10 … 39
	if want := first + (last-first)*(1-share); math.Abs(values["speedline_index_ms"]-want) > 6 {
		t.Errorf("speedline_index_ms = %.2f, want %.2f", values["speedline_index_ms"], want)
	}
	if v := values["speedline_perceptual_index_ms"]; !(v >= first && v < last) {
		t.Errorf("speedline_perceptual_index_ms = %v, want between %v and %v", v, first, last)
	}
	if v := values["visual_readiness_ms"]; math.Abs(v-(last-first)) > 0.01 {
		t.Errorf("visual_readiness_ms = %v, want %v", v, last-first)
	}
	if v, ok := values["visual_complete_100_ms"]; !ok || math.Abs(v-last) > 0.01 {
		t.Errorf("visual_complete_100_ms = %v, want %v", v, last)
	}
}

// TestChangesRefuses: absurd regions are refused.
func TestChangesRefuses(t *testing.T) {
	f := painted(0)
	for _, o := range []visual.ChangeOptions{
		{Start: 70}, {End: 71},
		{Regions: []visual.Region{{Name: "beyond", Area: image.Rect(0, 0, width+1, 2)}}},
		{Regions: []visual.Region{{Name: "covered", Area: image.Rect(0, 0, 5, 5)}}, Ignore: []image.Rectangle{image.Rect(0, 0, 9, 9)}},
	} {
		if _, err := visual.Changes(f, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}
