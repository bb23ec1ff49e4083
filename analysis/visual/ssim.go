package visual

import (
	"image"
	"math"
)

// ssimTaps is the width of the window of SSIM.
const ssimTaps = 11

// Constants of SSIM for 8-bit pictures: (0.01·255)² and (0.03·255)².
const (
	ssimC1 = 2.55 * 2.55
	ssimC2 = 7.65 * 7.65
)

// ssimKernel is the Gaussian of pyssim, σ 1.5: it is centred at 5.5 and not at
// the middle tap 5, because the peer divides 11 by 2. Numbers that must agree
// with browsertime's need the same slip.
func ssimKernel() [ssimTaps]float64 {
	var k [ssimTaps]float64
	sum := 0.0
	for i := range k {
		d := float64(i) - ssimTaps/2.0
		k[i] = math.Exp(-0.5 * d * d / (1.5 * 1.5))
		sum += k[i]
	}
	for i := range k {
		k[i] /= sum
	}
	return k
}

// ssim compares pictures with one reference (Wang, Bovik, Sheikh and Simoncelli
// 2004, as pyssim computes it: grey, half-sample reflection at the borders,
// plain mean of the map). What does not depend on changed pixels is kept.
type ssim struct {
	size       image.Point
	kernel     [ssimTaps]float64
	ref        []float64 // grey values
	mu, square []float64 // of the reference: mean, and mean of squares − mean²

	grey, squares, products []float64 // of the picture: values, values², values × the reference's
	mean, meanSquare, cross []float64 // their means around each pixel
	similar                 []float64 // the map
	changed, reached        []span
	pass                    []float64 // scratch of convolve: a row
	started                 bool
}

func newSSIM(reference []uint32, size image.Point) *ssim {
	n := size.X * size.Y
	s := &ssim{size: size, kernel: ssimKernel(), changed: make([]span, size.Y), reached: make([]span, size.Y), pass: make([]float64, size.X)}
	for _, v := range []*[]float64{&s.ref, &s.mu, &s.square, &s.grey, &s.squares, &s.products, &s.mean, &s.meanSquare, &s.cross, &s.similar} {
		*v = make([]float64, n)
	}
	for i, p := range reference {
		v := float64(luma(p))
		s.ref[i], s.squares[i] = v, v*v
	}
	everything(s.reached, size.X)
	s.convolve(s.mu, s.ref)
	s.convolve(s.square, s.squares)
	for i, m := range s.mu {
		s.square[i] -= float64(m * m)
	}
	return s
}

// index returns the mean SSIM of the picture and the reference, 1 for equal ones. Only the stretches dirty, one a
// row, differ from the picture before.
func (s *ssim) index(picture []uint32, dirty []span) float64 {
	w := s.size.X
	copy(s.changed, dirty)
	if !s.started || min(w, s.size.Y) <= 2*ssimTaps {
		everything(s.changed, w)
		s.started = true
	}
	for y, c := range s.changed {
		for i := y*w + c.from; i < y*w+c.to; i++ {
			v := float64(luma(picture[i]))
			s.grey[i], s.squares[i], s.products[i] = v, v*v, v*s.ref[i]
		}
	}
	spread(s.reached, s.changed, ssimTaps/2+1, w)
	s.convolve(s.mean, s.grey)
	s.convolve(s.meanSquare, s.squares)
	s.convolve(s.cross, s.products)
	for y, c := range s.reached {
		for i := y*w + c.from; i < y*w+c.to; i++ {
			mu, ref := s.mean[i], s.mu[i]
			square, cross := s.meanSquare[i]-float64(mu*mu), s.cross[i]-float64(mu*ref)
			num := (float64(2*float64(mu*ref)) + ssimC1) * (float64(2*cross) + ssimC2)
			den := (float64(mu*mu) + float64(ref*ref) + ssimC1) * (square + s.square[i] + ssimC2)
			s.similar[i] = num / den
		}
	}
	sum := 0.0
	for _, v := range s.similar {
		sum += v
	}
	return sum / float64(len(s.similar))
}

// convolve is the separable correlation with the kernel, columns first, of what s.reached names.
func (s *ssim) convolve(dst, src []float64) {
	w, h := s.size.X, s.size.Y
	for y, c := range s.reached {
		if c.empty() {
			continue
		}
		around := c.wider(ssimTaps/2+1, w)
		column := s.pass[around.from:around.to]
		clear(column)
		for k, weight := range s.kernel {
			in := src[reflect(y+k-ssimTaps/2, h)*w:][around.from:around.to]
			for x, v := range in[:len(column)] {
				column[x] += float64(weight * v)
			}
		}
		out := dst[y*w:][:w]
		for x := c.from; x < c.to; x++ {
			sum := 0.0
			if x >= ssimTaps/2 && x+ssimTaps-ssimTaps/2 <= w {
				in := (*[ssimTaps]float64)(s.pass[x-ssimTaps/2:])
				for k, v := range in {
					sum += float64(s.kernel[k] * v)
				}
			} else {
				for k, weight := range s.kernel {
					sum += float64(weight * s.pass[reflect(x+k-ssimTaps/2, w)])
				}
			}
			out[x] = sum
		}
	}
}

// reflect maps an index into 0 … n−1 by half-sample reflection: d c b a | a b c d | d c b a.
func reflect(i, n int) int {
	i %= 2 * n
	if i < 0 {
		i += 2 * n
	}
	if i >= n {
		return 2*n - 1 - i
	}
	return i
}
