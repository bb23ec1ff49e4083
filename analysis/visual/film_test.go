package visual

import (
	"fmt"
	"image"
	"image/color"
	"math/rand/v2"
	"time"

	"eidetic/internal/lab"
)

// film is a recording in memory. It counts what analysis asks it for.
type film struct {
	format  lab.Format
	pix     [][]byte
	infos   []lab.FrameInfo
	decoded int // calls of Pixels
	back    int // calls of Pixels that went backwards
	last    int
	buf     []byte
	fail    int // frame whose pixels cannot be read, if > 0
}

func (f *film) Format() lab.Format       { return f.format }
func (f *film) Len() int                 { return len(f.pix) }
func (f *film) Info(i int) lab.FrameInfo { return f.infos[i] }
func (f *film) Pixels(i int) ([]byte, error) {
	if f.fail > 0 && i == f.fail {
		return nil, fmt.Errorf("block 7: checksum differs")
	}
	f.decoded++
	if i < f.last {
		f.back++
	}
	f.last = i
	// One buffer for all: whoever keeps a frame over the next call fails.
	f.buf = append(f.buf[:0], f.pix[i]...)
	return f.buf, nil
}

const period = time.Second / 60

// newFilm makes a recording at 60 Hz, whose clock starts at 1 s. Changed
// regions are the bounding boxes of what really differs.
func newFilm(f lab.Format, frames ...[]byte) *film {
	m := &film{format: f, last: -1}
	for i, pix := range frames {
		info := lab.FrameInfo{Seq: uint64(100 + i), Time: lab.Time(time.Second).Add(time.Duration(i) * period)}
		switch {
		case i == 0:
			info.Changed = []image.Rectangle{f.Bounds()}
		default:
			if box := differs(f, frames[i-1], pix); !box.Empty() {
				info.Changed = []image.Rectangle{box}
			} else {
				info.Flags = lab.FrameRepeat
			}
		}
		m.pix, m.infos = append(m.pix, pix), append(m.infos, info)
	}
	return m
}

// differs is the box of the pixels that differ, by the slow way.
func differs(f lab.Format, a, b []byte) image.Rectangle {
	var box image.Rectangle
	ca, cb := codes(f, a), codes(f, b)
	for i := range ca {
		if ca[i] != cb[i] {
			p := image.Pt(i%f.Width, i/f.Width)
			box = box.Union(image.Rectangle{p, p.Add(image.Pt(1, 1))})
		}
	}
	return box
}

func codes(f lab.Format, pix []byte) []code {
	p, err := newPlane(f)
	if err != nil {
		panic(err)
	}
	out := make([]code, f.Width*f.Height)
	for y := range f.Height {
		p.row(out[y*f.Width:][:f.Width], pix, y, 0)
	}
	return out
}

func bgrx(w, h int) lab.Format { return lab.Format{Pixels: lab.BGRX, Width: w, Height: h, Rate: 60} }

// paint fills r of a BGRX frame in place and returns it.
func paint(f lab.Format, pix []byte, r image.Rectangle, c color.RGBA) []byte {
	r = r.Intersect(f.Bounds())
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			copy(pix[y*f.Stride()+4*x:], []byte{c.B, c.G, c.R, 0})
		}
	}
	return pix
}

// canvas is a BGRX frame of one colour.
func canvas(f lab.Format, c color.RGBA) []byte {
	return paint(f, make([]byte, f.FrameSize()), f.Bounds(), c)
}

var (
	white = color.RGBA{255, 255, 255, 255}
	black = color.RGBA{0, 0, 0, 255}
	grey  = color.RGBA{100, 100, 100, 255}
)

// pageLoad imitates a load: n frames, white at first, then boxes of seeded
// colours and soft gradients come, some move, a late one covers others.
func pageLoad(f lab.Format, n int, seed uint64) *film {
	r := rand.New(rand.NewPCG(seed, 1))
	frames := [][]byte{canvas(f, white)}
	for i := 1; i < n; i++ {
		pix := append([]byte(nil), frames[i-1]...)
		if i >= 3 && r.IntN(3) > 0 {
			x, y := r.IntN(f.Width), r.IntN(f.Height)
			box := image.Rect(x, y, x+1+r.IntN(f.Width/2), y+1+r.IntN(f.Height/3)).Intersect(f.Bounds())
			c := color.RGBA{uint8(r.IntN(256)), uint8(r.IntN(256)), uint8(r.IntN(256)), 255}
			if r.IntN(2) == 0 {
				paint(f, pix, box, c)
			} else {
				for x := box.Min.X; x < box.Max.X; x++ {
					v := uint8(x * 255 / f.Width)
					paint(f, pix, image.Rect(x, box.Min.Y, x+1, box.Max.Y), color.RGBA{c.R, v, c.B / 2, 255})
				}
			}
		}
		frames = append(frames, pix)
	}
	return newFilm(f, frames...)
}
