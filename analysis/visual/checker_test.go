package visual

import (
	"errors"
	"image"
	"image/color"
	"math/rand/v2"
	"testing"

	"eidetic/analysis/filmtest"
)

// checkered draws the pattern of corners around an area, as it is defined.
func checkered(pix []byte, width int, area image.Rectangle, dark, light uint8) {
	const cell, cells = 8, 4
	for _, at := range []struct {
		p    image.Point
		flip int
	}{
		{area.Min, 0}, {image.Pt(area.Max.X-cell*cells, area.Min.Y), 1}, {image.Pt(area.Min.X, area.Max.Y-cell*cells), 1},
		{area.Max.Sub(image.Pt(cell*cells, cell*cells)), 0},
	} {
		for y := range cells {
			for x := range cells {
				v := dark
				if (x+y)%2 != at.flip {
					v = light
				}
				box := image.Rect(x*cell, y*cell, (x+1)*cell, (y+1)*cell).Add(at.p)
				filmtest.Fill(pix, width, box, v, v, v)
			}
		}
	}
}

// TestCheckers: an area between four corners of checks is found to the pixel, on pages with much else, and
// so is where it was shown for the last time; a corner less, and nothing is found.
func TestCheckers(t *testing.T) {
	const width, height = 320, 240
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 41))
		area := image.Rect(r.IntN(60), r.IntN(40), width-r.IntN(60), height-r.IntN(40))
		page, missing := filmtest.NewPage(width, height, seed), seed%4 == 3
		scene := func(pix []byte, n int) {
			page.Show(pix, width, height, 0, 0)
			if n < 5 || n >= 12 {
				return
			}
			filmtest.Fill(pix, width, area, 200, 190, 240)
			checkered(pix, width, area, uint8(r.IntN(40)), uint8(255-r.IntN(40)))
			if missing {
				filmtest.Fill(pix, width, image.Rect(area.Max.X-32, area.Min.Y, area.Max.X, area.Min.Y+32), 255, 255, 255)
			}
		}
		f := filmtest.New(width, height, 60, scene, filmtest.Beat(20, 60, 60, 0))
		got, first, last, err := FindContent(f, SyncOptions{Checkers: true})
		if missing {
			if !errors.Is(err, ErrNoSync) {
				t.Errorf("seed %d: three corners: %v, %v", seed, got, err)
			}
			continue
		}
		if err != nil || got != area || first != 5 || last != 11 {
			t.Errorf("seed %d: %v in frames %d … %d, %v; want %v in 5 … 11", seed, got, first, last, err, area)
		}
	}
}

// TestOrange: the colour of the WebPageTest family marks an area as green does.
func TestOrange(t *testing.T) {
	f := bgrx(64, 48)
	window := image.Rect(4, 10, 60, 46)
	orange := paint(f, canvas(f, grey), window, SyncOrange())
	film := filmtest.New(64, 48, 60, func(pix []byte, n int) { copy(pix, orange) }, filmtest.Beat(3, 60, 60, 0))
	if got, _, _, err := FindContent(film, SyncOptions{Colour: SyncOrange()}); err != nil || got != window {
		t.Errorf("%v, %v; want %v", got, err, window)
	}
	if _, _, _, err := FindContent(film, SyncOptions{Colour: color.RGBA{R: 1, A: 255}}); !errors.Is(err, ErrNoSync) {
		t.Errorf("another colour: %v", err)
	}
}
