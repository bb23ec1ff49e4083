package settle_test

import (
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/settle"
	"eidetic/analysis/visual"
	"eidetic/internal/rigs/testlab"
)

const width, height = 224, 128

// load is a page on which n things appear, the last in frame stable.
func load(seed uint64, frames int) (f *filmtest.Film, stable int) {
	r := rand.New(rand.NewPCG(seed, 1))
	page := filmtest.NewPage(width, height, seed)
	var shown []int
	for range 5 {
		shown = append(shown, 10+r.IntN(frames-60))
		stable = max(stable, shown[len(shown)-1])
	}
	boxes := make([]image.Rectangle, len(shown))
	for i := range boxes {
		x, y := r.IntN(width-80), r.IntN(height-60)
		boxes[i] = image.Rect(x, y, x+70, y+50)
	}
	scene := func(pix []byte, n int) {
		page.Show(pix, width, height, 0, 0)
		for i, at := range shown {
			if n >= at {
				filmtest.Fill(pix, width, boxes[i], uint8(40*i), 90, uint8(200-30*i))
			}
		}
	}
	return filmtest.New(width, height, 60, scene, filmtest.Beat(frames, 60, 60, 0)), stable
}

// camera lays over a film what a camera adds: a vignette, light that flickers at 100 or
// 120 Hz through the rows of a rolling shutter, exposure that drifts, and noise.
func camera(seed uint64, hertz, amount, drift, sigma float64) func([]byte, int) {
	noise := filmtest.Noise(seed, sigma)
	return func(pix []byte, n int) {
		for y := range height {
			phase := 2 * math.Pi * hertz * (float64(n)/60 + float64(y)/height/70)
			gain := (1 + amount*math.Sin(phase)) * (1 + drift*float64(n)/300)
			for x := range width {
				dx, dy := float64(x)/width-0.5, float64(y)/height-0.5
				g := gain * (0.85 - 0.5*(dx*dx+dy*dy))
				p := pix[4*(y*width+x):][:3]
				for c := range p {
					p[c] = uint8(min(float64(p[c])*g, 255))
				}
			}
		}
		noise(pix, n)
	}
}

// TestCameras: of recordings by cameras, how often each rule finds the stable frame to
// within one. The counts are those that docs/metrics.md tells.
func TestCameras(t *testing.T) {
	testlab.Long(t, "a hundred rendered films")
	const films = 4
	for _, tt := range []struct {
		name                        string
		hertz, amount, drift, sigma float64
		ours, pixels                int // at least, at most
	}{
		{"clean", 0, 0, 0, 0, films, films},
		{"noise", 0, 0, 0, 4, films, 0},
		{"flicker 100 Hz", 100, 0.05, 0, 4, films - 1, 0},
		{"flicker 120 Hz", 120, 0.05, 0, 4, films - 1, 0},
		{"exposure", 0, 0, 0.08, 4, films - 1, 0},
		{"all", 100, 0.05, 0.08, 4, films - 1, 0},
	} {
		var pixels, entropy, ours int
		for seed := range uint64(films) {
			f, want := load(seed, 90)
			if tt.sigma > 0 || tt.amount > 0 {
				f.Over(camera(seed, tt.hertz, tt.amount, tt.drift, tt.sigma))
			}
			c, err := visual.Changes(f, visual.ChangeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			e, err := settle.Entropy(f, settle.Options{})
			if err != nil {
				t.Fatal(err)
			}
			own, err := settle.Camera(f, settle.Options{})
			if err != nil {
				t.Fatal(err)
			}
			right := func(got int) int {
				if got >= want-1 && got <= want+1 {
					return 1
				}
				return 0
			}
			pixels += right(settle.ByPixels(c, 0, 2048))
			entropy += right(e.Stable)
			ours += right(own.Stable)
			for _, v := range append(e.Values, own.Values...) {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%s, seed %d: a value is %v", tt.name, seed, v)
				}
			}
		}
		t.Logf("%-15s pixels %2d, entropy %2d, ours %2d of %d", tt.name, pixels, entropy, ours, films)
		if ours < tt.ours || pixels > tt.pixels || ours < entropy {
			t.Errorf("%s: of %d films pixels are right in %d (want at most %d), entropy in %d, ours in %d (want %d or more, and entropy's)",
				tt.name, films, pixels, tt.pixels, entropy, ours, tt.ours)
		}
	}
}

// TestFew: one frame, equal frames and a recording that ends while it changes.
func TestFew(t *testing.T) {
	page := filmtest.NewPage(width, height, 3)
	scene := func(pix []byte, n int) {
		page.Show(pix, width, height, 0, 0)
		filmtest.Fill(pix, width, image.Rect(0, 0, width, height/2), uint8(n*50), 0, 0)
	}
	for _, tt := range []struct {
		shots []filmtest.Shot
		want  int
	}{
		{filmtest.States(1), 0},
		{filmtest.States(1, 1, 1, 1), 0},
		{filmtest.States(1, 1, 2), -1},
	} {
		f := filmtest.New(width, height, 60, scene, tt.shots)
		c, err := visual.Changes(f, visual.ChangeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := settle.ByPixels(c, 0, 2048); got != tt.want {
			t.Errorf("%v: by pixels stable in %d, want %d", tt.shots, got, tt.want)
		}
		for _, rule := range []func(visual.Frames, settle.Options) (*settle.Curve, error){settle.Entropy, settle.Camera} {
			if _, err := rule(f, settle.Options{}); err != nil {
				t.Error(err)
			}
			if _, err := rule(f, settle.Options{Start: 9}); err == nil {
				t.Error("a start beyond the end: no error")
			}
			if _, err := rule(f, settle.Options{Area: image.Rect(0, 0, 1, height+1)}); err == nil {
				t.Error("an area beyond the frame: no error")
			}
		}
	}
}
