package synthetic

import (
	"fmt"
	"math/rand/v2"

	"eidetic/internal/lab"
)

// canvas draws the frames of one content.
type canvas struct {
	f     lab.Format
	kind  Content
	pix   []byte
	sheet []byte // for Scroll: three screens of text-like rows; for Noise: random bytes
	drawn int    // frames drawn so far, for Load, which builds on them
}

func newCanvas(f lab.Format, kind Content) (*canvas, error) {
	c := &canvas{f: f, kind: kind, pix: make([]byte, f.FrameSize())}
	random := rand.New(rand.NewPCG(1, 2))
	switch kind {
	case Static, Load:
		fill(c.pix, 0xf0)
	case Scroll:
		c.sheet = make([]byte, 3*len(c.pix))
		textRows(c.sheet, f.Stride(), random)
	case Noise:
		c.sheet = make([]byte, 2*len(c.pix))
		for i := range c.sheet {
			c.sheet[i] = byte(random.Uint32())
		}
	default:
		return nil, fmt.Errorf("synthetic: content %q is not one of static, load, scroll, noise", kind)
	}
	return c, nil
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// textRows fills b with lines of words: dark strokes on a light ground.
func textRows(b []byte, stride int, random *rand.Rand) {
	fill(b, 0xf0)
	for line := 0; (line+1)*20*stride <= len(b); line++ {
		for x := 0; x < stride; {
			word := min(8*(2+random.IntN(10)), stride-x)
			for y := 4; y < 16; y++ {
				row := b[(line*20+y)*stride:]
				for i := x; i < x+word; i++ {
					if random.IntN(3) == 0 {
						row[i] = byte(0x20 + 16*random.IntN(8))
					}
				}
			}
			x += word + 8*(1+random.IntN(3))
		}
	}
}

// draw returns frame n, valid until the next call.
func (c *canvas) draw(n int) []byte {
	switch c.kind {
	case Load:
		for c.drawn <= n {
			c.block(c.drawn)
			c.drawn++
		}
	case Scroll:
		at := (n * 8 % (2 * c.f.Height)) * c.f.Stride()
		copy(c.pix, c.sheet[at:])
	case Noise:
		// A prime step, so that neighbouring frames share nothing.
		copy(c.pix, c.sheet[n*7919%len(c.pix):])
	}
	DrawCounter(c.f, c.pix, uint32(n))
	return c.pix
}

// block paints one piece of a page that loads, on every fifth frame of the first 300.
func (c *canvas) block(n int) {
	if n%5 != 0 || n >= 300 {
		return
	}
	random := rand.New(rand.NewPCG(uint64(n), 3))
	w, h := max(1, c.f.Width/8), max(1, c.f.Height/10)
	x0, y0 := random.IntN(max(1, c.f.Width-w)), random.IntN(max(1, c.f.Height-h))
	shade := byte(random.Uint32())
	for y := y0; y < y0+h; y++ {
		for x := x0; x < x0+w; x++ {
			setGrey(c.f, c.pix, x, y, shade+byte(x*y>>6))
		}
	}
}
