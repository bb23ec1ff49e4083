package camera

import (
	"image"
	"math"

	"eidetic/internal/lab"
)

// keep takes over the blocks that have changed, and returns the area that covers them.
func (s *Source) keep() (area image.Rectangle) {
	across := s.format.Width / block
	// The difference of two pictures has √2 times the noise of one; five times that is left by a
	// pixel in a million.
	pixel := 5*math.Sqrt2*s.noise.Pixel + 3
	down := s.format.Height / block
	for i := range s.moves {
		s.moves[i] = s.first || s.moved(i, int(pixel))
	}
	// Blocks beside one that has moved are taken over too: a change that reaches into them by too
	// little to be told from noise would be noticed late, when noise adds to it.
	for i := range s.moves {
		x, y := i%across, i/across
		if !s.near(x, y, across, down) {
			continue
		}
		s.take(i)
		at := image.Pt(x*block, y*block)
		area = area.Union(image.Rectangle{at, at.Add(image.Pt(block, block))})
	}
	return area
}

// near says whether a block or one beside it has moved.
func (s *Source) near(x, y, across, down int) bool {
	for v := max(y-1, 0); v <= min(y+1, down-1); v++ {
		for u := max(x-1, 0); u <= min(x+1, across-1); u++ {
			if s.moves[v*across+u] {
				return true
			}
		}
	}
	return false
}

// moved says whether a block differs from what was delivered by more than noise and light can.
func (s *Source) moved(i, pixel int) bool {
	const many = 5 // pixels: fewer are noise, or smaller than what the camera resolves
	at := s.corner(i)
	var was, is [3]int
	far := 0
	for range block {
		old, now := s.pix[4*at:][:4*block], s.fresh[4*at:][:4*block]
		for x := 0; x < 4*block; x += 4 {
			worst := 0
			for c := range 3 {
				a, b := int(old[x+c]), int(now[x+c])
				was[c] += a
				is[c] += b
				worst = max(worst, a-b, b-a)
			}
			if worst > pixel+int(1.25*s.noise.Light*float64(max(old[x+1], now[x+1]))) {
				far++
			}
		}
		at += s.format.Width
	}
	if far >= many {
		return !s.isPage(meanOf(was), meanOf(is))
	}
	for c := range 3 {
		a, b := float64(was[c])/(block*block), float64(is[c])/(block*block)
		if math.Abs(a-b) > s.band(math.Max(a, b)) {
			return !s.isPage(meanOf(was), meanOf(is))
		}
	}
	return false
}

func meanOf(sum [3]int) (mean [3]float64) {
	for c := range sum {
		mean[c] = float64(sum[c]) / (block * block)
	}
	return mean
}

// band is how far the mean of a block with a brightness may go while the screen is still.
func (s *Source) band(brightness float64) float64 {
	return 1.5 + 6*math.Sqrt2*s.noise.Pixel/block + 1.25*s.noise.Light*brightness
}

// isPage says whether a block was delivered as the green page and still shows it.
func (s *Source) isPage(was, is [3]float64) bool {
	green := lab.SyncGreen()
	return was == [3]float64{float64(green.B), float64(green.G), float64(green.R)} && s.isGreen(is)
}

// isGreen says whether a mean is the page's, as the camera sees that.
func (s *Source) isGreen(mean [3]float64) bool {
	for c := range mean {
		if math.Abs(mean[c]-s.page[c]) > 2*s.band(s.page[1])+0.15*s.page[1] {
			return false
		}
	}
	return true
}

// take copies a block. The green page gets its own colour, which it is known by everywhere else;
// the camera's white balance and exposure have made another one of it.
func (s *Source) take(i int) {
	at, green := s.corner(i), lab.SyncGreen()
	page := s.isGreen(s.mean(i))
	for range block {
		row := s.pix[4*at:][:4*block]
		copy(row, s.fresh[4*at:][:4*block])
		for x := 0; page && x < len(row); x += 4 {
			row[x], row[x+1], row[x+2] = green.B, green.G, green.R
		}
		at += s.format.Width
	}
}
