package visual

import (
	"bytes"
	"encoding/binary"
	"image"
	"math/bits"
	"slices"
)

// applyRaw counts what differs in a rectangle from the frame before, and keeps the frame if it does not last.
// Rows that are equal, which most are on most screens, cost a comparison of memory.
func (w *changeWalk) applyRaw(pix Raster, r image.Rectangle) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		if pix.sameLine(w.last, y) {
			continue
		}
		cur, next := w.stretch(w.last, y, r), w.stretch(pix, y, r)
		if bytes.Equal(cur, next) {
			continue
		}
		for k := range w.regions {
			g := &w.regions[k]
			for _, part := range g.parts {
				if x0, x1 := max(part.Min.X, r.Min.X), min(part.Max.X, r.Max.X); y >= part.Min.Y && y < part.Max.Y && x0 < x1 {
					first, end := 4*(x0-r.Min.X), 4*(x1-r.Min.X)
					if w.o.Any && g.changed > 0 {
						continue
					}
					g.countRaw(cur[first:end], next[first:end], w.o)
				}
			}
		}
		if !pix.Lasting() && !w.last.Lasting() {
			copy(cur, next)
		} else if w.o.Any && !slices.ContainsFunc(w.regions, func(g changeRegion) bool { return g.changed == 0 }) {
			return // every region has its answer
		}
	}
}

// stretch returns the bytes of a row that lie in a rectangle.
func (w *changeWalk) stretch(pix Raster, y int, r image.Rectangle) []byte {
	mem, at := pix.line(y)
	return mem[at*w.plane.stride:][4*r.Min.X : 4*r.Max.X]
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
		if o.NoLuma || o.Any {
			// A half that is not 0 sets its top bit when the largest value is added.
			changed += bits.OnesCount64(((a^b)&colourBits + 0x7fffffff7fffffff) & 0x8000000080000000)
			continue
		}
		changed += g.differing(uint32(a), uint32(b), o.LumaStep) + g.differing(uint32(a>>32), uint32(b>>32), o.LumaStep)
	}
	if len(cur) >= 4 {
		a, b := binary.LittleEndian.Uint32(cur)&0xffffff, binary.LittleEndian.Uint32(next)&0xffffff
		if o.NoLuma || o.Any {
			if a != b {
				changed++
			}
		} else {
			changed += g.differing(a, b, o.LumaStep)
		}
	}
	if g.changed += changed; o.Any {
		g.changed = min(g.changed, 1)
	}
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
