package reel

import (
	"image"

	"eidetic/capture/diff"
)

// Literals are told apart in tiles of this size.
const (
	tileBytes  = 256
	tileRows   = 32
	leastTiled = 4096 // bytes of a band below which the choice is not worth a part
)

// The kinds of tiles.
const (
	drawn  = iota // text, boxes: they repeat themselves and go through S2
	shaded        // photographs, noise: neighbours are nearly equal, and are predicted
	grey          // drawn, and without colour: one sample a pixel goes through S2
	tileKinds
)

// tileCodes are the codes for the kinds.
var tileCodes = [tileKinds]byte{drawn: codeS2, shaded: codePredicted, grey: codeGrey}

// tiles cuts a literal rectangle into tiles of one kind.
func (e *encoder) tiles(plane int, p diff.Plane, pix []byte, r image.Rectangle) {
	if r.Dx()*r.Dy()*p.Unit < leastTiled {
		e.planned[drawn] = append(e.planned[drawn], op{r: r})
		return
	}
	step := max(1, tileBytes/p.Unit)
	var open, next [tileKinds]int // where operations of the tile row above start, and of this one
	for k, ops := range e.planned {
		open[k] = len(ops)
	}
	for y := r.Min.Y; y < r.Max.Y; y += tileRows {
		end := min(y+tileRows, r.Max.Y)
		for k, ops := range e.planned {
			next[k] = len(ops)
		}
		kind := func(x int) int { return e.kind(plane, p, pix, image.Rect(x, y, min(x+step, r.Max.X), end)) }
		for x := r.Min.X; x < r.Max.X; {
			from, k := x, kind(x)
			for x += step; x < r.Max.X; x += step {
				if other := kind(x); other != k {
					break
				}
			}
			e.planned[k] = stack(e.planned[k], open[k], next[k], op{r: image.Rect(from, y, min(x, r.Max.X), end)})
		}
		for k, ops := range e.planned {
			if len(ops) > next[k] {
				open[k] = next[k]
			}
		}
	}
}

// kind looks at one tile.
func (e *encoder) kind(plane int, p diff.Plane, pix []byte, r image.Rectangle) int {
	switch {
	case isShaded(p, pix, r):
		return shaded
	case len(e.comps[plane]) > 1 && isGrey(e.format.Pixels, p, pix, r):
		return grey
	default:
		return drawn
	}
}

// stack grows the operation among ops[open:next] that tile continues
// downwards, or appends tile.
func stack(ops []op, open, next int, tile op) []op {
	for i := open; i < next; i++ {
		o := &ops[i]
		if o.kind == opLiteral && o.r.Max.Y == tile.r.Min.Y && o.r.Min.X == tile.r.Min.X && o.r.Max.X == tile.r.Max.X {
			o.r.Max.Y = tile.r.Max.Y
			return ops
		}
	}
	return append(ops, tile)
}

// isShaded says whether neighbouring pixels of a tile mostly differ. It looks at
// a few rows, in steps of eight bytes.
func isShaded(p diff.Plane, pix []byte, r image.Rectangle) bool {
	equal, all := 0, 0
	for y := r.Min.Y + r.Dy()/8; y < r.Max.Y; y += max(1, r.Dy()/4) {
		row := p.Row(pix, y, r.Min.X, r.Max.X)
		for i := 8; i+8 <= len(row); i += 8 {
			if get(row[i:]) == get(row[i-8:]) {
				equal++
			}
			all++
		}
	}
	return equal*2 < all
}
