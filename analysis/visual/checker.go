package visual

import (
	"fmt"
	"image"

	"eidetic/internal/lab"
)

// A checker corner is a square of 4 × 4 cells of 8 × 8 pixels, black and white in turns. One stands in
// each corner of the content area, with a black cell in the area's own corner.
const (
	checkerCell  = 8
	checkerCells = 4
	checkerSide  = checkerCell * checkerCells
)

// findCheckers is findContent for the pattern of corners: the first run of frames in which four of them make
// a rectangle.
func findCheckers(frames Frames, p plane, o SyncOptions) (area image.Rectangle, first, last int, err error) {
	f := frames.Format()
	c := &checkers{plane: p, format: f, dark: make([]uint8, f.Width*f.Height), row: make([]code, f.Width)}
	most := 0
	first = -1
	for i := o.From; i < o.To; i++ {
		if i > o.From && len(frames.Info(i).Changed) == 0 {
			continue
		}
		pix, err := frames.Pixels(i)
		if err == nil {
			err = p.check(pix)
		}
		if err != nil {
			return area, 0, 0, fmt.Errorf("frame %d: %w", i, err)
		}
		c.read(pix)
		if first >= 0 {
			if !c.at(area) {
				return area, first, i - 1, nil
			}
			continue
		}
		corners := c.corners()
		most = max(most, len(corners))
		if area = rectangleOf(corners); !area.Empty() && isLarge(area.Dx()*area.Dy(), f.Width*f.Height) {
			first = i
		}
	}
	if first < 0 {
		return area, 0, 0, fmt.Errorf("%w: no four checker corners make a rectangle; the frame with the most has %d", ErrNoSync, most)
	}
	return area, first, o.To - 1, nil
}

// checkers says of each pixel whether it is black (1), white (2) or neither (0).
type checkers struct {
	plane  plane
	format lab.Format
	dark   []uint8
	row    []code
}

func (c *checkers) read(pix []byte) {
	for y := range c.format.Height {
		c.plane.row(c.row, pix, y, 0)
		out := c.dark[y*c.format.Width:][:c.format.Width]
		for x, v := range c.row {
			switch l := luma(c.plane.rgb(v)); {
			case l < 64:
				out[x] = 1
			case l > 191:
				out[x] = 2
			default:
				out[x] = 0
			}
		}
	}
}

// shows says whether a corner's square begins at a pixel, by the middles of its cells and by the outer ones'
// edges; flip has the black cell at the right.
func (c *checkers) shows(x, y int, flip bool) bool {
	if x < 0 || y < 0 || x+checkerSide > c.format.Width || y+checkerSide > c.format.Height {
		return false
	}
	for row := range checkerCells {
		for col := range checkerCells {
			want := uint8(1)
			if ((row+col)%2 == 1) != flip {
				want = 2
			}
			left, top := x+col*checkerCell, y+row*checkerCell
			for _, at := range []image.Point{{1, 1}, {checkerCell - 2, 1}, {1, checkerCell - 2}, {checkerCell - 2, checkerCell - 2}} {
				if c.dark[(top+at.Y)*c.format.Width+left+at.X] != want {
					return false
				}
			}
		}
	}
	return true
}

// corner is a square: its upper left pixel, and whether the black cell is at the right.
type corner struct {
	at   image.Point
	flip bool
}

// mostCorners bounds the squares that are looked at: a picture full of checks is no synchronisation page.
const mostCorners = 64

// corners lists the squares. Of those that overlap, as edges that are blurred make them, the first counts.
func (c *checkers) corners() (out []corner) {
	for y := 0; y+checkerSide <= c.format.Height; y++ {
		for x := 0; x+checkerSide <= c.format.Width; x++ {
			for _, flip := range []bool{false, true} {
				if !c.shows(x, y, flip) {
					continue
				}
				found := corner{image.Pt(x, y), flip}
				if near(out, found) {
					continue
				}
				if out = append(out, c.centre(found)); len(out) == mostCorners {
					return out
				}
			}
		}
	}
	return out
}

// near says whether a square was found within half a cell.
func near(all []corner, one corner) bool {
	for _, c := range all {
		if d := c.at.Sub(one.at); c.flip == one.flip && max(d.X, -d.X) < checkerCell && max(d.Y, -d.Y) < checkerCell {
			return true
		}
	}
	return false
}

// centre moves a square to the middle of the places where it shows.
func (c *checkers) centre(one corner) corner {
	right, down := 0, 0
	for c.shows(one.at.X+right+1, one.at.Y, one.flip) && right < checkerCell {
		right++
	}
	for c.shows(one.at.X, one.at.Y+down+1, one.flip) && down < checkerCell {
		down++
	}
	// A square shows a pixel before and after its place. At the frame's far edges the latter is beyond it.
	if right > 1 || one.at.X+right+checkerSide < c.format.Width {
		right /= 2
	}
	if down > 1 || one.at.Y+down+checkerSide < c.format.Height {
		down /= 2
	}
	one.at = one.at.Add(image.Pt(right, down))
	return one
}

// at says whether the corners of an area are still there.
func (c *checkers) at(a image.Rectangle) bool {
	right, bottom := a.Max.X-checkerSide, a.Max.Y-checkerSide
	return c.shows(a.Min.X, a.Min.Y, false) && c.shows(right, a.Min.Y, true) && c.shows(a.Min.X, bottom, true) && c.shows(right, bottom, false)
}

// rectangleOf returns the largest rectangle that four squares are the corners of.
func rectangleOf(all []corner) (best image.Rectangle) {
	has := func(x, y int, flip bool) bool {
		for _, c := range all {
			if d := c.at.Sub(image.Pt(x, y)); c.flip == flip && max(d.X, -d.X) <= 1 && max(d.Y, -d.Y) <= 1 {
				return true
			}
		}
		return false
	}
	for _, a := range all {
		for _, b := range all {
			r := image.Rectangle{a.at, b.at.Add(image.Pt(checkerSide, checkerSide))}
			if a.flip || b.flip || r.Dx() < 2*checkerSide || r.Dy() < 2*checkerSide || r.Dx()*r.Dy() <= best.Dx()*best.Dy() {
				continue
			}
			if has(b.at.X, a.at.Y, true) && has(a.at.X, b.at.Y, true) {
				best = r
			}
		}
	}
	return best
}
