package motion_test

import (
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/motion"
	"eidetic/internal/lab"
)

// tiled is a page that is scrolled while tiles that come into view are drawn late.
type tiled struct {
	page   *filmtest.Page
	places []int
	late   map[int]int // row of tiles: frames from its first view until it is drawn
	first  map[int]int // row of tiles: the frame of its first view
	colour [3]uint8
}

const tileSide = 48

func newTiled(seed uint64, colour [3]uint8) *tiled {
	r := rand.New(rand.NewPCG(seed, 6))
	t := &tiled{page: &filmtest.Page{W: width, H: 4000, Pix: make([]byte, 4*width*4000)}, late: map[int]int{}, first: map[int]int{}, colour: colour}
	s := filmtest.NewSmooth(seed, 5)
	for i := 0; i < len(t.page.Pix); i += 4 {
		v := uint8(s.At(float64(i/4%width), float64(i/4/width)))
		t.page.Pix[i], t.page.Pix[i+1], t.page.Pix[i+2] = v, v, v/2+60
	}
	at := 0
	for i := range 60 {
		if i > 4 && i < 50 {
			at += 5 + r.IntN(20)
		}
		t.places = append(t.places, at)
		for tile := at / tileSide; tile*tileSide < at+height; tile++ {
			if _, seen := t.first[tile]; !seen {
				t.first[tile] = i
				if i > 0 {
					t.late[tile] = r.IntN(10)
				}
			}
		}
	}
	return t
}

func (t *tiled) blank(tile, frame int) bool { return frame < t.first[tile]+t.late[tile] }

func (t *tiled) scene(pix []byte, n int) {
	t.page.Show(pix, width, height, 0, t.places[n])
	for tile := t.places[n] / tileSide; tile*tileSide < t.places[n]+height; tile++ {
		if t.blank(tile, n) {
			box := image.Rect(0, tile*tileSide-t.places[n], width, (tile+1)*tileSide-t.places[n]).Intersect(image.Rect(0, 0, width, height))
			filmtest.Fill(pix, width, box, t.colour[0], t.colour[1], t.colour[2])
		}
	}
}

// share is the truth: rows of pixels in tiles that are not drawn yet.
func (t *tiled) share(n int) float64 {
	rows := 0
	for y := range height {
		if t.blank((t.places[n]+y)/tileSide, n) {
			rows++
		}
	}
	return 100 * float64(rows) / height
}

// TestBlank: the share of what is not drawn yet, by a known colour and learned, within
// one percent of the area.
func TestBlank(t *testing.T) {
	for seed := range uint64(20) {
		known := seed%2 == 0
		colour, o := [3]uint8{250, 250, 248}, motion.BlankOptions{}
		if known {
			colour, o.Colour = [3]uint8{255, 0, 255}, color.RGBA{R: 255, B: 255, A: 255} // Eideticker's magenta
		}
		truth := newTiled(seed, colour)
		f := filmtest.New(width, height, 60, truth.scene, filmtest.Beat(len(truth.places), 60, 60, 0))
		b := track(t, f, motion.Options{Blank: &o}).Blank
		sum := 0.0
		for i, got := range b.Share {
			want := truth.share(i)
			sum += got - want
			// Pieces that are cut by the edge of the view are not counted: up to one row of them.
			if limit := 3.5; math.Abs(got-want) > limit {
				t.Errorf("seed %d, frame %d: %.2f %% blank, want %.2f", seed, i, got, want)
			}
			if known && math.Abs(got-want) > 1e-9 {
				t.Errorf("seed %d, frame %d: %.4f %% magenta, want %.4f", seed, i, got, want)
			}
		}
		if mean := sum / float64(len(b.Share)); math.Abs(mean) > 1 {
			t.Errorf("seed %d: the mean share is wrong by %.2f %%, want at most 1", seed, mean)
		}
	}
}

// TestSummary: a flick that overshoots and comes back, with a known latency.
func TestSummary(t *testing.T) {
	page := filmtest.NewPage(width, 3000, 3)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		waiting, lag := 5+r.IntN(9), 1+r.IntN(5)
		var places []int
		frame := func(i float64) lab.Time { return filmtest.Started.Add(time.Duration(i / 60 * float64(time.Second))) }
		for range waiting {
			places = append(places, 100)
		}
		input := frame(float64(waiting - 1 - lag))
		for i := range 30 {
			places = append(places, 100+12*(i+1))
		}
		over := 4 + r.IntN(20)
		end := places[len(places)-1]
		places = append(places, end+over, end, end, end)
		scene := func(pix []byte, n int) { page.Show(pix, width, height, 0, places[n]) }
		p := track(t, filmtest.New(width, height, 60, scene, filmtest.Beat(len(places), 60, 60, 0)), motion.Options{})
		event := lab.Event{Name: "wheel", Earliest: input - 1e6, Latest: input + 1e6}
		s := p.Summarise(motion.SummaryOptions{Input: &event})
		if s.First != waiting || s.Last != waiting+31 || s.Y != -360 || s.Overshoot != float64(over) {
			t.Errorf("seed %d: frames %d … %d, moved %v, overshoot %v; want %d … %d, -360, %d", seed, s.First, s.Last, s.Y, s.Overshoot,
				waiting, waiting+31, over)
		}
		want := float64(lag+1) * 1000 / 60
		if m := s.Latency; m == nil || math.Abs(m.Value-want) > 0.01 || *m.Low > m.Value || *m.High < m.Value || *m.High-*m.Low < 16 {
			t.Errorf("seed %d: latency %+v, want %.1f ms with the frame before as a bound", seed, m, want)
		}
		for _, m := range s.Measurements() {
			if math.IsNaN(m.Value) || m.Method == "" {
				t.Errorf("%+v", m)
			}
		}
	}
}
