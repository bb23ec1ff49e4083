package motion_test

import (
	"image"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/motion"
	"eidetic/internal/lab"
)

// TestShifts: a banner comes in above a page and pushes what is below it down. The score is that
// of the Layout Instability specification for one element, the page: the share of the area that it
// covers before or after, times how far it went; lines of the page at the edges of the
// view, which only one frame shows, are all that may be missing.
func TestShifts(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 21))
		page := filmtest.NewPage(width, 2000, seed)
		top, by := r.IntN(height/3), 8+r.IntN(height/3)
		at := 10 + r.IntN(20)
		scene := func(pix []byte, n int) {
			page.Show(pix, width, height, 0, 300)
			if n >= at {
				stay := append([]byte(nil), pix[:4*width*top]...)
				page.Show(pix, width, height, 0, 300-by)
				copy(pix, stay)
				filmtest.Fill(pix, width, image.Rect(0, top, width, top+by), uint8(40+seed), 80, 200)
			}
		}
		f := filmtest.New(width, height, 60, scene, filmtest.Beat(60, 60, 60, 0))
		s, err := motion.Shifts(f, motion.ShiftOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// The strips of 32 pixels leave out what is right of the last whole one.
		covered := float64(width/32*32*(height-top)) / float64(width*height)
		want := covered * float64(by) / float64(max(width, height))
		if s.Worst != at || math.Abs(s.Sum-want) > 0.25*want {
			t.Errorf("seed %d: layout instability %.4f in frame %d, want %.4f in %d", seed, s.Sum, s.Worst, want, at)
		}
		excuse := lab.Event{Name: "click", Earliest: f.Info(at).Time.Add(-200 * time.Millisecond), Latest: f.Info(at).Time.Add(-190 * time.Millisecond)}
		if s, err = motion.Shifts(f, motion.ShiftOptions{Inputs: []lab.Event{excuse}}); err != nil || s.Sum != 0 || s.Worst != -1 {
			t.Errorf("seed %d: after a click: %+v, %v; want no instability", seed, s, err)
		}
	}
}

// TestNoShifts: what is painted, replaced or blinks in place does not shift.
func TestNoShifts(t *testing.T) {
	for seed := range uint64(20) {
		page := filmtest.NewPage(width, 2000, seed)
		scene := func(pix []byte, n int) {
			page.Show(pix, width, height, 0, 0)
			filmtest.Fill(pix, width, image.Rect(0, min(height*n/30, height), width, height), 255, 255, 255)
			if n%2 == 0 {
				filmtest.Fill(pix, width, image.Rect(20, 20, 22, 40), 0, 0, 0)
			}
		}
		s, err := motion.Shifts(filmtest.New(width, height, 60, scene, filmtest.Beat(60, 60, 60, 0)), motion.ShiftOptions{})
		if err != nil || s.Sum > 0.001 {
			t.Errorf("seed %d: %v, layout instability %v, want none", seed, err, s.Sum)
		}
	}
}
