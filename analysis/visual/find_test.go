package visual

import (
	"errors"
	"image"
	"image/color"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"eidetic/internal/lab"
)

func TestFindContent(t *testing.T) {
	f := bgrx(64, 48)
	desk := canvas(f, grey)
	window := image.Rect(4, 10, 60, 46)
	on := func(pix []byte, r image.Rectangle, c color.RGBA) []byte {
		return paint(f, append([]byte(nil), pix...), r, c)
	}
	green := on(desk, window, lab.SyncGreen())
	noisy := on(desk, window, color.RGBA{9, 246, 11, 255}) // 9 + 9 + 11 = 29
	tooFar := on(desk, window, color.RGBA{10, 245, 10, 255})
	pointer := on(green, image.Rect(30, 20, 32, 24), black)
	half := on(desk, image.Rect(4, 10, 60, 28), lab.SyncGreen())
	page := on(desk, window, white)
	tests := []struct {
		name        string
		frames      [][]byte
		o           SyncOptions
		area        image.Rectangle
		first, last int
		want        string
	}{
		{"shown and left", [][]byte{desk, green, green, page, page}, SyncOptions{}, window, 1, 2, ""},
		{"from the first frame", [][]byte{green, page}, SyncOptions{}, window, 0, 0, ""},
		{"to the last frame", [][]byte{desk, green, green}, SyncOptions{}, window, 1, 2, ""},
		{"painted in two steps", [][]byte{desk, half, green, page}, SyncOptions{}, window, 2, 2, ""},
		{"a pointer inside", [][]byte{desk, pointer, page}, SyncOptions{}, window, 1, 1, ""},
		{"a pointer comes later", [][]byte{desk, green, pointer, page}, SyncOptions{}, window, 1, 2, ""},
		{"only the first run", [][]byte{desk, green, page, green, green}, SyncOptions{}, window, 1, 1, ""},
		{"a later run", [][]byte{desk, green, page, green, green}, SyncOptions{From: 2}, window, 3, 4, ""},
		{"near enough", [][]byte{noisy, page}, SyncOptions{}, window, 0, 0, ""},
		{"not near enough", [][]byte{tooFar, page}, SyncOptions{}, image.Rectangle{}, 0, 0, "no frame shows"},
		{"red is another page", [][]byte{desk, on(desk, window, lab.SyncRed())}, SyncOptions{}, image.Rectangle{}, 0, 0, "no frame shows"},
		{"too small", [][]byte{on(desk, image.Rect(0, 0, 9, 9), lab.SyncGreen())}, SyncOptions{}, image.Rectangle{}, 0, 0, "had 81 pixels"},
		{"empty range", [][]byte{desk}, SyncOptions{From: 1}, image.Rectangle{}, 0, 0, "recording of 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			area, first, last, err := FindContent(newFilm(f, tt.frames...), tt.o)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("error %v, want one with %q", err, tt.want)
				}
				if strings.Contains(tt.want, "no frame") && !errors.Is(err, ErrNoSync) {
					t.Fatalf("%v is not ErrNoSync", err)
				}
				return
			}
			if err != nil || area != tt.area || first != tt.first || last != tt.last {
				t.Errorf("got %v %d %d %v, want %v %d %d", area, first, last, err, tt.area, tt.first, tt.last)
			}
		})
	}
}

// TestLargestRectangle compares with trying all rectangles.
func TestLargestRectangle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 7).Draw(t, "w"), rapid.IntRange(1, 7).Draw(t, "h")
		m := &mask{bounds: image.Rect(0, 0, w, h), set: rapid.SliceOfN(rapid.Bool(), w*h, w*h).Draw(t, "set")}
		best := 0
		for y0 := range h {
			for x0 := range w {
				for y1 := y0 + 1; y1 <= h; y1++ {
					for x1 := x0 + 1; x1 <= w; x1++ {
						r := image.Rect(x0, y0, x1, y1)
						if n := r.Dx() * r.Dy(); m.within(r) == n {
							best = max(best, n)
						}
					}
				}
			}
		}
		got := m.largestRectangle()
		if n := got.Dx() * got.Dy(); n != best || m.within(got) != n || !got.In(m.bounds) && n > 0 {
			t.Fatalf("%v covers %d pixels of the colour, %d are possible", got, m.within(got), best)
		}
	})
}
