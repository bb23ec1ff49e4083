package motion

import (
	"image"

	"eidetic/analysis/lines"
	"eidetic/analysis/visual"
)

// tiles holds a hash of each row of side by side strips, of two frames; with across of each
// column of strips that lie one above the other. 0: the line has one colour.
type tiles struct {
	access   visual.Access
	area     image.Rectangle
	across   bool
	length   int // lines of a strip
	strips   int
	now, old []uint64 // strip after strip
	row      []uint32
	flat     []uint32 // the first pixel of each column of a strip
	found    lines.Table
}

func newTiles(a visual.Access, o ShiftOptions, across bool) *tiles {
	t := &tiles{access: a, area: o.Area, across: across, row: make([]uint32, o.Area.Dx())}
	t.length, t.strips = o.Area.Dy(), o.Area.Dx()/shiftWidth
	if across {
		t.length, t.strips = o.Area.Dx(), o.Area.Dy()/shiftWidth
		t.flat = make([]uint32, o.Area.Dx())
	}
	t.now, t.old = make([]uint64, t.length*t.strips), make([]uint64, t.length*t.strips)
	return t
}

// read makes the frame the present one, and the present one the one before.
func (t *tiles) read(pix visual.Raster) {
	t.now, t.old = t.old, t.now
	if t.across {
		t.readColumns(pix)
		return
	}
	for y := range t.length {
		for s := range t.strips {
			t.now[s*t.length+y] = t.access.StretchSum(pix, t.area.Min.Y+y, t.area.Min.X+s*shiftWidth, shiftWidth, t.row)
		}
	}
}

func (t *tiles) readColumns(pix visual.Raster) {
	differs := make([]uint32, t.length)
	for s := range t.strips {
		hashes := t.now[s*t.length:][:t.length]
		for k := range shiftWidth {
			t.access.Row(t.row, pix, t.area.Min.Y+s*shiftWidth+k, t.area.Min.X)
			if k == 0 {
				copy(t.flat, t.row)
				clear(differs)
				for x := range hashes {
					hashes[x] = 1
				}
			}
			for x, c := range t.row {
				h := (hashes[x] ^ uint64(c)) * hashPrime
				hashes[x] = h ^ h>>29
				differs[x] |= c ^ t.flat[x]
			}
		}
		for x, d := range differs {
			if d == 0 {
				hashes[x] = 0
			}
		}
	}
}

// moved marks what stands elsewhere than before, where it was and where it is, and returns the largest
// distance. Pieces that went equally far are one box: blank strips between them and beside them, as
// the end of a paragraph, went with them.
func (t *tiles) moved(mark *cover) (far int) {
	boxes := map[int]image.Rectangle{} // where it is, by distance
	for s := range t.strips {
		old, now := t.old[s*t.length:][:t.length], t.now[s*t.length:][:t.length]
		t.index(old)
		for y := 0; y < t.length; y++ {
			if now[y] == 0 || now[y] == old[y] {
				continue
			}
			from := t.found.At(now[y])
			if from < 0 {
				continue
			}
			by := y - from
			first, last := t.run(old, now, y, by)
			if last-first >= shiftRows && max(by, -by) >= shiftLeast {
				boxes[by] = boxes[by].Union(t.box(s, first, last))
			}
			y = last - 1
		}
	}
	for by, box := range boxes {
		far = max(far, by, -by)
		mark.set(box)
		if t.across {
			mark.set(box.Sub(image.Pt(by, 0)))
		} else {
			mark.set(box.Sub(image.Pt(0, by)))
		}
	}
	return far
}

// run is the stretch of lines around y that are those of before, moved by a distance. Lines of one
// colour, as between those of a text, belong to it within, and not at its ends.
func (t *tiles) run(old, now []uint64, y, by int) (first, last int) {
	same := func(y int) bool { return y >= 0 && y < len(now) && y-by >= 0 && y-by < len(old) && now[y] == old[y-by] }
	tells := func(y int) bool { return now[y] != 0 && now[y] != old[y] }
	first, last = y, y+1
	for i := y - 1; same(i); i-- {
		if tells(i) {
			first = i
		}
	}
	for i := y + 1; same(i); i++ {
		if tells(i) {
			last = i + 1
		}
	}
	return first, last
}

func (t *tiles) index(hashes []uint64) {
	t.found.Reset(len(hashes))
	for i, h := range hashes {
		if h != 0 {
			t.found.Add(h, i)
		}
	}
}

// box is a stretch of a strip, from the area's corner.
func (t *tiles) box(s, first, last int) image.Rectangle {
	if t.across {
		return image.Rect(first, s*shiftWidth, last, (s+1)*shiftWidth)
	}
	return image.Rect(s*shiftWidth, first, (s+1)*shiftWidth, last)
}

// cover is a set of pixels of an area.
type cover struct {
	area   image.Rectangle
	pixels []bool
}

func newCover(area image.Rectangle) *cover { return &cover{area: area} }

// set adds a rectangle, from the area's corner.
func (c *cover) set(r image.Rectangle) {
	if c.pixels == nil {
		c.pixels = make([]bool, c.area.Dx()*c.area.Dy())
	}
	r = r.Intersect(image.Rectangle{Max: c.area.Size()})
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := c.pixels[y*c.area.Dx()+r.Min.X:][:r.Dx()]
		for x := range row {
			row[x] = true
		}
	}
}

// count counts the pixels outside some rectangles of the frame.
func (c *cover) count(ignore []image.Rectangle) (n int) {
	if c.pixels == nil {
		return 0
	}
	for _, part := range visual.Without(c.area, ignore) {
		part = part.Sub(c.area.Min)
		for y := part.Min.Y; y < part.Max.Y; y++ {
			for _, set := range c.pixels[y*c.area.Dx()+part.Min.X:][:part.Dx()] {
				if set {
					n++
				}
			}
		}
	}
	return n
}
