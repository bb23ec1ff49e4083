package reel_test

import (
	"bytes"
	"testing"

	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
)

// TestMovesAreTrue: what a reel says to have moved is what stood elsewhere in the frame before, in most of a
// page that scrolls.
func TestMovesAreTrue(t *testing.T) {
	const width, height = 320, 200 // of film
	path, want := film(t, synthetic.Scroll, 60)
	r, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	moved := 0
	for i := range r.Len() {
		if _, err := r.Pixels(i); err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Moves(i) {
			moved += m.R.Dx() * m.R.Dy()
			for y := m.R.Min.Y; y < m.R.Max.Y; y++ {
				now := want[i][4*(y*width+m.R.Min.X) : 4*(y*width+m.R.Max.X)]
				from := 4 * ((y+m.DY)*width + m.R.Min.X + m.DX)
				if !bytes.Equal(now, want[i-1][from:from+len(now)]) {
					t.Fatalf("frame %d, row %d: %+v is not what stood there", i, y, m)
				}
			}
		}
	}
	if all := (r.Len() - 1) * width * height; 2*moved < all {
		t.Errorf("%d of %d pixels moved, want most", moved, all)
	}
	if r.Moves(-1) != nil || r.Moves(r.Len()) != nil || r.Moves(0) != nil {
		t.Error("moves of frames that have none")
	}
}
