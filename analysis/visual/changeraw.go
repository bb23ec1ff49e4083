package visual

import (
	"bytes"
	"encoding/binary"
	"image"
	"math/bits"
)

// applyRaw updates a rectangle of raw, and counts what differs if it is to. Rows that are equal,
// which most are on most screens, cost a comparison of memory.
func (w *changeWalk) applyRaw(pix []byte, r image.Rectangle, count bool) {
	stride, width := w.plane.stride, 4*w.bounds.Dx()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		next := pix[y*stride+4*r.Min.X:][:4*r.Dx()]
		cur := w.raw[(y-w.bounds.Min.Y)*width+4*(r.Min.X-w.bounds.Min.X):][:len(next)]
		if bytes.Equal(cur, next) {
			continue
		}
		for k := range w.regions {
			if !count {
				break
			}
			g := &w.regions[k]
			for _, part := range g.parts {
				if x0, x1 := max(part.Min.X, r.Min.X), min(part.Max.X, r.Max.X); y >= part.Min.Y && y < part.Max.Y && x0 < x1 {
					from, to := 4*(x0-r.Min.X), 4*(x1-r.Min.X)
					g.countRaw(cur[from:to], next[from:to], w.o)
				}
			}
		}
		copy(cur, next)
	}
}

// countRaw adds the pixels of a stretch that differ, two at a time.
func (g *changeRegion) countRaw(cur, next []byte, o ChangeOptions) {
	next = next[:len(cur)]
	changed := 0
	for len(cur) >= 8 {
		a, b := binary.LittleEndian.Uint64(cur)&colourBits, binary.LittleEndian.Uint64(next)&colourBits
		cur, next = cur[8:], next[8:]
		if a == b {
			continue
		}
		if o.NoLuma {
			// A half that is not 0 sets its top bit when the largest value is added.
			changed += bits.OnesCount64(((a^b)&colourBits + 0x7fffffff7fffffff) & 0x8000000080000000)
			continue
		}
		changed += g.differing(uint32(a), uint32(b), o.LumaStep) + g.differing(uint32(a>>32), uint32(b>>32), o.LumaStep)
	}
	if len(cur) >= 4 {
		a, b := binary.LittleEndian.Uint32(cur)&0xffffff, binary.LittleEndian.Uint32(next)&0xffffff
		if o.NoLuma {
			if a != b {
				changed++
			}
		} else {
			changed += g.differing(a, b, o.LumaStep)
		}
	}
	g.changed += changed
}

// differing is 1 for pixels that differ, and counts a step of luma.
func (g *changeRegion) differing(a, b uint32, step int) int {
	if a == b {
		return 0
	}
	if d := luma(a) - luma(b); d >= step || -d >= step {
		g.luma++
	}
	return 1
}
