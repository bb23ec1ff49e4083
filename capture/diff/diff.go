package diff

import (
	"bytes"
	"encoding/binary"
	"image"
	"math/bits"

	"eidetic/internal/lab"
)

// Tiles are tileBytes wide and tileRows high: small enough to part a caret
// from an animation beside it, large enough to cost little.
const (
	tileBytes = 256
	tileRows  = 8
	// maxRects bounds the list of one plane; beyond it the rectangles of a
	// tile row are joined into one.
	maxRects = 128
)

// Finder holds the scratch memory of comparisons; the zero value is ready.
// It is for one goroutine.
type Finder struct {
	dirty []bool
	open  []image.Rectangle
	next  []image.Rectangle
	units []image.Rectangle
}

// Frame appends to dst the rectangles of pixels, inside those of within, in
// which cur differs from prev. Both hold a frame of format f.
func (d *Finder) Frame(dst []image.Rectangle, f lab.Format, prev, cur []byte, within []image.Rectangle) []image.Rectangle {
	start := len(dst)
	for i, p := range Planes(f) {
		for _, w := range within {
			d.units = d.Plane(d.units[:0], p, prev, cur, p.FromPixels(w))
			for _, u := range d.units {
				r := p.ToPixels(u).Intersect(f.Bounds())
				if i > 0 && covered(dst[start:], r) {
					continue
				}
				dst = append(dst, r)
			}
		}
	}
	return dst
}

// covered says whether one of rs holds all of r.
func covered(rs []image.Rectangle, r image.Rectangle) bool {
	for _, c := range rs {
		if r.In(c) {
			return true
		}
	}
	return false
}

// Plane appends to dst the rectangles of units of plane p, inside within, in
// which cur differs from prev. They do not overlap.
func (d *Finder) Plane(dst []image.Rectangle, p Plane, prev, cur []byte, within image.Rectangle) []image.Rectangle {
	if within.Empty() {
		return dst
	}
	perTile := max(1, tileBytes/p.Unit)
	columns := (within.Dx() + perTile - 1) / perTile
	if cap(d.dirty) < columns {
		d.dirty = make([]bool, columns)
	}
	dirty := d.dirty[:columns]
	start := len(dst)
	d.open = d.open[:0]
	for y := within.Min.Y; y < within.Max.Y; y += tileRows {
		end := min(y+tileRows, within.Max.Y)
		if !d.tileRow(p, prev, cur, within, y, end, perTile, dirty) {
			dst = append(dst, d.open...)
			d.open = d.open[:0]
			continue
		}
		d.runs(within, y, end, perTile, dirty)
		if len(dst)-start+len(d.next) > maxRects {
			d.next = append(d.next[:0], image.Rect(d.next[0].Min.X, y, d.next[len(d.next)-1].Max.X, end))
		}
		dst = d.join(dst)
	}
	dst = append(dst, d.open...)
	for i := start; i < len(dst); i++ {
		dst[i] = trim(p, prev, cur, dst[i])
	}
	return dst
}

// tileRow marks the tiles of rows y … end in which something differs.
func (d *Finder) tileRow(p Plane, prev, cur []byte, within image.Rectangle, y, end, perTile int, dirty []bool) bool {
	any, all := false, false
	for row := y; row < end && !all; row++ {
		a := p.Row(prev, row, within.Min.X, within.Max.X)
		b := p.Row(cur, row, within.Min.X, within.Max.X)
		if bytes.Equal(a, b) {
			continue
		}
		if !any {
			clear(dirty)
			any = true
		}
		all = true
		step := perTile * p.Unit
		for c := range dirty {
			if dirty[c] {
				continue
			}
			from, to := c*step, min((c+1)*step, len(a))
			if bytes.Equal(a[from:to], b[from:to]) {
				all = false
			} else {
				dirty[c] = true
			}
		}
	}
	return any
}

// runs turns the marks of one tile row into rectangles in d.next.
func (d *Finder) runs(within image.Rectangle, y, end, perTile int, dirty []bool) {
	d.next = d.next[:0]
	for c := 0; c < len(dirty); c++ {
		if !dirty[c] {
			continue
		}
		from := c
		for c < len(dirty) && dirty[c] {
			c++
		}
		d.next = append(d.next, image.Rect(within.Min.X+from*perTile, y, min(within.Min.X+c*perTile, within.Max.X), end))
	}
}

// join grows open rectangles with those of d.next that continue them exactly,
// and moves those that end here to dst.
func (d *Finder) join(dst []image.Rectangle) []image.Rectangle {
	for _, o := range d.open {
		continued := false
		for i := range d.next {
			n := &d.next[i]
			if n.Min.X == o.Min.X && n.Max.X == o.Max.X && n.Min.Y == o.Max.Y {
				n.Min.Y, continued = o.Min.Y, true
				break
			}
		}
		if !continued {
			dst = append(dst, o)
		}
	}
	d.open, d.next = d.next, d.open
	return dst
}

// trim takes equal rows and columns off the edges of r.
func trim(p Plane, prev, cur []byte, r image.Rectangle) image.Rectangle {
	for r.Min.Y < r.Max.Y && bytes.Equal(p.Row(prev, r.Min.Y, r.Min.X, r.Max.X), p.Row(cur, r.Min.Y, r.Min.X, r.Max.X)) {
		r.Min.Y++
	}
	for r.Max.Y > r.Min.Y && bytes.Equal(p.Row(prev, r.Max.Y-1, r.Min.X, r.Max.X), p.Row(cur, r.Max.Y-1, r.Min.X, r.Max.X)) {
		r.Max.Y--
	}
	left, right := r.Dx()*p.Unit, 0
	for y := r.Min.Y; y < r.Max.Y && (left > 0 || right < r.Dx()*p.Unit); y++ {
		a, b := p.Row(prev, y, r.Min.X, r.Max.X), p.Row(cur, y, r.Min.X, r.Max.X)
		// Only what could move an edge is looked at: equal rows cost little.
		left = min(left, Prefix(a[:left], b[:left]))
		right = len(a) - Suffix(a[right:], b[right:])
	}
	if left < right {
		r.Min.X, r.Max.X = r.Min.X+left/p.Unit, r.Min.X+(right+p.Unit-1)/p.Unit
	}
	return r
}

// Prefix returns how many bytes at the start of a and b, of equal length, are equal.
func Prefix(a, b []byte) int {
	n := 0
	for ; n+8 <= len(a); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// Suffix returns how many bytes at the end of a and b, of equal length, are equal.
func Suffix(a, b []byte) int {
	n := len(a)
	for ; n >= 8; n -= 8 {
		if x := binary.LittleEndian.Uint64(a[n-8:]) ^ binary.LittleEndian.Uint64(b[n-8:]); x != 0 {
			return len(a) - n + bits.LeadingZeros64(x)/8
		}
	}
	for n > 0 && a[n-1] == b[n-1] {
		n--
	}
	return len(a) - n
}
