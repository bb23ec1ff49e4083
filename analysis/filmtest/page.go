package filmtest

import (
	"image"
	"math"
	"math/rand/v2"
)

// Page is a picture that is larger than the screen: text, rules, boxes and smooth
// pictures on white, as real pages have them.
type Page struct {
	W, H int
	Pix  []byte // BGRX
}

// NewPage draws a page from a seed.
func NewPage(w, h int, seed uint64) *Page {
	r := rand.New(rand.NewPCG(seed, 3))
	p := &Page{W: w, H: h, Pix: make([]byte, 4*w*h)}
	Fill(p.Pix, w, image.Rect(0, 0, w, h), 255, 255, 255)
	for y := 6; y < h-20; {
		switch r.IntN(8) {
		case 0: // a picture
			box := image.Rect(r.IntN(max(w/2, 1)), y, w, min(y+40+r.IntN(80), h))
			p.photo(box, r.Uint64())
			y = box.Max.Y + 8
		case 1: // a box of one colour
			box := image.Rect(r.IntN(max(w/4, 1)), y, w-r.IntN(max(w/4, 1)), min(y+10+r.IntN(30), h))
			Fill(p.Pix, w, box, uint8(r.IntN(256)), uint8(r.IntN(256)), uint8(r.IntN(256)))
			y = box.Max.Y + 6
		default: // a line of text: words of strokes
			for x := 8; x < w-12; {
				for end := min(x+12+r.IntN(50), w-8); x < end; x += 3 + r.IntN(4) {
					top := r.IntN(4)
					Fill(p.Pix, w, image.Rect(x, y+top, min(x+1+r.IntN(3), w), y+6+r.IntN(6)), uint8(r.IntN(120)), 40, 40)
				}
				x += 6 + r.IntN(8)
			}
			y += 14 + r.IntN(4)
		}
	}
	return p
}

func (p *Page) photo(box image.Rectangle, seed uint64) {
	s := NewSmooth(seed, 9)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			v := s.At(float64(x), float64(y))
			px := p.Pix[4*(y*p.W+x):]
			px[0], px[1], px[2] = uint8(v*0.6), uint8(v), uint8(255-v/2)
		}
	}
}

// Show copies the part of the page whose corner is at x, y into a picture of w × h;
// what is beyond the page is white.
func (p *Page) Show(pix []byte, w, h, x, y int) {
	for row := range h {
		dst := pix[4*row*w : 4*(row+1)*w]
		sy := y + row
		if sy < 0 || sy >= p.H || x < 0 || x+w > p.W {
			for i := range dst {
				dst[i] = 255
			}
			if sy < 0 || sy >= p.H {
				continue
			}
			from, to := max(x, 0), min(x+w, p.W)
			if from < to {
				copy(dst[4*(from-x):], p.Pix[4*(sy*p.W+from):4*(sy*p.W+to)])
			}
			continue
		}
		copy(dst, p.Pix[4*(sy*p.W+x):])
	}
}

// Smooth is a band-limited picture that can be sampled anywhere: value noise in
// three octaves, whose finest cell is half of cell pixels.
type Smooth struct {
	grid [256 * 256]float32
	cell float64
}

// NewSmooth makes one from a seed.
func NewSmooth(seed uint64, cell float64) *Smooth {
	r := rand.New(rand.NewPCG(seed, 5))
	s := &Smooth{cell: cell}
	for i := range s.grid {
		s.grid[i] = r.Float32()
	}
	return s
}

// At returns 0 … 255.
func (s *Smooth) At(x, y float64) float64 {
	return 255 * (0.5*s.octave(x/(4*s.cell), y/(4*s.cell)) + 0.3*s.octave(x/s.cell+31, y/s.cell+17) +
		0.2*s.octave(2*x/s.cell+7, 2*y/s.cell+101))
}

func (s *Smooth) octave(x, y float64) float64 {
	fx, fy := math.Floor(x), math.Floor(y)
	u, v := fade(x-fx), fade(y-fy)
	at := func(dx, dy int) float64 {
		return float64(s.grid[(int(fy)+dy)&255<<8|(int(fx)+dx)&255])
	}
	top := at(0, 0) + (at(1, 0)-at(0, 0))*u
	bottom := at(0, 1) + (at(1, 1)-at(0, 1))*u
	return top + (bottom-top)*v
}

func fade(t float64) float64 { return t * t * t * (t*(t*6-15) + 10) }

// Moving draws a smooth picture w × h at a place and scale for each state: the pixel
// (x, y) shows the picture at (px + (x−w/2)/scale, py + (y−h/2)/scale).
func Moving(w, h int, s *Smooth, place func(n int) (px, py, scale float64)) Scene {
	return func(pix []byte, n int) {
		px, py, scale := place(n)
		for y := range h {
			for x := range w {
				v := uint8(math.Round(s.At(px+(float64(x)-float64(w)/2)/scale, py+(float64(y)-float64(h)/2)/scale)))
				d := pix[4*(y*w+x):][:4]
				d[0], d[1], d[2], d[3] = v, v, v, 0
			}
		}
	}
}
