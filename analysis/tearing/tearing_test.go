package tearing_test

import (
	"bytes"
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/tearing"
	"eidetic/analysis/visual"
	"eidetic/internal/rigs/testlab"
)

const width, height = 128, 120

// tear makes some shots torn, with a seam or with a band in the middle. The torn frame
// shows parts of the state before and of its own.
func tear(r *rand.Rand, shots []filmtest.Shot, likely int) (torn []int) {
	for i := 2; i < len(shots)-2; i++ {
		old, now := shots[i-1].State, shots[i].State
		if old == now || shots[i-1].Torn() && likely > 1 || r.IntN(likely) > 0 {
			continue
		}
		a := 15 + r.IntN(height-50)
		switch r.IntN(3) {
		case 0: // the new picture at the top
			shots[i].Bands = []filmtest.Band{{Row: a, State: old}}
		case 1: // at the bottom
			shots[i] = filmtest.Shot{State: old, Bands: []filmtest.Band{{Row: a, State: now}}}
		default: // a band in the middle
			shots[i].Bands = []filmtest.Band{{Row: a, State: old}, {Row: a + 25, State: now}}
		}
		torn = append(torn, i)
	}
	return torn
}

func frames(ts []tearing.Tear) (out []int) {
	for _, t := range ts {
		out = append(out, t.Frame)
	}
	return out
}

// disjoint draws images of which no two have a pixel in common: every state shifts all
// values.
func disjoint(pix []byte, n int) {
	for i := 0; i < len(pix); i += 4 {
		v := byte(i/4%7) + byte(n*11)
		pix[i], pix[i+1], pix[i+2] = v, v^0x5a, v+byte(i/4/width%5)
	}
}

// TestKnown: with images that share nothing each torn frame is found, with noise too.
func TestKnown(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		shots := filmtest.Beat(120, 60, 20, 0)
		want := tear(r, shots, 4)
		f := filmtest.New(width, height, 60, disjoint, shots)
		o := visual.ChangeOptions{}
		if seed%2 == 1 {
			f = filmtest.New(width, height, 60, func(pix []byte, n int) {
				filmtest.Fill(pix, width, image.Rect(0, 0, width, height), uint8(30+60*(n%4)), uint8(200-50*(n%4)), 99)
			}, shots).Over(filmtest.Noise(seed, 2))
			o.Tolerance = visual.Tolerance{20, 20, 20}
		}
		c, err := visual.Changes(f, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := frames(tearing.Known(c, 0).Tears); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("seed %d: torn frames %v, want %v", seed, got, want)
		}
	}
}

// TestScroll: torn frames of a page that is scrolled, single ones and one after
// another, with a header that stays.
func TestScroll(t *testing.T) {
	found, all := 0, 0
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 2))
		page := filmtest.NewPage(width, 4000, seed)
		header := seed%3 == 2
		scene := func(pix []byte, n int) {
			page.Show(pix, width, height, 0, 100+n*(5+int(seed%4)*3))
			if header {
				filmtest.Fill(pix, width, image.Rect(0, 0, width, 12), 20, 20, 60)
				filmtest.Fill(pix, width, image.Rect(9, 3, 40, 9), 250, 250, 250)
			}
		}
		rate := []float64{20, 30, 60}[seed%3]
		shots := filmtest.Beat(100, 60, rate, 0)
		shots = append(shots, filmtest.States(shots[99].State, shots[99].State, shots[99].State)...)
		want := tear(r, shots, 5)
		got, err := tearing.Find(filmtest.New(width, height, 60, scene, shots), tearing.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := filmtest.New(width, height, 60, scene, shots)
		for _, tear := range got.Tears {
			if !slices.Contains(want, tear.Frame) {
				t.Errorf("seed %d: frame %d is not torn: %+v", seed, tear.Frame, tear)
			}
		}
		for _, frame := range want {
			if visible(f, frame) {
				if all++; slices.Contains(frames(got.Tears), frame) {
					found++
				}
			}
		}
	}
	if all < 200 || 100*found < 95*all {
		t.Errorf("%d of %d torn frames were found, want 95 %%", found, all)
	}
}

// visible says that a torn frame can be told from either of the states that it shows: at least
// an eighth of its rows differ from each.
func visible(f *filmtest.Film, i int) bool {
	pix, _ := f.Pixels(i)
	torn := bytes.Clone(pix)
	for _, frame := range []int{i - 1, i + 1} {
		whole, _ := f.Pixels(frame)
		if f.Shot(frame).Torn() {
			continue
		}
		rows := 0
		for at := 0; at < len(torn); at += 4 * width {
			if !bytes.Equal(torn[at:at+4*width], whole[at:at+4*width]) {
				rows++
			}
		}
		if 8*rows < height {
			return false
		}
	}
	return true
}

// TestReplaced: torn frames of an animation that changes as a whole.
func TestReplaced(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := filmtest.NewSmooth(seed, 11)
		scene := func(pix []byte, n int) {
			for i := 0; i < len(pix); i += 4 {
				x, y := float64(i/4%width), float64(i/4/width)
				v := uint8(s.At(x*math.Cos(float64(n)/9)+y*math.Sin(float64(n)/9)+300, y*math.Cos(float64(n)/9)-x*math.Sin(float64(n)/9)+300))
				pix[i], pix[i+1], pix[i+2] = v, 255-v, uint8(n)
			}
		}
		shots := filmtest.Beat(120, 60, 20, 0)
		want := tear(r, shots, 8)
		got, err := tearing.Find(filmtest.New(width, height, 60, scene, shots), tearing.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(frames(got.Tears)) != fmt.Sprint(want) {
			t.Errorf("seed %d: torn frames %v, want %v", seed, frames(got.Tears), want)
		}
	}
}

// TestUntorn: ten thousand frames of pages that load, scroll under headers that stay,
// side by side, over carousels and videos, jump and flicker. None is torn.
func TestUntorn(t *testing.T) {
	looked, films := 0, testlab.Repeat(5, 20)
	for seed := range uint64(films) {
		r := rand.New(rand.NewPCG(seed, 4))
		page := filmtest.NewPage(width, 3000, seed+9)
		side := filmtest.NewPage(width, 3000, seed+77)
		at, places, loaded := 0, []int{}, []int{}
		for range 510 {
			switch r.IntN(20) {
			case 0:
				at = r.IntN(2800)
			case 1, 2, 3:
			default:
				at = min(max(at+int(9*math.Sin(float64(len(places))/20)), 0), 2800)
			}
			places = append(places, at)
			loaded = append(loaded, r.IntN(height))
		}
		kind := seed % 5
		scene := func(pix []byte, n int) {
			switch kind {
			case 0: // a header that stays, an advertisement that plays
				page.Show(pix, width, height, 0, places[n])
				filmtest.Fill(pix, width, image.Rect(0, 0, width, 14), 20, 20, 60)
				filmtest.Fill(pix, width, image.Rect(8, 4, 70, 9), 250, 250, 250)
				filmtest.Fill(pix, width, image.Rect(100, 60, 150, 90), uint8(n*9), uint8(n*31), 7)
			case 1: // a page that is painted row by row, again and again
				page.Show(pix, width, height, 0, places[n/40*40])
				filmtest.Fill(pix, width, image.Rect(0, height*(n%40)/40, width, height), 255, 255, 255)
			case 2: // two columns that scroll apart
				page.Show(pix, width, height, 0, places[n])
				half := make([]byte, len(pix))
				side.Show(half, width, height, 0, places[n]/2)
				for y := range height {
					copy(pix[4*(y*width+width/2):4*(y+1)*width], half[4*(y*width+width/2):])
				}
			case 3: // upper and lower parts that scroll in turns
				page.Show(pix, width, height, 0, places[n/100*50+min(n%100, 46)])
				half := make([]byte, len(pix))
				side.Show(half, width, height, 0, places[(n/100*50+max(n%100-50, 0)+137)%510])
				copy(pix[4*width*height/2:], half[4*width*height/2:])
			default: // parts that are painted in any order
				page.Show(pix, width, height, 0, 100)
				for k := n / 30 * 30; k <= n; k++ {
					filmtest.Fill(pix, width, image.Rect(0, loaded[k]/2, width, loaded[k]), uint8(k*7), uint8(k*3), uint8(k))
				}
			}
		}
		got, err := tearing.Find(filmtest.New(width, height, 60, scene, filmtest.Beat(510, 60, 60, 0)), tearing.Options{})
		if err != nil {
			t.Fatal(err)
		}
		looked += got.Looked
		if len(got.Tears) > 0 {
			t.Errorf("seed %d, kind %d: %d false tears: %+v", seed, kind, len(got.Tears), got.Tears[:min(len(got.Tears), 5)])
		}
	}
	if looked < 500*films {
		t.Errorf("%d frames were looked at, want 500 of each of %d films", looked, films)
	}
}

// TestOdd: absurd areas are refused; a single row and a single frame have no tear.
func TestOdd(t *testing.T) {
	f := filmtest.New(width, height, 60, disjoint, filmtest.Beat(9, 60, 60, 0))
	for _, o := range []tearing.Options{{Start: 9}, {End: 10}, {Area: image.Rect(0, 0, 1, height+1)}} {
		if _, err := tearing.Find(f, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	for _, o := range []tearing.Options{{End: 1}, {Area: image.Rect(0, 5, width, 6)}, {Area: image.Rect(0, 0, 1, height)}} {
		got, err := tearing.Find(f, o)
		if err != nil || len(got.Tears) > 0 {
			t.Errorf("%+v: %+v, %v; want no tear", o, got, err)
		}
	}
}
