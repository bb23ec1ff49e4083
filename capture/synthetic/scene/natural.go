package scene

import (
	"math"
	"math/rand/v2"
)

// noise is value noise in several octaves, whose spectrum falls as that of
// natural pictures does.
type noise struct{ grid [64 * 64]float32 }

func newNoise(seed uint64) *noise {
	n := &noise{}
	random := rand.New(rand.NewPCG(seed, 9))
	for i := range n.grid {
		n.grid[i] = random.Float32()
	}
	return n
}

// at interpolates the grid smoothly.
func (n *noise) at(x, y float64) float64 {
	fx, fy := math.Floor(x), math.Floor(y)
	ix, iy := int(fx)&63, int(fy)&63
	tx, ty := x-fx, y-fy
	tx, ty = tx*tx*(3-2*tx), ty*ty*(3-2*ty)
	a, b := float64(n.grid[iy*64+ix]), float64(n.grid[iy*64+(ix+1)&63])
	c, d := float64(n.grid[(iy+1)&63*64+ix]), float64(n.grid[(iy+1)&63*64+(ix+1)&63])
	return (a*(1-tx)+b*tx)*(1-ty) + (c*(1-tx)+d*tx)*ty
}

// colour returns a pixel of a landscape of soft shapes.
func (n *noise) colour(x, y float64) (r, g, b byte) {
	v, amplitude, scale := 0.0, 0.5, 1.0/180
	for range 6 {
		v += amplitude * n.at(x*scale, y*scale)
		amplitude, scale = amplitude/2, scale*2.03
	}
	h := n.at(x/400+20, y/300+30)
	return byte(30 + 200*v), byte(40 + 180*v*(0.6+0.4*h)), byte(50 + 190*v*(1-0.5*h))
}

// picture draws the landscape, w × h pixels BGRX.
func picture(w, h int) []byte {
	n := newNoise(11)
	pix := make([]byte, 4*w*h)
	for y := range h {
		for x := range w {
			i := 4 * (y*w + x)
			pix[i+2], pix[i+1], pix[i] = n.colour(float64(x), float64(y))
		}
	}
	return pix
}

// video pans over a landscape by fractional steps, and zooms slowly.
func video(width, height int) func([]byte, int) {
	w, h := width*3/2, height*3/2
	pix := picture(w, h)
	return func(dst []byte, n int) {
		zoom := 1 + 0.1*math.Sin(float64(n)/60)
		x0 := float64(width) / 5 * (1 + math.Sin(float64(n)/90))
		y0 := float64(height) / 5 * (1 + math.Cos(float64(n)/70))
		step := int(65536 * zoom)
		for y := range height {
			sy := int(y0*65536) + y*step
			iy, fy := min(sy>>16, h-2), sy>>8&255
			sx := int(x0 * 65536)
			for x := range width {
				ix, fx := min(sx>>16, w-2), sx>>8&255
				sx += step
				p := 4 * (iy*w + ix)
				q := p + 4*w
				o := 4 * (y*width + x)
				for c := range 3 {
					top := int(pix[p+c])*(256-fx) + int(pix[p+4+c])*fx
					low := int(pix[q+c])*(256-fx) + int(pix[q+4+c])*fx
					dst[o+c] = byte((top*(256-fy) + low*fy + 1<<15) >> 16)
				}
				dst[o+3] = 0
			}
		}
	}
}

// camera shows a still landscape with Gaussian noise that is new in every frame.
func camera(width, height int) func([]byte, int) {
	pix := picture(width, height)
	random := rand.New(rand.NewPCG(12, 13))
	table := make([]int8, 1<<22)
	for i := range table {
		table[i] = int8(math.Round(2 * random.NormFloat64()))
	}
	return func(dst []byte, n int) {
		r := rand.New(rand.NewPCG(uint64(n), 14))
		for i := 0; i < len(dst); i += 4 {
			k := int(r.Uint32()) & (1<<22 - 4)
			for c := range 3 {
				dst[i+c] = byte(max(0, min(255, int(pix[i+c])+int(table[k+c]))))
			}
			dst[i+3] = 0
		}
	}
}

// Convert turns BGRX into YUYV (ITU-R BT.601, limited range) of an even width.
func Convert(dst, bgrx []byte, width, height int) {
	for i := 0; i < width*height; i += 2 {
		p := bgrx[4*i : 4*i+8 : 4*i+8]
		b0, g0, r0 := int(p[0]), int(p[1]), int(p[2])
		b1, g1, r1 := int(p[4]), int(p[5]), int(p[6])
		r, g, b := r0+r1, g0+g1, b0+b1
		o := dst[2*i : 2*i+4 : 2*i+4]
		o[0] = byte((66*r0+129*g0+25*b0+128)>>8 + 16)
		o[1] = byte((-38*r-74*g+112*b+256)>>9 + 128)
		o[2] = byte((66*r1+129*g1+25*b1+128)>>8 + 16)
		o[3] = byte((112*r-94*g-18*b+256)>>9 + 128)
	}
}
