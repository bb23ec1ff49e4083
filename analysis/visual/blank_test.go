package visual

import (
	"image"
	"image/color"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// A recording that shows no page load says so; its metrics would be those of a very fast page.
func TestNoLoad(t *testing.T) {
	f := bgrx(160, 120)
	green := lab.SyncGreen()
	page := paint(f, canvas(f, white), image.Rect(10, 10, 30, 20), black)
	bubble := paint(f, canvas(f, green), image.Rect(10, 10, 40, 30), black)
	caret := paint(f, canvas(f, white), image.Rect(10, 10, 12, 30), black)
	noisy := canvas(f, white)
	for i := range noisy { // as a grabber's
		noisy[i] -= byte(i * i % 5)
	}
	for _, c := range []struct {
		name   string
		frames [][]byte
		ignore []image.Rectangle
		want   string
	}{
		{"a page", [][]byte{canvas(f, green), canvas(f, white), page}, nil, ""},
		{"nothing", [][]byte{page, page, page}, nil, "nothing changed on the screen"},
		{"white", [][]byte{canvas(f, green), canvas(f, white)}, nil, "the final picture is blank: all but 0 of 19200 pixels have the colour #ffffff"},
		{"white with a caret", [][]byte{canvas(f, green), page, caret}, nil, "all but 40 of 19200"},
		{"white with noise", [][]byte{canvas(f, green), page, noisy}, nil, "the final picture is blank"},
		{"white but for what is ignored", [][]byte{canvas(f, green), page}, []image.Rectangle{image.Rect(0, 0, 40, 40)}, "blank"},
		{"a bubble over the green page", [][]byte{canvas(f, green), bubble}, nil, "still the green synchronisation page in 18600 of 19200 pixels"},
		{"a page on green", [][]byte{canvas(f, green), canvas(f, white), bubble}, nil, ""},
		{"the first again", [][]byte{page, canvas(f, white), page}, nil, "the final picture is that of frame 0 again"},
	} {
		r, err := Analyze(newFilm(f, c.frames...), Options{Ignore: c.ignore})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := r.NoLoad(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: NoLoad() = %q, want %q", c.name, got, c.want)
		}
	}
}

// What a lossy source adds to every frame does not count as a change within Options.Tolerance.
func TestToleranceOfALossySource(t *testing.T) {
	f := bgrx(32, 24)
	var frames [][]byte
	for i := range 12 {
		c := color.RGBA{200, 200, 200, 255}
		if i >= 6 {
			c = color.RGBA{20, 20, 20, 255}
		}
		pix := canvas(f, c)
		for k := range pix {
			pix[k] += byte((i*7 + k*13) % 9)
		}
		frames = append(frames, pix)
	}
	first := func(tolerance uint8) (int, int) {
		r, err := Analyze(newFilm(f, frames...), Options{Tolerance: Tolerance{tolerance, tolerance, tolerance}})
		if err != nil {
			t.Fatal(err)
		}
		return r.FirstChange, r.LastChange
	}
	if a, b := first(0); a != 1 || b != 11 {
		t.Errorf("without a tolerance the first change is in frame %d and the last in %d, want 1 and 11", a, b)
	}
	if a, b := first(8); a != 6 || b != 6 {
		t.Errorf("with a tolerance of 8 the first change is in frame %d and the last in %d, want 6 and 6", a, b)
	}
}
