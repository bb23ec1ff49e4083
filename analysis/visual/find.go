package visual

import (
	"fmt"
	"image"
	"image/color"

	"eidetic/internal/lab"
)

// findContent finds the area by the page that marks it.
func findContent(frames Frames, o SyncOptions) (area image.Rectangle, first, last int, err error) {
	if o.Colour == (color.RGBA{}) {
		o.Colour = lab.SyncGreen()
	}
	if o.To == 0 {
		o.To = frames.Len()
	}
	find := findBox
	if o.Checkers {
		find = findCheckers
	}
	p, err := newPlane(frames.Format())
	switch {
	case o.From < 0 || o.From >= o.To || o.To > frames.Len():
		err = fmt.Errorf("frames %d … %d are not in a recording of %d", o.From, o.To-1, frames.Len())
	case err == nil:
		area, first, last, err = find(frames, p, o)
	}
	if err != nil {
		return image.Rectangle{}, 0, 0, fmt.Errorf("find the content area: %w", err)
	}
	return area, first, last, nil
}

// findBox walks the frames that changed. A frame whose biggest box is large
// enough begins the run. During the run a bigger box replaces the first, and the
// run ends before the frame in which the box loses its colour.
func findBox(frames Frames, p plane, o SyncOptions) (area image.Rectangle, first, last int, err error) {
	f := frames.Format()
	m := &mask{plane: p, bounds: f.Bounds(), colour: o.Colour, set: make([]bool, f.Width*f.Height), row: make([]code, f.Width)}
	first, biggest := -1, 0
	for i := o.From; i < o.To; i++ {
		changed := frames.Info(i).Changed
		if i == o.From {
			changed = []image.Rectangle{f.Bounds()}
		}
		if len(changed) == 0 {
			continue
		}
		pix, err := frames.Pixels(i)
		if err != nil {
			return area, 0, 0, fmt.Errorf("frame %d: %w", i, err)
		}
		if want := f.FrameSize(); len(pix) != want {
			return area, 0, 0, fmt.Errorf("frame %d holds %d bytes, not %d", i, len(pix), want)
		}
		if !m.update(pix, changed) {
			continue
		}
		biggest = max(biggest, m.count)
		if first >= 0 && !m.filled(area) {
			return area, first, i - 1, nil
		}
		if !isLarge(m.count, len(m.set)) {
			continue
		}
		box := m.biggestBox()
		if size := box.Dx() * box.Dy(); isLarge(size, len(m.set)) && size > area.Dx()*area.Dy() {
			area, first = box, i
		}
	}
	if first < 0 {
		return area, 0, 0, fmt.Errorf("%w: of %d frames the one with the most had %d pixels of #%02x%02x%02x, a box of at least %d is needed",
			ErrNoSync, o.To-o.From, biggest, m.colour.R, m.colour.G, m.colour.B, len(m.set)/16)
	}
	return area, first, o.To - 1, nil
}

// isLarge says whether hits of n pixels are enough for a page: the content area
// is at least 1/16 of the frame.
func isLarge(hits, n int) bool { return 16*hits >= n }

// mask says of each pixel of the frame whether it has the colour.
type mask struct {
	plane  plane
	bounds image.Rectangle
	colour color.RGBA
	set    []bool
	count  int
	row    []code
}

// update takes in the changed regions and says whether the mask changed.
func (m *mask) update(pix []byte, changed []image.Rectangle) bool {
	any := false
	for _, r := range changed {
		r = r.Intersect(m.bounds)
		for y := r.Min.Y; y < r.Max.Y; y++ {
			row := m.row[:r.Dx()]
			m.plane.row(row, pix, y, r.Min.X)
			set := m.set[y*m.bounds.Dx()+r.Min.X:][:len(row)]
			lastCode, lastHit := ^code(0), false
			for x, c := range row {
				if c != lastCode {
					lastCode, lastHit = c, isNear(m.plane.rgb(c), m.colour)
				}
				if set[x] == lastHit {
					continue
				}
				any = true
				set[x] = lastHit
				if lastHit {
					m.count++
				} else {
					m.count--
				}
			}
		}
	}
	return any
}

// filled says whether the box has the colour: while it has, the run goes on.
func (m *mask) filled(r image.Rectangle) bool { return isFilled(m.within(r), r.Dx()*r.Dy()) }

func (m *mask) within(r image.Rectangle) int {
	n := 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for _, hit := range m.set[y*m.bounds.Dx()+r.Min.X : y*m.bounds.Dx()+r.Max.X] {
			if hit {
				n++
			}
		}
	}
	return n
}

// biggestBox returns the largest rectangle of the colour, extended over what it
// encloses, such as a pointer: a side moves out while nine tenths of the next row
// or column have the colour.
func (m *mask) biggestBox() image.Rectangle {
	box := m.largestRectangle()
	if box.Empty() {
		return box
	}
	hit := func(r image.Rectangle) bool {
		return r.In(m.bounds) && !r.Empty() && 10*m.within(r) >= 9*r.Dx()*r.Dy()
	}
	for grown := true; grown; {
		grown = false
		for _, side := range []struct{ at, to image.Rectangle }{
			{image.Rect(box.Min.X-1, box.Min.Y, box.Min.X, box.Max.Y), image.Rect(box.Min.X-1, box.Min.Y, box.Max.X, box.Max.Y)},
			{image.Rect(box.Max.X, box.Min.Y, box.Max.X+1, box.Max.Y), image.Rect(box.Min.X, box.Min.Y, box.Max.X+1, box.Max.Y)},
			{image.Rect(box.Min.X, box.Min.Y-1, box.Max.X, box.Min.Y), image.Rect(box.Min.X, box.Min.Y-1, box.Max.X, box.Max.Y)},
			{image.Rect(box.Min.X, box.Max.Y, box.Max.X, box.Max.Y+1), image.Rect(box.Min.X, box.Min.Y, box.Max.X, box.Max.Y+1)},
		} {
			if hit(side.at) {
				// One side a round: the others' strips follow from the new box.
				box, grown = side.to, true
				break
			}
		}
	}
	return box
}

// largestRectangle is the maximal rectangle of a binary picture by the stack of
// bars over each row, in time linear in the pixels (Vandevoorde 1998).
func (m *mask) largestRectangle() image.Rectangle {
	w, h := m.bounds.Dx(), m.bounds.Dy()
	type bar struct{ x, height int }
	heights, stack := make([]int, w), make([]bar, 0, w+1)
	var best image.Rectangle
	for y := range h {
		for x, hit := range m.set[y*w:][:w] {
			if hit {
				heights[x]++
			} else {
				heights[x] = 0
			}
		}
		stack = stack[:0]
		for x := 0; x <= w; x++ {
			height, from := 0, x
			if x < w {
				height = heights[x]
			}
			for len(stack) > 0 && stack[len(stack)-1].height >= height {
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				if top.height*(x-top.x) > best.Dx()*best.Dy() {
					best = image.Rect(top.x, y-top.height+1, x, y+1)
				}
				from = top.x
			}
			stack = append(stack, bar{from, height})
		}
	}
	return best
}

// ContentOf is FindContent for a single picture.
func ContentOf(f lab.Format, pix []byte) (image.Rectangle, error) {
	area, _, _, err := findContent(&oneFrame{f, pix}, SyncOptions{})
	return area, err
}

// oneFrame is a recording of one frame.
type oneFrame struct {
	format lab.Format
	pix    []byte
}

func (s *oneFrame) Format() lab.Format { return s.format }
func (s *oneFrame) Len() int           { return 1 }
func (s *oneFrame) Info(int) lab.FrameInfo {
	return lab.FrameInfo{Changed: []image.Rectangle{s.format.Bounds()}}
}
func (s *oneFrame) Pixels(int) ([]byte, error) { return s.pix, nil }
