package reel_test

import (
	"bytes"
	"image"
	"testing"

	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
	"eidetic/capture/synthetic/scene"
	"eidetic/internal/lab"
)

// TestRows: rows are those of the picture in one piece, forwards and at random places, are not written to again, and
// what is said to have stood in the frame before did, in most of a page that scrolls.
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

// TestFixedParts: on a page that scrolls under a header and beside a bar that stay, rows are shared all the same, and
// key frames are as seldom as where nothing stays.
func TestFixedParts(t *testing.T) {
	format := lab.Format{Pixels: lab.BGRX, Width: 1920, Height: 1080, Rate: 60}
	page, err := scene.New(scene.Scroll, format.Width, format.Height)
	if err != nil {
		t.Fatal(err)
	}
	const frames = 30
	var file bytes.Buffer
	w, err := reel.NewWriter(&file, reel.Header{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	pix := make([]byte, format.FrameSize())
	for i := range frames {
		page.Draw(pix, i)
		f := lab.Frame{Pix: pix, FrameInfo: lab.FrameInfo{Seq: uint64(i), Time: lab.Time(i) * 16_666_667, Changed: []image.Rectangle{format.Bounds()}}}
		if err := w.WriteFrame(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// With a key frame more it would be 150; each has 380 kB.
	if ratio := frames * format.FrameSize() / file.Len(); ratio < 300 {
		t.Errorf("the reel is %d times smaller than its pixels; want 300", ratio)
	}
	r, err := reel.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	before := map[*byte]bool{}
	for i := range frames {
		rows, _, err := r.Rows(i)
		if err != nil {
			t.Fatal(err)
		}
		shared, now := 0, map[*byte]bool{}
		for _, row := range rows {
			if now[&row[0]] = true; before[&row[0]] {
				shared++
			}
		}
		if i > 0 && shared < len(rows)*3/4 {
			t.Fatalf("frame %d shares %d of %d rows with the one before; want most", i, shared, len(rows))
		}
		before = now
	}
}
