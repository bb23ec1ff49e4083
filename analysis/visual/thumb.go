package visual

import (
	"image"
	"math"
)

// thumbSide is the box that browsertime scales frames to fit.
const thumbSide = 400

// thumb is the content area scaled down to fit 400×400 and its histogram, kept
// up to date by what changed.
//
// Each thumbnail pixel is the mean of the area it covers, weighted exactly and
// rounded half up in integers. browsertime lets ffmpeg scale (bicubic, in
// YUV); an area mean differs from it by a grey level or two at edges, is
// the same on every machine, and cannot ring. Areas already small enough are
// not scaled up, which would change no share of the histogram.
type thumb struct {
	src  image.Point // size of the content area
	size image.Point // size of the thumbnail
	pix  []uint32    // 0x00RRGGBB, size.X × size.Y
	hist histogram
	sums []uint64 // scratch: one row of sums, three channels
	// dirty is, for each row, the stretch that the last update computed anew.
	dirty []span
}

// histogram counts the pixels of each value in R, G and B.
type histogram [3][256]int32

func newThumb(src image.Point) *thumb {
	t := &thumb{src: src, size: thumbSize(src)}
	t.pix = make([]uint32, t.size.X*t.size.Y)
	t.sums, t.dirty = make([]uint64, 3*t.size.X), make([]span, t.size.Y)
	t.hist.add(t.pix, 1)
	return t
}

// thumbSize fits src into the box, keeping its shape, truncated as ffmpeg does.
func thumbSize(src image.Point) image.Point {
	if src.X <= thumbSide && src.Y <= thumbSide {
		return src
	}
	if src.X >= src.Y {
		return image.Pt(thumbSide, max(src.Y*thumbSide/src.X, 1))
	}
	return image.Pt(max(src.X*thumbSide/src.Y, 1), thumbSide)
}

// add counts pixels with the sign. A pixel whose channels are all 250 or more
// is dropped: white paper is not content (browsertime).
func (h *histogram) add(pix []uint32, sign int32) {
	for _, p := range pix {
		r, g, b := p>>16&255, p>>8&255, p&255
		if r >= 250 && g >= 250 && b >= 250 {
			continue
		}
		h[0][r] += sign
		h[1][g] += sign
		h[2][b] += sign
	}
}

// update recomputes what depends on dirty, a stretch of each row of the content area, from the content's codes.
func (t *thumb) update(codes []code, dirty []span, p plane) {
	clear(t.dirty)
	for y, s := range dirty {
		if s.empty() {
			continue
		}
		s = span{s.from * t.size.X / t.src.X, ((s.to-1)*t.size.X+t.size.X-1)/t.src.X + 1}
		for ty := y * t.size.Y / t.src.Y; ty <= (y*t.size.Y+t.size.Y-1)/t.src.Y; ty++ {
			t.dirty[ty] = t.dirty[ty].with(s)
		}
	}
	for ty, s := range t.dirty {
		if s.empty() {
			continue
		}
		out := t.pix[ty*t.size.X:][s.from:s.to]
		t.hist.add(out, -1)
		t.scaleRow(codes, ty, s.from, s.to, p)
		t.hist.add(out, 1)
	}
}

// scaleRow computes thumbnail pixels x0 … x1−1 of row ty. In units in which a
// source pixel is size.X × size.Y, a thumbnail pixel is src.X × src.Y, so all
// weights are whole.
func (t *thumb) scaleRow(codes []code, ty, x0, x1 int, p plane) {
	if t.src == t.size {
		out := t.pix[ty*t.size.X:][x0:x1]
		copy(out, codes[ty*t.src.X+x0:])
		for i, c := range out {
			if p.same {
				break
			}
			out[i] = p.rgb(c)
		}
		return
	}
	sums := t.sums[3*x0 : 3*x1]
	clear(sums)
	top, bottom := ty*t.src.Y, (ty+1)*t.src.Y
	for sy := top / t.size.Y; sy*t.size.Y < bottom; sy++ {
		wy := uint64(min(bottom, (sy+1)*t.size.Y) - max(top, sy*t.size.Y))
		row := codes[sy*t.src.X:][:t.src.X]
		for tx := x0; tx < x1; tx++ {
			left, right := tx*t.src.X, (tx+1)*t.src.X
			var r, g, b uint64
			for sx := left / t.size.X; sx*t.size.X < right; sx++ {
				wx := uint64(min(right, (sx+1)*t.size.X) - max(left, sx*t.size.X))
				c := row[sx]
				if !p.same {
					c = p.rgb(c)
				}
				r += wx * uint64(c>>16&255)
				g += wx * uint64(c>>8&255)
				b += wx * uint64(c&255)
			}
			s := sums[3*(tx-x0):][:3]
			s[0], s[1], s[2] = s[0]+wy*r, s[1]+wy*g, s[2]+wy*b
		}
	}
	area := uint64(t.src.X) * uint64(t.src.Y)
	for tx := x0; tx < x1; tx++ {
		s := sums[3*(tx-x0):][:3]
		t.pix[ty*t.size.X+tx] = uint32((s[0]+area/2)/area)<<16 | uint32((s[1]+area/2)/area)<<8 | uint32((s[2]+area/2)/area)
	}
}

// progress is visual progress in whole percent: of what must change in the histogram between start and final, how much
// has changed. What must change in a bin may be met by changes in bins i−below … i+above, taken greedily from below:
// browsertime's flavour has none but the bin itself, WebPageTest's (WPO's visualmetrics.py) five below and four above.
// The same frames give other numbers, so a result names its flavour.
func progress(h, start, final *histogram, below, above int) float64 {
	var matched, total int64
	for c := range h {
		var available [256]int32
		for i := range available {
			available[i] = abs32(h[c][i] - start[c][i])
		}
		for i := range available {
			target := abs32(final[c][i] - start[c][i])
			total += int64(target)
			for j := max(i-below, 0); j <= min(i+above, 255) && target > 0; j++ {
				n := min(target, available[j])
				available[j] -= n
				target -= n
				matched += int64(n)
			}
		}
	}
	if total == 0 {
		return 100
	}
	// In this order, as browsertime's floor(matched/total*100): 29 of 100 is 28 there.
	return math.Floor(float64(matched) / float64(total) * 100)
}

func abs32(v int32) int32 { return max(v, -v) }
