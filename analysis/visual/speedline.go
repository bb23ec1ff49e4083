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
	white, last    [3][256]int32
	base           float64   // similarity of a white page with the final frame
	times          []float64 // ms, of the start and of each frame that changed
	progress, ssim []float64 // 0 … 100

	pix     []uint32 // the picture, its luma and its histogram
	luma    []float32
	values  [3][256]int32
	windows [][]float64 // similarity of each window of a row of them
	changed []span
}

// speedlineSide is the side of a window.
const speedlineSide = 8

func newSpeedline(final []uint32, size image.Point) *speedline {
	s := &speedline{size: size, final: make([]float32, len(final)), luma: make([]float32, len(final)), pix: make([]uint32, len(final)),
		changed: make([]span, size.Y)}
	for y := 0; y < size.Y; y += speedlineSide {
		s.windows = append(s.windows, make([]float64, (size.X+speedlineSide-1)/speedlineSide))
	}
	for c := range s.values { // of the black picture that it begins with
		s.values[c][0] = int32(len(final))
	}
	everything(s.changed, size.X)
	s.take(final)
	copy(s.final, s.luma)
	s.last = s.values
	blank := make([]uint32, len(final))
	for i := range blank {
		blank[i] = 0xffffff
	}
	s.take(blank)
	s.base = s.similar()
	s.note(0)
	return s
}

func speedlineLuma(p uint32) float32 {
	return float32(float64(float64(p>>16&255)*0.212655) + float64(float64(p>>8&255)*0.715158) + float64(float64(p&255)*0.072187))
}

// count adds a pixel to the histogram with the sign.
func (s *speedline) count(p uint32, sign int32) {
	r, g, b := p>>16&255, p>>8&255, p&255
	if r >= 249 && g >= 249 && b >= 249 {
		return
	}
	s.values[0][r] += sign
	s.values[1][g] += sign
	s.values[2][b] += sign
}

// take makes pix the picture, which differs only where s.changed says.
func (s *speedline) take(pix []uint32) {
	for y, c := range s.changed {
		for i := y*s.size.X + c.from; i < y*s.size.X+c.to; i++ {
			s.count(s.pix[i], -1)
			s.count(pix[i], 1)
			s.pix[i], s.luma[i] = pix[i], speedlineLuma(pix[i])
		}
	}
}

// add takes in a frame that changed in the stretches dirty, one a row.
func (s *speedline) add(at float64, pix []uint32, dirty []span) {
	if copy(s.changed, dirty); len(s.times) == 1 { // the picture is still the white page
		everything(s.changed, s.size.X)
	}
	s.take(pix)
	s.note(at)
}

// note takes down what the picture has reached.
func (s *speedline) note(at float64) {
	var match, total int64
	for c := range s.values {
		for i, v := range s.values[c] {
			target := abs32(s.last[c][i] - s.white[c][i])
			match += int64(min(abs32(v-s.white[c][i]), target))
			total += int64(target)
		}
	}
	progress := 100.0
	if total > 0 {
		progress = math.Floor(float64(match) / float64(total) * 100)
	}
	ssim := 100.0
	if s.base < 1 {
		ssim = max(100*(s.similar()-s.base)/(1-s.base), 0)
	}
	s.times, s.progress, s.ssim = append(s.times, at), append(s.progress, progress), append(s.ssim, ssim)
}

// similar is image-ssim's mean over windows. A window of a single pixel has no variance
// there (0 ÷ 0); here it is left out.
func (s *speedline) similar() float64 {
	const side = speedlineSide
	sum, n := 0.0, 0
	for row, values := range s.windows {
		y := row * side
		h := min(side, s.size.Y-y)
		var dirty span
		for _, c := range s.changed[y : y+h] {
			dirty = dirty.with(c)
		}
		for i := range values {
			x := i * side
			w := min(side, s.size.X-x)
			if w*h < 2 {
				continue
			}
			if x < dirty.to && x+w > dirty.from {
				values[i] = s.window(x, y, w, h)
			}
			sum += values[i]
			n++
		}
	}
	if n == 0 {
		return 1
	}
	return sum / float64(n)
}

func (s *speedline) window(x, y, w, h int) float64 {
	var ma, mb float64
	for row := y; row < y+h; row++ {
		at := row*s.size.X + x
		final := s.final[at:][:w]
		for i, v := range s.luma[at:][:w] {
			ma, mb = ma+float64(v), mb+float64(final[i])
		}
	}
	ma, mb = ma/float64(w*h), mb/float64(w*h)
	var va, vb, cov float64
	for row := y; row < y+h; row++ {
		at := row*s.size.X + x
		final := s.final[at:][:w]
		for i, v := range s.luma[at:][:w] {
			a, b := float64(v)-ma, float64(final[i])-mb
			va += float64(a * a)
			vb += float64(b * b)
			cov += float64(a * b)
		}
	}
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
