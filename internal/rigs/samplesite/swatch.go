package samplesite

import "math"

// swatchSide is the width and height of a texture in swatches.bin, in pixels.
const swatchSide = 128

// swatches makes four textures of 128 × 128 RGBA pixels, 65,536 bytes each. The page gets the
// first by a Range request and paints it on a canvas.
func swatches() []byte {
	palettes := [4][4][3]float64{
		{{236, 228, 214}, {198, 93, 59}, {47, 93, 80}, {216, 174, 124}},
		{{222, 227, 230}, {49, 71, 94}, {140, 150, 158}, {185, 85, 74}},
		{{214, 220, 205}, {96, 120, 84}, {228, 214, 180}, {60, 72, 56}},
		{{232, 214, 206}, {140, 74, 85}, {240, 232, 224}, {176, 122, 96}},
	}
	out := make([]byte, 0, 4*swatchSide*swatchSide*4)
	for k, colours := range palettes {
		seed := uint32(k*7919 + 1)
		next := func() float64 {
			seed ^= seed << 13
			seed ^= seed >> 17
			seed ^= seed << 5
			return float64(seed) / (1 << 32)
		}
		type chip struct{ x, y, r, turn, flat, c float64 }
		chips := make([]chip, 46)
		for i := range chips {
			chips[i] = chip{next() * swatchSide, next() * swatchSide, 2.5 + 8*next()*next(), next() * math.Pi, 0.5 + 0.5*next(), next()}
		}
		wrap := func(d float64) float64 { return d - swatchSide*math.Round(d/swatchSide) }
		for y := range swatchSide {
			for x := range swatchSide {
				colour := colours[0]
				for _, c := range chips {
					dx, dy := wrap(float64(x)-c.x), wrap(float64(y)-c.y)
					u, v := dx*math.Cos(c.turn)+dy*math.Sin(c.turn), dy*math.Cos(c.turn)-dx*math.Sin(c.turn)
					if math.Max(math.Abs(u)+0.4*math.Abs(v), math.Abs(v/c.flat)+0.3*math.Abs(u)) < c.r {
						colour = colours[1+int(c.c*3)]
					}
				}
				grain := 8 * (next() - 0.5)
				for _, v := range colour {
					out = append(out, byte(math.Max(0, math.Min(255, v+grain))))
				}
				out = append(out, 255)
			}
		}
	}
	return out
}
