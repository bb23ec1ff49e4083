package motion

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// BlankOptions says what is blank.
type BlankOptions struct {
	// Colour is the colour of what has not been drawn yet, such as Eideticker's magenta. A zero
	// alpha: blank is what has one colour now and is filled later, found by following the
	// movement.
	Colour color.RGBA
	Ignore []image.Rectangle
	// Within bounds, without a colour, the frames in which a blank piece is drawn; what is drawn
	// later is another thing that happened. Zero: 120.
	Within int
}

// Blank is how much of the area was not drawn.
type Blank struct {
	Start  int
	Share  []float64 // % of the area in each frame
	Boxes  []float64 // % of the area: the biggest box of the colour (Eideticker); nil without a colour
	How    string
	Period float64 // ms from frame to frame
	// Filled holds, for each blank spell of a piece of the picture, the frames until it was drawn.
	Filled []int
}

// cellSide is the side of the pieces whose fill is followed.
const cellSide = 8

// blanks measures the frames of a path while it is found. With a colour, its pixels are counted.
// Without, the picture is cut into pieces of 8 × 8 pixels that move with it: a piece is blank
// from the frame with movement in which it came into view, or took one colour, until it first
// shows more than one colour. A piece that never does was no blank but is what it is: paper.
type blanks struct {
	access visual.Access
	path   *Path
	o      BlankOptions
	row    []uint32
	out    *Blank

	set   []bool // of a colour: the pixels that have it
	since int    // since which step any has; −1: none has

	cells  []cell // of pieces in view, by place modulo across and down
	across int
	down   int
	delta  []int // blank pieces: changes of their number
	in     []int // pieces in view
	view   view  // what is in view, and of the frame before
	old    view
}

func newBlanks(access visual.Access, p *Path, rate float64, o BlankOptions) *blanks {
	b := &blanks{access: access, path: p, o: o, row: make([]uint32, p.Area.Dx()), since: -1, out: &Blank{Period: 1e3 / rate}}
	if o.Within <= 0 {
		b.o.Within = 120
	}
	if o.Colour.A != 0 {
		b.out.How = fmt.Sprintf("pixels near #%02x%02x%02x (|ΔR|+|ΔG|+|ΔB| < 30)", o.Colour.R, o.Colour.G, o.Colour.B)
		b.set, b.out.Boxes = make([]bool, p.Area.Dx()*p.Area.Dy()), []float64{}
		return b
	}
	b.out.How = fmt.Sprintf("pieces of %d × %d pixels of one colour that are drawn later, followed along the movement", cellSide, cellSide)
	b.across, b.down = p.Area.Dx()/cellSide+1, p.Area.Dy()/cellSide+1
	b.cells = make([]cell, b.across*b.down)
	for i := range b.cells {
		b.cells[i].seen = -1
	}
	return b
}

// step looks at the last step of the path; there is no picture where nothing changed.
func (b *blanks) step(pix visual.Raster) {
	i := len(b.path.Steps) - 1
	if i == 0 {
		b.out.Start = b.path.Steps[0].Frame
	}
	if b.o.Colour.A != 0 {
		b.coloured(i, pix)
	} else {
		b.learned(i, pix)
	}
}

// done returns the measurement.
func (b *blanks) done() *Blank {
	if b.o.Colour.A != 0 {
		return b.out
	}
	n := 0
	for i, d := range b.delta {
		n += d
		share := 0.0
		if b.in[i] > 0 {
			share = 100 * float64(n) / float64(b.in[i])
		}
		b.out.Share = append(b.out.Share, share)
	}
	return b.out
}

func (b *blanks) ignored(x, y int) bool {
	for _, r := range b.o.Ignore {
		if image.Pt(x, y).In(r) {
			return true
		}
	}
	return false
}

// coloured counts pixels, and finds the biggest box as Eideticker does.
func (b *blanks) coloured(i int, pix visual.Raster) {
	out := b.out
	if i > 0 && pix.IsZero() {
		out.Share, out.Boxes = append(out.Share, out.Share[i-1]), append(out.Boxes, out.Boxes[i-1])
		return
	}
	a := b.path.Area
	n := 0
	last, hit := ^uint32(0), false
	for y := range a.Dy() {
		b.access.Row(b.row, pix, a.Min.Y+y, a.Min.X)
		for x, c := range b.row {
			if c != last {
				last, hit = c, visual.IsNear(b.access.RGB(c), b.o.Colour)
			}
			is := hit && (len(b.o.Ignore) == 0 || !b.ignored(a.Min.X+x, a.Min.Y+y))
			b.set[y*a.Dx()+x] = is
			if is {
				n++
			}
		}
	}
	all, box := float64(len(b.set)), 0.0
	if n > 0 {
		r := visual.LargestRectangle(b.set, a.Dx())
		box = 100 * float64(r.Dx()*r.Dy()) / all
	}
	out.Share, out.Boxes = append(out.Share, 100*float64(n)/all), append(out.Boxes, box)
	switch {
	case n > 0 && b.since < 0:
		b.since = i
	case n == 0 && b.since >= 0:
		out.Filled, b.since = append(out.Filled, i-b.since), -1
	}
}

// cell is a piece of the picture that has one colour.
type cell struct {
	x, y  int32
	since int32 // index of the step since which it has
	seen  int32 // the last step at which it was in view with one colour; −1: it has several
}

// place is i modulo n, which is no less than 0.
func place(i, n int) int { return (i%n + n) % n }

// learned follows the pieces.
func (b *blanks) learned(i int, pix visual.Raster) {
	b.delta = append(b.delta, 0)
	if i > 0 && pix.IsZero() {
		b.in = append(b.in, b.in[i-1])
		return
	}
	s := b.path.Steps[i]
	origin, size := b.pieces(pix, s)
	b.in = append(b.in, size.X*size.Y)
	for cy := range size.Y {
		y := origin.Y + cy
		// No two pieces that are in view at once share a cell.
		cells := b.cells[place(y, b.down)*b.across:][:b.across]
		slot := place(origin.X, b.across)
		for cx, one := range b.view.flat[cy*size.X:][:size.X] {
			c := &cells[slot]
			if slot++; slot == b.across {
				slot = 0
			}
			if !one && c.seen < 0 {
				continue // as before
			}
			at := image.Pt(origin.X+cx, y)
			if len(b.o.Ignore) > 0 {
				box := image.Rect(0, 0, cellSide, cellSide).Add(b.onScreen(at, s)).Add(b.path.Area.Min)
				if b.ignored(box.Min.X, box.Min.Y) || b.ignored(box.Max.X-1, box.Max.Y-1) {
					continue
				}
			}
			b.follow(c, one, i, at)
		}
	}
}

// follow notes what a piece of step i shows.
func (b *blanks) follow(c *cell, one bool, i int, at image.Point) {
	there := c.seen >= 0 && int(c.x) == at.X && int(c.y) == at.Y
	if there && int(c.seen) < i-1 && b.left(int(c.seen), i, at) {
		there = false // it had left the view, and begins anew
	}
	switch {
	case one && !there:
		*c = cell{int32(at.X), int32(at.Y), int32(i), int32(i)}
	case one:
		c.seen = int32(i)
	default:
		since := int(c.since)
		c.seen = -1
		if there && i-since <= b.o.Within && b.path.Steps[since].Moved() {
			b.delta[since]++
			b.delta[i]--
			b.out.Filled = append(b.out.Filled, i-since)
		}
	}
}

// left says whether a piece was out of view in a frame between two that showed it.
func (b *blanks) left(from, to int, at image.Point) bool {
	for i := from + 1; i < to; i++ {
		p := b.onScreen(at, b.path.Steps[i])
		if p.X < 0 || p.Y < 0 || p.X+cellSide > b.path.Area.Dx() || p.Y+cellSide > b.path.Area.Dy() {
			return true
		}
	}
	return false
}

// onScreen is the corner of a piece within the area.
func (b *blanks) onScreen(at image.Point, s Step) image.Point {
	return image.Pt(at.X*cellSide+int(math.Round(s.X)), at.Y*cellSide+int(math.Round(s.Y)))
}

// view says of the pieces that are in view as a whole whether they have one colour.
type view struct {
	corner       image.Point // of the first piece, within the area
	origin, size image.Point // pieces
	flat         []bool
}

// pieces fills in the view of a step. Pieces that stood in the frame before are those that were read there.
func (b *blanks) pieces(pix visual.Raster, s Step) (origin, size image.Point) {
	b.view, b.old = b.old, b.view
	a, v := b.path.Area, &b.view
	ceil := func(n int) int { return int(math.Ceil(float64(n) / cellSide)) }
	floor := func(n int) int { return int(math.Floor(float64(n) / cellSide)) }
	x, y := int(math.Round(s.X)), int(math.Round(s.Y))
	v.origin = image.Pt(ceil(-x), ceil(-y))
	v.size = image.Pt(max(floor(a.Dx()-x)-v.origin.X, 0), max(floor(a.Dy()-y)-v.origin.Y, 0))
	v.corner = image.Pt(v.origin.X*cellSide+x, v.origin.Y*cellSide+y)
	n := v.size.X * v.size.Y
	if cap(v.flat) < n {
		v.flat = make([]bool, n)
	}
	v.flat = v.flat[:n]
	for cy := 0; cy < v.size.Y && n > 0; cy++ {
		// Of a row that moved the pieces at its ends may have stayed.
		from, to := b.rowMoved(cy, pix.Moves())
		b.look(pix, cy, 0, from)
		b.look(pix, cy, to, v.size.X)
	}
	return v.origin, v.size
}

// look reads the pieces from … to−1 of a row.
func (b *blanks) look(pix visual.Raster, cy, from, to int) {
	if v := &b.view; from < to {
		corner := b.path.Area.Min.Add(v.corner).Add(image.Pt(from*cellSide, cy*cellSide))
		b.access.Plain(v.flat[cy*v.size.X+from:], pix, corner, image.Pt(to-from, 1), cellSide, b.row)
	}
}

// rowMoved copies the pieces from … to−1 of a row from the frame before, if they moved.
func (b *blanks) rowMoved(cy int, moves []lab.Move) (from, to int) {
	v, old := &b.view, &b.old
	was := cy + v.origin.Y - old.origin.Y
	if old.origin.X != v.origin.X || old.size.X != v.size.X || old.corner.X != v.corner.X || was < 0 || was >= old.size.Y {
		return 0, 0
	}
	corner := b.path.Area.Min.Add(v.corner)
	top := corner.Y + cy*cellSide
	by := old.corner.Y + was*cellSide - (v.corner.Y + cy*cellSide)
	for _, m := range moves {
		if m.DX != 0 || m.DY != by || top < m.R.Min.Y || top+cellSide > m.R.Max.Y {
			continue
		}
		from = max((m.R.Min.X-corner.X+cellSide-1)/cellSide, 0)
		to = min((m.R.Max.X-corner.X)/cellSide, v.size.X)
		if from < to {
			copy(v.flat[cy*v.size.X+from:cy*v.size.X+to], old.flat[was*v.size.X+from:])
			return from, to
		}
	}
	return 0, 0
}

// Measurements returns the blank share in single numbers.
func (b *Blank) Measurements() []lab.Measurement {
	sum, most, at := 0.0, 0.0, 0
	for i, s := range b.Share {
		sum += s
		if s > most {
			most, at = s, i
		}
	}
	out := []lab.Measurement{
		metric.BlankSum.Measure(sum/100, nil, b.How),
		metric.BlankMost.Measure(most, []int{b.Start + at}, b.How),
		metric.BlankMean.Measure(sum/float64(max(len(b.Share), 1)), nil, b.How),
	}
	if b.Boxes != nil {
		boxes := 0.0
		for _, s := range b.Boxes {
			boxes += s
		}
		out = append(out, metric.Checkerboard.Measure(boxes/100, nil, b.How))
	}
	if n := len(b.Filled); n > 0 {
		longest := 0
		for _, f := range b.Filled {
			longest = max(longest, f)
		}
		out = append(out, metric.BlankLongest.Measure(float64(longest), nil, b.How))
	}
	return out
}
