package visual

import (
	"encoding/binary"
	"fmt"
	"image"
	"image/color"

	"eidetic/internal/lab"
)

// screen holds the content area of the present and of the final frame as codes, and
// is updated frame by frame.
type screen struct {
	plane  plane
	area   image.Rectangle   // in frame coordinates
	parts  []image.Rectangle // area without what is ignored, in frame coordinates
	cur    []code            // area.Dx() × area.Dy()
	final  []code
	equal  int // pixels of parts where cur equals final
	pixels int // pixels of parts
	heat   []uint16
	row    []code // scratch
	dirty  []span // of each row of the area, covers what the last frame changed

	tolerance Tolerance
	// uneven is by how many codes of a channel pixels of one colour differ on this screen: not at all, but where a
	// cable or a grabber adds noise.
	uneven int
}

// change is what one frame changed.
type change struct {
	pixels int // that differ from the frame before
	luma   int // whose luma differs by lumaStep or more
	fresh  int // that had not changed before
}

func newScreen(f lab.Format, area image.Rectangle, ignore []image.Rectangle) (*screen, error) {
	p, err := newPlane(f)
	if err != nil {
		return nil, err
	}
	s := &screen{plane: p, area: area, parts: []image.Rectangle{area}}
	for _, r := range ignore {
		s.parts = subtract(s.parts, r)
	}
	for _, r := range s.parts {
		s.pixels += r.Dx() * r.Dy()
	}
	if s.pixels == 0 {
		return nil, fmt.Errorf("the ignored areas cover the whole content area %v", area)
	}
	n := area.Dx() * area.Dy()
	s.cur, s.final, s.heat = make([]code, n), make([]code, n), make([]uint16, n)
	s.row, s.dirty = make([]code, area.Dx()), make([]span, area.Dy())
	return s, nil
}

// subtract returns the rectangles that cover rs without r, disjoint if rs are.
func subtract(rs []image.Rectangle, r image.Rectangle) []image.Rectangle {
	var out []image.Rectangle
	keep := func(x0, y0, x1, y1 int) {
		if x0 < x1 && y0 < y1 {
			out = append(out, image.Rect(x0, y0, x1, y1))
		}
	}
	for _, a := range rs {
		c := a.Intersect(r)
		if c.Empty() {
			out = append(out, a)
			continue
		}
		keep(a.Min.X, a.Min.Y, a.Max.X, c.Min.Y)
		keep(a.Min.X, c.Min.Y, c.Min.X, c.Max.Y)
		keep(c.Max.X, c.Min.Y, a.Max.X, c.Max.Y)
		keep(a.Min.X, c.Max.Y, a.Max.X, a.Max.Y)
	}
	return out
}

// read decodes a whole frame's content area into dst.
func (s *screen) read(dst []code, pix []byte) error {
	if err := s.plane.check(pix); err != nil {
		return err
	}
	w := s.area.Dx()
	for y := s.area.Min.Y; y < s.area.Max.Y; y++ {
		s.plane.row(dst[(y-s.area.Min.Y)*w:][:w], pix, y, s.area.Min.X)
	}
	return nil
}

// start begins the walk with the final frame's codes in s.final and the start frame's
// in s.cur. Areas that are ignored keep their content of the start frame.
func (s *screen) start() {
	w := s.area.Dx()
	live := make([]bool, len(s.cur))
	for _, r := range s.parts {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				live[(y-s.area.Min.Y)*w+x-s.area.Min.X] = true
			}
		}
	}
	s.equal = 0
	for i, ok := range live {
		switch {
		case !ok:
			s.final[i] = s.cur[i]
		case s.tolerance.Same(s.final[i], s.cur[i]):
			s.equal++
		}
	}
}

// apply updates the screen to the next frame, which differs from the one before only
// inside the rectangles of changed.
func (s *screen) apply(pix []byte, changed []image.Rectangle) (change, error) {
	var c change
	if err := s.plane.check(pix); err != nil {
		return c, err
	}
	clear(s.dirty)
	for _, r := range changed {
		for _, part := range s.parts {
			// Where two changed rectangles overlap, the second finds no
			// difference any more, so nothing is counted twice.
			s.applyRect(&c, pix, r.Intersect(part))
		}
	}
	return c, nil
}

func (s *screen) applyRect(c *change, pix []byte, r image.Rectangle) {
	w := s.area.Dx()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		next := s.row[:r.Dx()]
		at := (y-s.area.Min.Y)*w + r.Min.X - s.area.Min.X
		cur := s.cur[at:][:len(next)]
		first := 0
		if s.plane.bgrx {
			first = firstRaw(cur, pix[y*s.plane.stride+4*r.Min.X:][:4*len(next)])
		}
		if first == len(next) {
			continue
		}
		s.plane.row(next[first:], pix, y, r.Min.X+first)
		first += firstDifference(cur[first:], next[first:])
		if first == len(next) {
			continue
		}
		last := first
		final, heat := s.final[at:][:len(next)], s.heat[at:][:len(next)]
		for i := first; i < len(next); i++ {
			was, is := cur[i], next[i]
			if was == is || s.tolerance != (Tolerance{}) && s.tolerance.Same(was, is) {
				continue
			}
			last = i
			c.pixels++
			if heat[i] == 0 {
				c.fresh++
			}
			if heat[i] != 1<<16-1 {
				heat[i]++
			}
			if s.tolerance != (Tolerance{}) {
				s.equal += s.closer(was, is, final[i])
			} else {
				switch final[i] {
				case is:
					s.equal++
				case was:
					s.equal--
				}
			}
			if d := luma(s.plane.rgb(was)) - luma(s.plane.rgb(is)); d >= lumaStep || -d >= lumaStep {
				c.luma++
			}
			cur[i] = is
		}
		x, y := r.Min.X-s.area.Min.X, y-s.area.Min.Y
		s.dirty[y] = s.dirty[y].with(span{x + first, x + last + 1})
	}
}

// closer says whether a pixel came to equal the final one within the tolerance (1), ceased
// to (−1), or neither.
func (s *screen) closer(was, is, final code) int {
	before, now := s.tolerance.Same(was, final), s.tolerance.Same(is, final)
	switch {
	case now && !before:
		return 1
	case before && !now:
		return -1
	}
	return 0
}

// firstDifference returns the first index at which two slices of one length differ.
func firstDifference(a, b []code) int {
	b = b[:len(a)]
	for i, v := range a {
		if v != b[i] {
			return i
		}
	}
	return len(a)
}

// firstRaw returns an index before which pixels in BGRX equal codes: that of the first four that differ, or the slices'
// length.
func firstRaw(codes []code, pix []byte) int {
	n := len(codes)
	for len(codes) >= 4 && len(pix) >= 16 {
		a := binary.LittleEndian.Uint64(pix) ^ (uint64(codes[0]) | uint64(codes[1])<<32)
		b := binary.LittleEndian.Uint64(pix[8:]) ^ (uint64(codes[2]) | uint64(codes[3])<<32)
		if (a|b)&colourBits != 0 {
			break
		}
		codes, pix = codes[4:], pix[16:]
	}
	return n - len(codes)
}

// learnUneven fills in uneven from the synchronisation page, which is one colour: the farthest from its middle that is not
// rarer than one in a thousand, and a margin for those that are.
func (s *screen) learnUneven(sync color.RGBA) {
	var channels [3][256]int
	n := 0
	for _, v := range s.cur {
		if rgb := s.plane.rgb(v); isNear(rgb, sync) {
			n++
			channels[0][rgb>>16&255]++
			channels[1][rgb>>8&255]++
			channels[2][rgb&255]++
		}
	}
	for _, count := range channels {
		middle := 0
		for below := count[0]; middle < 255 && 2*below < n; below += count[middle] {
			middle++
		}
		beyond := 0
		for d := 255; d > 0; d-- {
			if middle-d >= 0 {
				beyond += count[middle-d]
			}
			if middle+d <= 255 {
				beyond += count[middle+d]
			}
			if beyond > n/1000 {
				s.uneven = max(s.uneven, 3*d+1)
				break
			}
		}
	}
}

// apart is by how many codes two pixels (0x00RRGGBB) differ, in the channel in which they do most.
func apart(a, b uint32) int {
	d := func(shift int) int {
		v := int(a>>shift&255) - int(b>>shift&255)
		return max(v, -v)
	}
	return max(d(16), d(8), d(0))
}

// alike says whether two pixels have one colour.
func (s *screen) alike(a, b code) bool {
	return a == b || s.uneven > 0 && apart(s.plane.rgb(a), s.plane.rgb(b)) <= s.uneven
}

// flat says whether the content is one colour, what is ignored left out.
func (s *screen) flat() bool {
	w := s.area.Dx()
	at := func(x, y int) int { return (y-s.area.Min.Y)*w + x - s.area.Min.X }
	want := s.cur[at(s.parts[0].Min.X, s.parts[0].Min.Y)]
	for _, r := range s.parts {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for _, v := range s.cur[at(r.Min.X, y):at(r.Max.X, y)] {
				if !s.alike(v, want) {
					return false
				}
			}
		}
	}
	return true
}

// flatBesides says whether the content is one colour where it is not near another, of which a strip is left over.
func (s *screen) flatBesides(other color.RGBA) bool {
	w := s.area.Dx()
	at := func(x, y int) int { return (y-s.area.Min.Y)*w + x - s.area.Min.X }
	var want code
	known := false
	lastCode, isOther := ^code(0), false
	for _, r := range s.parts {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for _, v := range s.cur[at(r.Min.X, y):at(r.Max.X, y)] {
				if v != lastCode {
					lastCode, isOther = v, isNear(s.plane.rgb(v), other)
				}
				if isOther {
					continue
				}
				if !known {
					want, known = v, true
				}
				if !s.alike(v, want) {
					return false
				}
			}
		}
	}
	return true
}
