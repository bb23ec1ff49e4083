package visual

import (
	"image"
	"math"
)

// speedline computes the two indices of speedline (Lighthouse's, npm speedline-core):
// like browsertime's, but white begins at 249, the baseline is a white page in any case,
// times are not floored and the sum is not truncated, and similarity is that of image-ssim:
// windows of 8 × 8 that do not overlap, luma of ITU-R BT.709 in single precision.
type speedline struct {
	size           image.Point
	final          []float32 // luma
	white          [3][256]int32
	last           [3][256]int32
	base           float64   // similarity of a white page with the final frame
	times          []float64 // ms, of the start and of each frame that changed
	progress, ssim []float64 // 0 … 100
}

func newSpeedline(final []uint32, size image.Point) *speedline {
	s := &speedline{size: size, final: speedlineLuma(final)}
	s.last = speedlineHistogram(final)
	blank := make([]uint32, len(final))
	for i := range blank {
		blank[i] = 0xffffff
	}
	s.base = s.similar(speedlineLuma(blank))
	s.add(0, blank)
	return s
}

func speedlineLuma(pix []uint32) []float32 {
	out := make([]float32, len(pix))
	for i, p := range pix {
		out[i] = float32(float64(float64(p>>16&255)*0.212655) + float64(float64(p>>8&255)*0.715158) + float64(float64(p&255)*0.072187))
	}
	return out
}

func speedlineHistogram(pix []uint32) (h [3][256]int32) {
	for _, p := range pix {
		r, g, b := p>>16&255, p>>8&255, p&255
		if r >= 249 && g >= 249 && b >= 249 {
			continue
		}
		h[0][r]++
		h[1][g]++
		h[2][b]++
	}
	return h
}

// add takes in a frame that changed.
func (s *speedline) add(at float64, pix []uint32) {
	h := speedlineHistogram(pix)
	var match, total int64
	for c := range h {
		for i := range h[c] {
			target := abs32(s.last[c][i] - s.white[c][i])
			match += int64(min(abs32(h[c][i]-s.white[c][i]), target))
			total += int64(target)
		}
	}
	progress := 100.0
	if total > 0 {
		progress = math.Floor(float64(match) / float64(total) * 100)
	}
	ssim := 100.0
	if s.base < 1 {
		ssim = max(100*(s.similar(speedlineLuma(pix))-s.base)/(1-s.base), 0)
	}
	s.times, s.progress, s.ssim = append(s.times, at), append(s.progress, progress), append(s.ssim, ssim)
}

// similar is image-ssim's mean over windows. A window of a single pixel has no variance
// there (0 ÷ 0); here it is left out.
func (s *speedline) similar(pix []float32) float64 {
	const side = 8
	sum, n := 0.0, 0
	for y := 0; y < s.size.Y; y += side {
		for x := 0; x < s.size.X; x += side {
			w, h := min(side, s.size.X-x), min(side, s.size.Y-y)
			if w*h < 2 {
				continue
			}
			sum += s.window(pix, x, y, w, h)
			n++
		}
	}
	if n == 0 {
		return 1
	}
	return sum / float64(n)
}

func (s *speedline) window(pix []float32, x, y, w, h int) float64 {
	var ma, mb float64
	each := func(visit func(a, b float64)) {
		for row := y; row < y+h; row++ {
			for i := row*s.size.X + x; i < row*s.size.X+x+w; i++ {
				visit(float64(pix[i]), float64(s.final[i]))
			}
		}
	}
	each(func(a, b float64) { ma, mb = ma+a, mb+b })
	ma, mb = ma/float64(w*h), mb/float64(w*h)
	var va, vb, cov float64
	each(func(a, b float64) {
		va += float64((a - ma) * (a - ma))
		vb += float64((b - mb) * (b - mb))
		cov += float64((a - ma) * (b - mb))
	})
	n := float64(w*h - 1)
	va, vb, cov = va/n, vb/n, cov/n
	return (float64(2*ma*mb) + ssimC1) * (float64(2*cov) + ssimC2) / ((float64(ma*ma) + float64(mb*mb) + ssimC1) * (va + vb + ssimC2))
}

// indices returns the SpeedIndex and its perceptual flavour in ms.
func (s *speedline) indices() (index, perceptual float64) {
	first := -1
	for i, p := range s.progress {
		if p > 0 {
			first = i
			break
		}
	}
	if first < 0 {
		return 0, 0
	}
	index, perceptual = s.times[first], s.times[first]
	for i := first + 1; i < len(s.times); i++ {
		elapsed := s.times[i] - s.times[i-1]
		index += float64(elapsed * (1 - s.progress[i-1]/100))
		perceptual += float64(elapsed * (1 - s.ssim[i-1]/100))
	}
	return index, perceptual
}
