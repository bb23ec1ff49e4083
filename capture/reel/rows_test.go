package reel_test

import (
	"bytes"
	"testing"

	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
)

// TestRows: rows are those of the picture in one piece, forwards and at random places, are not written to again, and what
// is said to have stood in the frame before did, in most of a page that scrolls.
func TestRows(t *testing.T) {
	const width, height = 320, 200 // of film
	for _, content := range []synthetic.Content{synthetic.Scroll, synthetic.Load, synthetic.Noise} {
		path, want := film(t, content, 60)
		r, err := reel.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		kept := make([][][]byte, r.Len())
		known := 0
		for n := range r.Len() + 20 {
			i := n
			if n >= r.Len() {
				i = n * 7 % r.Len()
			}
			rows, moves, err := r.Rows(i)
			if err != nil {
				t.Fatal(err)
			}
			if got := bytes.Join(rows, nil); !bytes.Equal(got, want[i]) {
				t.Fatalf("%s: frame %d has other rows than its picture", content, i)
			}
			kept[i] = rows
			for _, m := range moves {
				for y := m.R.Min.Y; y < m.R.Max.Y; y++ {
					now := want[i][4*(y*width+m.R.Min.X) : 4*(y*width+m.R.Max.X)]
					from := 4 * ((y+m.DY)*width + m.R.Min.X + m.DX)
					if !bytes.Equal(now, want[i-1][from:from+len(now)]) {
						t.Fatalf("%s: frame %d, row %d: %+v is not what stood there", content, i, y, m)
					}
				}
				if n == i {
					known += m.R.Dx() * m.R.Dy()
				}
			}
		}
		for i, rows := range kept {
			if !bytes.Equal(bytes.Join(rows, nil), want[i]) {
				t.Errorf("%s: the rows of frame %d were written to", content, i)
			}
		}
		if all := (r.Len() - 1) * width * height; content != synthetic.Noise && 2*known < all {
			t.Errorf("%s: %d of %d pixels stood in the frame before, want most", content, known, all)
		}
		for _, i := range []int{-1, r.Len()} {
			if _, _, err := r.Rows(i); err == nil {
				t.Errorf("frame %d: no error", i)
			}
		}
	}
}
