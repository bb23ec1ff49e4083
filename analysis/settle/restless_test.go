package settle_test

import (
	"image"
	"math/rand/v2"
	"testing"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/settle"
)

// TestRestless: a caret, a clock and a carousel on a page that loads are proposed, each as one box around
// it, and nothing of a page that settles or that scrolls until the end.
func TestRestless(t *testing.T) {
	const width, height = 320, 200
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 31))
		page := filmtest.NewPage(width, 3000, seed)
		x, y := 8*r.IntN(20), 8*r.IntN(12)
		kind := seed % 4
		boxes := []image.Rectangle{image.Rect(x, y, x+2, y+16), image.Rect(x, y, x+60, y+12), image.Rect(x, y, x+100, y+60), {}}
		scene := func(pix []byte, n int) {
			from := 0
			if seed == 19 { // scrolls until the end
				from = 3 * n
			}
			page.Show(pix, width, height, 0, from)
			if n < 60 {
				filmtest.Fill(pix, width, image.Rect(0, height*n/60, width, height), 255, 255, 255)
			}
			if box := boxes[kind]; !box.Empty() {
				filmtest.Fill(pix, width, box, uint8(n/15*37), uint8(n/15*91), 77)
			}
		}
		got, err := settle.Restless(filmtest.New(width, height, 60, scene, filmtest.Beat(240, 60, 60, 0)), settle.RestlessOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := boxes[kind]
		if want.Empty() || seed == 19 {
			if len(got) > 0 {
				t.Errorf("seed %d: %v proposed, want nothing", seed, got)
			}
			continue
		}
		if len(got) != 1 || !want.In(got[0]) || got[0].Dx() > want.Dx()+14 || got[0].Dy() > want.Dy()+14 {
			t.Errorf("seed %d: %v proposed, want a box close around %v", seed, got, want)
		}
	}
}

// TestIgnored: a strip that changes in every frame counts for nothing where it is ignored, though the cells that are
// looked at are larger, and for what it is where it is not.
func TestIgnored(t *testing.T) {
	const width, height = 320, 200
	strip := image.Rect(0, 0, 200, 4)
	page := filmtest.NewPage(width, height, 3)
	film := filmtest.New(width, height, 60, func(pix []byte, n int) {
		page.Show(pix, width, height, 0, 0)
		if n < 60 {
			filmtest.Fill(pix, width, image.Rect(0, height/2, width, height), 255, 255, 255)
		}
		filmtest.Fill(pix, width, strip, uint8(n*97), uint8(n*61), uint8(n*29))
	}, filmtest.Beat(150, 60, 60, 0))
	for _, ignore := range [][]image.Rectangle{{strip}, nil} {
		boxes, err := settle.Restless(film, settle.RestlessOptions{Options: settle.Options{Ignore: ignore}})
		if err != nil {
			t.Fatal(err)
		}
		camera, err := settle.Camera(film, settle.Options{Ignore: ignore})
		if err != nil {
			t.Fatal(err)
		}
		if is := len(boxes) == 0 && camera.Stable == 60; is != (ignore != nil) {
			t.Errorf("with %v ignored, %v is restless, and the picture stable from frame %d on", ignore, boxes, camera.Stable)
		}
	}
}
