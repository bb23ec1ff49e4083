package motion_test

import (
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/motion"
	"eidetic/analysis/visual"
	"eidetic/internal/rigs/testlab"
)

const width, height = 288, 208

func track(t *testing.T, f *filmtest.Film, o motion.Options) *motion.Path {
	t.Helper()
	p, err := motion.Track(f, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != f.Len() {
		t.Fatalf("%d steps of %d frames", len(p.Steps), f.Len())
	}
	return p
}

// worst returns the largest error of a displacement and of a scale, and the frame.
func worst(p *motion.Path, want func(i int) (dx, dy, scale float64)) (px, scale float64, at int) {
	for i, s := range p.Steps {
		dx, dy, z := want(i)
		e, ez := math.Hypot(s.DX-dx, s.DY-dy), math.Abs(s.Scale-z)
		if e > px {
			px, at = e, i
		}
		scale = max(scale, ez)
	}
	return px, scale, at
}

// TestScroll: pages that are scrolled by whole pixels, with repeated frames, a header
// that stays, and an advertisement that moves by itself: exact.
func TestScroll(t *testing.T) {
	for seed := range uint64(testlab.Repeat(4, 20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			page := filmtest.NewPage(width, 3000, seed)
			across := seed%5 == 4
			if across {
				page = filmtest.NewPage(2400, height, seed)
			}
			places := []int{200}
			for i := 1; i < 40; i++ {
				v := int(30*math.Sin(float64(i)/7)) + r.IntN(9)
				if r.IntN(6) == 0 {
					v = 0
				}
				places = append(places, places[i-1]+v)
			}
			header := seed%3 == 0 && !across
			scene := func(pix []byte, n int) {
				if across {
					page.Show(pix, width, height, places[n], 0)
				} else {
					page.Show(pix, width, height, 0, places[n])
				}
				if header {
					filmtest.Fill(pix, width, image.Rect(0, 0, width, 30), 30, 30, 60)
					filmtest.Fill(pix, width, image.Rect(10, 8, 60, 20), 250, 250, 250)
				}
				if seed%4 == 1 {
					filmtest.Fill(pix, width, image.Rect(width-60, 100, width, 160), uint8(n*40), uint8(n*70), 99)
				}
			}
			p := track(t, filmtest.New(width, height, 60, scene, filmtest.Beat(len(places), 60, 60, 0)), motion.Options{})
			e, _, at := worst(p, func(i int) (float64, float64, float64) {
				d := 0.0
				if i > 0 {
					d = float64(places[i-1] - places[i])
				}
				if across {
					return d, 0, 1
				}
				return 0, d, 1
			})
			if e != 0 {
				t.Errorf("frame %d: wrong by %.2f pixels: %+v, want a step of %d", at, e, p.Steps[at], places[max(at-1, 0)]-places[at])
			}
		})
	}
}

// TestPan: an image map that is dragged by whole pixels in both directions: exact.
func TestPan(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 2))
		page := filmtest.NewPage(1500, 1500, seed+100)
		places := []image.Point{{500, 500}}
		for i := 1; i < 8; i++ {
			places = append(places, places[i-1].Add(image.Pt(r.IntN(40)-20, r.IntN(40)-20)))
		}
		scene := func(pix []byte, n int) { page.Show(pix, width, height, places[n].X, places[n].Y) }
		p := track(t, filmtest.New(width, height, 60, scene, filmtest.Beat(len(places), 60, 60, 0)), motion.Options{})
		e, _, at := worst(p, func(i int) (float64, float64, float64) {
			d := places[max(i-1, 0)].Sub(places[i])
			return float64(d.X), float64(d.Y), 1
		})
		if e != 0 {
			t.Errorf("seed %d, frame %d: wrong by %.2f pixels: %+v, want %v", seed, at, e, p.Steps[at], places[at-1].Sub(places[at]))
		}
	}
}

// TestFraction: fractional movement of a picture, with and without noise: a tenth of a pixel.
func TestFraction(t *testing.T) {
	for seed := range uint64(testlab.Repeat(4, 20)) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := filmtest.NewSmooth(seed, 8)
		type place struct{ x, y float64 }
		places := []place{{300, 300}}
		for i := 1; i < 5; i++ {
			places = append(places, place{places[i-1].x + 12*(r.Float64()-0.5), places[i-1].y + 30*(r.Float64()-0.5)})
		}
		scene := filmtest.Moving(width, height, s, func(n int) (float64, float64, float64) { return places[n].x, places[n].y, 1 })
		f := filmtest.New(width, height, 60, scene, filmtest.Beat(len(places), 60, 60, 0))
		o := motion.Options{}
		if seed%2 == 1 {
			f.Over(filmtest.Noise(seed, 3))
			o.Tolerance = visual.Tolerance{20, 20, 20}
		}
		p := track(t, f, o)
		e, _, at := worst(p, func(i int) (float64, float64, float64) {
			b, n := places[max(i-1, 0)], places[i]
			return b.x - n.x, b.y - n.y, 1
		})
		if e > 0.1 {
			t.Errorf("seed %d, frame %d: wrong by %.3f pixels: %+v, want %+v", seed, at, e, p.Steps[at], places)
		}
	}
}

// TestZoom: a picture that is zoomed and moved at once.
func TestZoom(t *testing.T) {
	for seed := range uint64(testlab.Repeat(4, 20)) {
		r := rand.New(rand.NewPCG(seed, 4))
		s := filmtest.NewSmooth(seed+50, 9)
		type place struct{ x, y, z float64 }
		places := []place{{300, 300, 1}}
		for i := 1; i < 4; i++ {
			b := places[i-1]
			places = append(places, place{b.x + 8*(r.Float64()-0.5), b.y + 8*(r.Float64()-0.5), b.z * (0.9 + 0.2*r.Float64())})
		}
		scene := filmtest.Moving(width, height, s, func(n int) (float64, float64, float64) { return places[n].x, places[n].y, places[n].z })
		p := track(t, filmtest.New(width, height, 60, scene, filmtest.Beat(len(places), 60, 60, 0)), motion.Options{Zoom: true})
		e, ez, at := worst(p, func(i int) (float64, float64, float64) {
			if i == 0 {
				return 0, 0, 1
			}
			b, n := places[i-1], places[i]
			return (b.x-n.x)*n.z + (n.z/b.z-1)*-0.5, (b.y-n.y)*n.z + (n.z/b.z-1)*-0.5, n.z / b.z
		})
		if e > 0.1 || ez > 0.001 {
			t.Errorf("seed %d, frame %d: wrong by %.3f pixels and %.4f of scale: %+v", seed, at, e, ez, p.Steps[at])
		}
	}
}

// TestNoMovement: what changes without moving is no displacement.
func TestNoMovement(t *testing.T) {
	page := filmtest.NewPage(width, height, 7)
	other := filmtest.NewPage(width, height, 8)
	for name, scene := range map[string]filmtest.Scene{
		"caret": func(pix []byte, n int) {
			page.Show(pix, width, height, 0, 0)
			if n%2 == 1 {
				filmtest.Fill(pix, width, image.Rect(40, 40, 42, 54), 0, 0, 0)
			}
		},
		"another page": func(pix []byte, n int) {
			if n%2 == 1 {
				other.Show(pix, width, height, 0, 0)
			} else {
				page.Show(pix, width, height, 0, 0)
			}
		},
		"flat colours": func(pix []byte, n int) { filmtest.Fill(pix, width, image.Rect(0, 0, width, height), uint8(n*60), 9, 9) },
	} {
		p := track(t, filmtest.New(width, height, 60, scene, filmtest.Beat(6, 60, 60, 0)), motion.Options{})
		for _, s := range p.Steps {
			if s.Moved() || math.IsNaN(s.Share) {
				t.Errorf("%s: frame %d: %+v, want no movement", name, s.Frame, s)
			}
		}
	}
}

// TestOdd: absurd areas are refused, tiny ones give a result.
func TestOdd(t *testing.T) {
	page := filmtest.NewPage(width, 600, 7)
	f := filmtest.New(width, height, 60, func(pix []byte, n int) { page.Show(pix, width, height, 0, 9*n) }, filmtest.Beat(4, 60, 60, 0))
	for _, o := range []motion.Options{{Start: 4}, {End: 5}, {Start: -1}, {Area: image.Rect(0, 0, width+1, 9)}} {
		if _, err := motion.Track(f, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	for _, a := range []image.Rectangle{image.Rect(3, 3, 4, 4), image.Rect(0, 0, width, 1), image.Rect(9, 0, 11, height), image.Rect(0, 0, 31, 33)} {
		p := track(t, f, motion.Options{Area: a, Zoom: true})
		for _, s := range p.Steps {
			if math.IsNaN(s.DX+s.DY+s.Scale+s.Share) || math.IsInf(s.DX+s.DY, 0) {
				t.Errorf("%v: %+v", a, s)
			}
		}
	}
	f.Fail = 2
	if _, err := motion.Track(f, motion.Options{}); err == nil {
		t.Error("a frame that cannot be read: no error")
	}
}
