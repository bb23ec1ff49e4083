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
// plain mean of the map).
type ssim struct {
	size       image.Point
	kernel     [ssimTaps]float64
	ref        []float64 // grey values
	mu, square []float64 // of the reference: mean, and mean of squares − mean²
	// Scratch: grey values, products, the convolution's two passes.
	grey, product, pass, a, b, c []float64
}

func newSSIM(reference []uint32, size image.Point) *ssim {
	n := size.X * size.Y
	s := &ssim{size: size, kernel: ssimKernel(), ref: make([]float64, n), mu: make([]float64, n), square: make([]float64, n),
		grey: make([]float64, n), product: make([]float64, n), pass: make([]float64, n),
		a: make([]float64, n), b: make([]float64, n), c: make([]float64, n)}
	for i, p := range reference {
		s.ref[i] = float64(luma(p))
	}
	s.convolve(s.mu, s.ref)
	s.moments(s.square, s.ref, s.ref, s.mu, s.mu)
	return s
}

// moments writes the local covariance of x and y, given their local means.
func (s *ssim) moments(dst, x, y, mx, my []float64) {
	for i := range x {
		s.product[i] = x[i] * y[i]
	}
	s.convolve(dst, s.product)
	for i := range dst {
		dst[i] -= float64(mx[i] * my[i])
	}
}

// index returns the mean SSIM of the picture and the reference, 1 for equal ones.
func (s *ssim) index(picture []uint32) float64 {
	for i, p := range picture {
		s.grey[i] = float64(luma(p))
	}
	mu, square, cross := s.a, s.b, s.c
	s.convolve(mu, s.grey)
	s.moments(square, s.grey, s.grey, mu, mu)
	s.moments(cross, s.grey, s.ref, mu, s.mu)
	sum := 0.0
	for i := range mu {
		both := float64(mu[i] * s.mu[i])
		num := (float64(2*both) + ssimC1) * (float64(2*cross[i]) + ssimC2)
		den := (float64(mu[i]*mu[i]) + float64(s.mu[i]*s.mu[i]) + ssimC1) * (square[i] + s.square[i] + ssimC2)
		sum += num / den
	}
	return sum / float64(len(mu))
}

// convolve is the separable correlation with the kernel, columns first.
func (s *ssim) convolve(dst, src []float64) {
	w, h := s.size.X, s.size.Y
	clear(s.pass)
	for y := range h {
		out := s.pass[y*w:][:w]
		for k, weight := range s.kernel {
			in := src[reflect(y+k-ssimTaps/2, h)*w:][:w]
			for x, v := range in {
				out[x] += float64(weight * v)
			}
		}
	}
	for y := range h {
		in, out := s.pass[y*w:][:w], dst[y*w:][:w]
		for x := range out {
			sum := 0.0
			if x >= ssimTaps/2 && x+ssimTaps-ssimTaps/2 <= w {
				for k, v := range in[x-ssimTaps/2:][:ssimTaps] {
					sum += float64(s.kernel[k] * v)
				}
			} else {
				for k, weight := range s.kernel {
					sum += float64(weight * in[reflect(x+k-ssimTaps/2, w)])
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
