package reel

import (
	"bytes"
	"image"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// encoder turns frames into bodies. It keeps the frame before.
type encoder struct {
	format lab.Format
	planes []diff.Plane
	comps  [][]component
	finder diff.Finder
	canvas []byte // the frame before
	sums   *sums
	moves  diff.Mover
	parts  partCoder

	within, rects []image.Rectangle // scratch: units of one plane that may have changed, and that did
	planned       [tileKinds][]op   // scratch: what is planned for one plane, see tiles
	moved         []byte            // scratch: what is done to each row, see costOfMoves
	stood         struct {          // what stands said last
		y  int
		is bool
	}
	cost float64 // of decoding the body made last, ns
}

// op is one rectangle of a part.
type op struct {
	kind   byte
	r      image.Rectangle // units
	dx, dy int             // of the source, for opMove
	unit   []byte          // for opFill; aliases the frame
}

// bytes returns the size of the rectangle.
func (o op) bytes(p diff.Plane) int { return o.r.Dx() * o.r.Dy() * p.Unit }

func newEncoder(f lab.Format) *encoder {
	return &encoder{
		format: f,
		planes: diff.Planes(f),
		comps:  components(f),
		canvas: make([]byte, f.FrameSize()),
		sums:   newSums(f),
	}
}

// encode appends the body of a frame to dst, and what changed to changed.
// within covers all that may have changed; key codes the whole frame. It
// reports whether the body is a key frame's, which it also is when nothing of
// the frame before was left.
func (e *encoder) encode(dst []byte, changed []image.Rectangle, pix []byte, within []image.Rectangle, key bool) (
	[]byte, []image.Rectangle, bool) {
	start := len(changed)
	e.cost = 0
	e.parts.reset()
	fresh := 0 // bytes that do not rest on the frame before
	for i, p := range e.planes {
		moves := false
		e.within = e.within[:0]
		for _, w := range within {
			e.within = append(e.within, p.FromPixels(w))
		}
		e.within = diff.Disjoint(e.within)
		e.rects = e.rects[:0]
		for _, w := range e.within {
			e.rects = e.finder.Plane(e.rects, p, e.canvas, pix, w)
		}
		for _, r := range e.rects {
			changed = append(changed, p.ToPixels(r).Intersect(e.format.Bounds()))
		}
		for k := range e.planned {
			e.planned[k] = e.planned[k][:0]
		}
		if key {
			e.flats(i, p, pix, p.Bounds())
		} else {
			for _, r := range e.rects {
				e.plan(i, p, pix, r)
			}
		}
		for k, ops := range e.planned {
			for _, o := range ops {
				if o.kind == opMove {
					moves = true
				} else {
					fresh += o.bytes(p)
				}
			}
			e.parts.add(i, tileCodes[k], p, ops)
		}
		if moves {
			e.stood.y = -1
			e.cost += e.costOfMoves(p, pix)
		}
	}
	dst = e.parts.run(dst, e, pix, changed[start:])
	e.cost += e.parts.cost
	return dst, changed, fresh == len(e.canvas)
}

// keepRows is how many rows of a picture keep takes at once.
const keepRows = 64

// keep takes what changed in one band of keepRows rows into the canvas and
// the sums. The bands of a frame may be kept by several threads.
func (e *encoder) keep(band int, changed []image.Rectangle, pix []byte) {
	for i, p := range e.planes {
		rows := image.Rect(0, band*keepRows/p.SY, p.Units(), (band+1)*keepRows/p.SY)
		lowest, highest := rows.Max.Y, rows.Min.Y
		for _, c := range changed {
			r := p.FromPixels(c).Intersect(rows)
			if r.Empty() {
				continue
			}
			for y := r.Min.Y; y < r.Max.Y; y++ {
				copy(p.Row(e.canvas, y, r.Min.X, r.Max.X), p.Row(pix, y, r.Min.X, r.Max.X))
			}
			lowest, highest = min(lowest, r.Min.Y), max(highest, r.Max.Y)
		}
		if lowest < highest {
			e.sums.touch(i, image.Rect(0, lowest, p.Units(), highest), pix)
		}
	}
}

// plan cuts a changed rectangle into moved, flat and literal ones.
func (e *encoder) plan(plane int, p diff.Plane, pix []byte, r image.Rectangle) {
	dy := e.moves.Find(p, e.canvas, pix, r)
	if dy == 0 {
		e.flats(plane, p, pix, r)
		return
	}
	same := func(y int) bool {
		return y+dy >= 0 && y+dy < p.Rows &&
			bytes.Equal(p.Row(pix, y, r.Min.X, r.Max.X), p.Row(e.canvas, y+dy, r.Min.X, r.Max.X))
	}
	for y := r.Min.Y; y < r.Max.Y; {
		from, moved := y, same(y)
		for y++; y < r.Max.Y && same(y) == moved; y++ {
		}
		band := image.Rect(r.Min.X, from, r.Max.X, y)
		if moved {
			e.planned[drawn] = append(e.planned[drawn], op{kind: opMove, r: band, dy: dy})
		} else {
			e.flats(plane, p, pix, band)
		}
	}
}

// costOfMoves is what a reader needs for the rows that a plane's operations move, in ns: little for one that is a row
// of the frame before as a whole, which it need not copy. Of each few rows it looks at one.
func (e *encoder) costOfMoves(p diff.Plane, pix []byte) (cost float64) {
	const few = 8
	if len(e.planes) > 1 {
		for _, ops := range e.planned {
			for _, o := range ops {
				if o.kind == opMove {
					cost += costCopy * float64(o.bytes(p)+o.r.Dy()*p.Stride)
				}
			}
		}
		return cost
	}
	e.moved = grow(e.moved, p.Rows)
	clear(e.moved)
	for _, ops := range e.planned {
		for _, o := range ops {
			for y := o.r.Min.Y; y < o.r.Max.Y; y++ {
				if is := &e.moved[y]; o.kind == opMove {
					*is |= rowMoved
				} else {
					*is |= rowDrawn
				}
			}
		}
	}
	for y, is := range e.moved {
		switch {
		case is&rowMoved == 0:
		case is == rowMoved && e.stands(p, pix, y/few*few+few/2):
			cost += costRow
		default:
			cost += costCopy * float64(2*p.Stride) // what stays of it, and what moves
		}
	}
	return cost
}

// What the operations of a frame do to a row.
const (
	rowMoved = 1 << iota
	rowDrawn
)

// stands says whether a row is one of the frame before as a whole, where the Mover found its region. It remembers the
// last.
func (e *encoder) stands(p diff.Plane, pix []byte, y int) bool {
	if y != e.stood.y {
		from := y + e.moves.Last
		e.stood.y, e.stood.is = y, y < p.Rows && from >= 0 && from < p.Rows &&
			bytes.Equal(p.Row(pix, y, 0, p.Units()), p.Row(e.canvas, from, 0, p.Units()))
	}
	return e.stood.is
}

// flats cuts r into bands of rows of one colour and literal bands.
func (e *encoder) flats(plane int, p diff.Plane, pix []byte, r image.Rectangle) {
	for y := r.Min.Y; y < r.Max.Y; {
		from := y
		row := p.Row(pix, y, r.Min.X, r.Max.X)
		if diff.Flat(row, p.Unit) {
			for y++; y < r.Max.Y && bytes.Equal(p.Row(pix, y, r.Min.X, r.Max.X), row); y++ {
			}
			e.planned[drawn] = append(e.planned[drawn], op{kind: opFill, r: image.Rect(r.Min.X, from, r.Max.X, y), unit: row[:p.Unit]})
			continue
		}
		for y++; y < r.Max.Y && !diff.Flat(p.Row(pix, y, r.Min.X, r.Max.X), p.Unit); y++ {
		}
		e.tiles(plane, p, pix, image.Rect(r.Min.X, from, r.Max.X, y))
	}
}
