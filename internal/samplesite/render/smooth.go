package main

import (
	"image"
	"math"
)

// smooth is a bilateral filter (Tomasi and Manduchi, 1998): it takes the
// grain of few rays out of flat areas and leaves edges and specks alone.
func smooth(src *image.NRGBA, radius int, spread float64) *image.NRGBA {
	b := src.Rect
	out := image.NewNRGBA(b)
	var weight [3 * 256]float64
	for i := range weight {
		weight[i] = math.Exp(-float64(i*i) / (2 * spread * spread))
	}
	abs := func(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }
	for y := range b.Dy() {
		for x := range b.Dx() {
			c := src.NRGBAAt(x, y)
			var sum [3]float64
			var total float64
			for j := max(0, y-radius); j <= min(b.Dy()-1, y+radius); j++ {
				for i := max(0, x-radius); i <= min(b.Dx()-1, x+radius); i++ {
					n := src.NRGBAAt(i, j)
					w := weight[abs(c.R, n.R)+abs(c.G, n.G)+abs(c.B, n.B)]
					total += w
					sum[0] += w * float64(n.R)
					sum[1] += w * float64(n.G)
					sum[2] += w * float64(n.B)
				}
			}
			o := out.PixOffset(x, y)
			for k := range 3 {
				out.Pix[o+k] = uint8(sum[k]/total + 0.5)
			}
			out.Pix[o+3] = 255
		}
	}
	return out
}
