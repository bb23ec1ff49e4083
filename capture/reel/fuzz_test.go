package reel

import (
	"bytes"
	"image"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// fuzzFormats are small, and have every plane layout.
var fuzzFormats = []lab.Format{
	{Pixels: lab.BGRX, Width: 70, Height: 40, Rate: 60},
	{Pixels: lab.BGR24, Width: 33, Height: 20, Rate: 60},
	{Pixels: lab.YUYV, Width: 64, Height: 36, Rate: 60},
	{Pixels: lab.UYVY, Width: 7, Height: 9, Rate: 60},
	{Pixels: lab.NV12, Width: 65, Height: 33, Rate: 60},
	{Pixels: lab.Grey, Width: 90, Height: 80, Rate: 60},
}

// example writes a reel that uses every kind of rectangle and compression, and
// returns it with the bodies of its frames.
func example(t testing.TB, f lab.Format) ([]byte, [][]byte) {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file, Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	pix := make([]byte, f.FrameSize())
	var bodies [][]byte
	noise := uint32(1)
	for n := range 12 {
		switch n % 6 {
		case 1: // noise: predicted
			for i := range pix {
				noise = noise*1664525 + 1013904223
				pix[i] = byte(100 + noise>>29)
			}
		case 2: // a move
			copy(pix, pix[f.Stride()*3:])
		case 3: // drawing: S2
			for i := len(pix) / 4; i < len(pix)/2; i++ {
				pix[i] = byte(i / 16 % 3)
			}
		case 4: // soft shades: small residuals
			for i := range pix {
				pix[i] = byte(i/f.Stride() + i%f.Stride()/16 + i*i>>9&1)
			}
		case 5: // drawing without colour
			for i := range pix {
				v := byte(i / 24 * 7 % 5 * 60)
				switch f.Pixels {
				case lab.BGRX:
					pix[i] = byte(i/4/12*7%5*60) * byte(1-i%4/3)
				case lab.BGR24:
					pix[i] = byte(i / 3 / 12 * 7 % 5 * 60)
				case lab.YUYV, lab.UYVY:
					if i%2 == 0 == (f.Pixels == lab.YUYV) {
						pix[i] = v
					} else {
						pix[i] = 128
					}
				default:
					pix[i] = v
				}
			}
		}
		fr := lab.Frame{Pix: pix}
		fr.Seq, fr.Time, fr.Changed = uint64(n), lab.Time(n), []image.Rectangle{f.Bounds()}
		if err := w.WriteFrame(fr); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, bytes.Clone(w.body))
	}
	if err := w.WriteGap(lab.Gap{Count: 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes(), bodies
}

// FuzzReader feeds whole files; their checksums stop most mutations early.
func FuzzReader(f *testing.F) {
	// Small ones, because they are minimised often.
	for _, format := range []lab.Format{fuzzFormats[3], {Pixels: lab.BGRX, Width: 5, Height: 20, Rate: 60}} {
		data, _ := example(f, format)
		f.Add(data)
		f.Add(data[:len(data)*2/3])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer testlab.Input(t)()
		r, err := NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil || r.Format().FrameSize() > 1<<20 {
			return
		}
		for i := range min(r.Len(), 20) {
			_ = r.Info(i)
			_, _ = r.Pixels(i)
		}
		_, _ = r.walk(nil)
	})
}

// FuzzDecode feeds frame bodies, behind the checksums.
func FuzzDecode(f *testing.F) {
	for n, format := range fuzzFormats {
		_, bodies := example(f, format)
		for i, b := range bodies {
			f.Add(byte(n), i == 0, b)
		}
	}
	f.Fuzz(func(t *testing.T, n byte, key bool, body []byte) {
		defer testlab.Input(t)()
		f := fuzzFormats[int(n)%len(fuzzFormats)]
		d := newDecoder(f, false)
		first, second := d.decode(body, key), d.decode(body, false)
		if len(d.planes) > 1 {
			return
		}
		r := newDecoder(f, true)
		if a, b := r.decodeRows(body, key, false), r.decodeRows(body, false, true); (a == nil) != (first == nil) || (b == nil) != (second == nil) {
			t.Errorf("rows: %v, %v; in one piece: %v, %v", a, b, first, second)
		}
	})
}

// FuzzFrameHead checks that a head that can be read is written the same way.
func FuzzFrameHead(f *testing.F) {
	bounds := image.Rect(0, 0, 1920, 1080)
	h := frameHead{index: 3, key: true, sum: 5}
	h.Seq, h.Time, h.Uncertainty, h.Changed = 7, -9, 11, []image.Rectangle{image.Rect(1, 2, 300, 400)}
	f.Add(h.append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer testlab.Input(t)()
		h, err := parseFrameHead(data, bounds)
		if err != nil {
			return
		}
		again, err := parseFrameHead(h.append(nil), bounds)
		if err != nil || again.sum != h.sum || again.Time != h.Time || len(again.Changed) != len(h.Changed) {
			t.Errorf("%+v became %+v (%v)", h, again, err)
		}
	})
}

// TestRowsOfFormats: rows of every format with one plane are those of the picture in one piece.
func TestRowsOfFormats(t *testing.T) {
	for _, f := range fuzzFormats {
		data, _ := example(t, f)
		r, err := NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Len() {
			want, err := r.Pixels(i)
			if err != nil {
				t.Fatal(err)
			}
			rows, moves, err := r.Rows(i)
			if err != nil {
				t.Fatal(err)
			}
			if f.Pixels == lab.NV12 {
				if rows != nil {
					t.Errorf("%s has rows", f.Pixels)
				}
				continue
			}
			if !bytes.Equal(bytes.Join(rows, nil), want) {
				t.Errorf("%s: frame %d has other rows than its picture", f.Pixels, i)
			}
			for _, m := range moves {
				if !m.R.In(f.Bounds()) || !m.R.Add(image.Pt(m.DX, m.DY)).In(f.Bounds()) {
					t.Errorf("%s: frame %d: the move %+v leaves the frame", f.Pixels, i, m)
				}
			}
		}
	}
}
