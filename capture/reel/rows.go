package reel

import (
	"bytes"
	"cmp"
	"image"
	"slices"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// rowFrame is a frame as rows of memory. A row that was decoded is never written to again, so a row that
// stayed, or moved as a whole, is that of the frame before: a page that scrolls costs its new rows only.
type rowFrame struct {
	p      diff.Plane
	rows   [][]byte
	before [][]byte
	taken  []bool // rows that are rows of before, at another place
	moves  []lab.Move

	marks []rowMark
	from  []int // of each row, how far away it stood in the frame before, as a whole; elsewhere: it did not
	last  int   // the distance of most rows that moved in the last frame that was no key frame
	slab  []byte

	spans, between []span // scratch: of all rows, and of one
}

// elsewhere is no distance within a frame.
const elsewhere = 1 << 30

// rowMark is what a body does to one row.
type rowMark struct {
	ops   int
	full  bool // an operation covers the whole row
	mixed bool // they do different things
	move  op   // one of them
	x0    int  // units that the operations lie between
	x1    int
	spans int32 // the last of what they move, in rowFrame.spans; -1 for nothing
}

// span is a part of a row that moves: units, and the one noted before for its row or -1.
type span struct{ x0, x1, next int32 }

// slabBytes is how many bytes of rows share an allocation: where one row of them stays, no more is kept than that.
const slabBytes = 128 << 10

// mostMoves is how many moves a frame tells of; a picture that is cut finer is not worth the search.
const mostMoves = 256

func newRowFrame(p diff.Plane) *rowFrame {
	f := &rowFrame{p: p, rows: make([][]byte, p.Rows), taken: make([]bool, p.Rows), marks: make([]rowMark, p.Rows), from: make([]int, p.Rows)}
	empty := make([]byte, p.Stride)
	for y := range f.rows {
		f.rows[y] = empty
	}
	return f
}

// Rows returns frame i as rows of pixels, FrameSize bytes in all, and which parts of it stood in frame i−1, at the
// same or another place. Nobody writes to the rows again, so they may be kept; equal rows of successive
// frames are often the same memory. It is nil for formats with several planes, and for MJPEG.
func (r *Reader) Rows(i int) (rows [][]byte, moves []lab.Move, err error) {
	if err := r.has(i); err != nil {
		return nil, nil, err
	}
	if planes := diff.Planes(r.Format()); len(planes) != 1 {
		return nil, nil, nil
	}
	if r.rows.dec == nil {
		r.rows.dec = newDecoder(r.Format(), true)
	}
	if err := r.goTo(&r.rows, i); err != nil {
		return nil, nil, err
	}
	f := r.rows.dec.rows
	return f.rows, f.moves, nil
}

// begin makes the rows that a body draws writable.
func (f *rowFrame) begin(body []byte, key bool) {
	f.before, f.rows = f.rows, make([][]byte, f.p.Rows)
	f.moves = nil
	clear(f.marks)
	clear(f.taken)
	f.spans = f.spans[:0]
	eachOp(body, 0, f.p, f.mark)
	for y := range f.rows {
		m := &f.marks[y]
		switch {
		case key:
			f.rows[y] = f.fresh()
		case m.ops == 0:
			f.rows[y] = f.before[y]
		case f.moved(y):
			f.rows[y], f.taken[y] = f.before[y+m.move.dy], true
		default:
			f.rows[y] = f.fresh()
			f.beside(y)
		}
	}
}

// beside takes what a body does not draw of a row from the frame before. One operation covers all between its ends; of
// several, what lies between them is taken, too.
func (f *rowFrame) beside(y int) {
	m, row, was := &f.marks[y], f.rows[y], f.before[y]
	if m.ops != 1 {
		if !m.full {
			copy(row, was)
		}
		return
	}
	left, right := m.x0*f.p.Unit, m.x1*f.p.Unit
	copy(row[:left], was[:left])
	copy(row[right:], was[right:])
}

// end looks for rows that were drawn and are rows of the frame before all the same, and lists what stood there.
func (f *rowFrame) end(body []byte, key, follows bool) {
	if !follows {
		return
	}
	by := f.commonest(key)
	for y := range f.rows {
		f.from[y] = elsewhere
		switch m := f.marks[y]; {
		case f.taken[y]:
			f.from[y] = m.move.dy
		case by != 0 && f.stood(y, by):
			f.from[y] = by
		case !key && m.ops == 0 || key && f.stood(y, 0):
			f.from[y] = 0
		}
	}
	f.tell(body, key)
}

// commonest is how far the most rows moved; of a key frame, which says nothing of moves, in the frames before.
func (f *rowFrame) commonest(key bool) int {
	if key {
		return f.last
	}
	votes := map[int]int{}
	for y, taken := range f.taken {
		if taken {
			votes[f.marks[y].move.dy]++
		}
	}
	best := 0
	f.last = 0
	for by, n := range votes {
		if n > best || n == best && by < f.last {
			best, f.last = n, by
		}
	}
	return f.last
}

// stood says whether a row is one of the frame before, and then shares its memory.
func (f *rowFrame) stood(y, by int) bool {
	if y+by < 0 || y+by >= len(f.rows) || !bytes.Equal(f.rows[y], f.before[y+by]) {
		return false
	}
	if f.marks[y].ops > 0 {
		f.rows[y] = f.before[y+by]
	}
	return true
}

func (f *rowFrame) mark(o op) {
	for y := o.r.Min.Y; y < o.r.Max.Y; y++ {
		m := &f.marks[y]
		if m.ops == 0 {
			m.x0, m.x1 = o.r.Min.X, o.r.Max.X
		}
		m.mixed = m.mixed || m.ops > 0 && (o.kind != m.move.kind || o.dx != m.move.dx || o.dy != m.move.dy)
		if m.ops == 0 {
			m.spans = -1
		}
		if o.kind == opMove && !m.mixed {
			f.spans = append(f.spans, span{int32(o.r.Min.X), int32(o.r.Max.X), m.spans})
			m.spans = int32(len(f.spans) - 1)
		}
		m.ops++
		m.full = m.full || o.r.Dx() == f.p.Units()
		m.x0, m.x1 = min(m.x0, o.r.Min.X), max(m.x1, o.r.Max.X)
		m.move = o
	}
}

// moved says whether a row is one of the frame before: all that is done to it is moves over one distance, and beside
// what moves both look the same.
func (f *rowFrame) moved(y int) bool {
	m := &f.marks[y]
	if m.ops == 0 || m.mixed || m.move.kind != opMove || m.move.dx != 0 {
		return false
	}
	was, stays := f.before[y+m.move.dy], f.before[y]
	f.between = f.between[:0]
	for i := m.spans; i >= 0; i = f.spans[i].next {
		f.between = append(f.between, f.spans[i])
	}
	slices.SortFunc(f.between, func(a, b span) int { return cmp.Compare(a.x0, b.x0) })
	at := 0
	for _, s := range f.between {
		if from := int(s.x0) * f.p.Unit; from > at && !bytes.Equal(was[at:from], stays[at:from]) {
			return false
		}
		at = int(s.x1) * f.p.Unit
	}
	return bytes.Equal(was[at:], stays[at:])
}

// fresh returns a row of zeros.
func (f *rowFrame) fresh() []byte {
	if len(f.slab) == 0 {
		f.slab = make([]byte, max(slabBytes/f.p.Stride, 1)*f.p.Stride)
	}
	row := f.slab[:f.p.Stride:f.p.Stride]
	f.slab = f.slab[f.p.Stride:]
	return row
}

// tell lists what stood in the frame before: rows as a whole, parts that moved, and what lies beside all that is
// drawn in a row.
func (f *rowFrame) tell(body []byte, key bool) {
	units := f.p.Units()
	for y := 0; y < f.p.Rows; {
		top, from, m := y, f.from[y], f.marks[y]
		for y++; y < f.p.Rows && f.from[y] == from; y++ {
			if from == elsewhere && (f.marks[y].x0 != m.x0 || f.marks[y].x1 != m.x1) {
				break
			}
		}
		switch {
		case from != elsewhere:
			f.add(image.Rect(0, top, units, y), 0, from)
		case !key:
			f.add(image.Rect(0, top, m.x0, y), 0, 0)
			f.add(image.Rect(m.x1, top, units, y), 0, 0)
		}
	}
	eachOp(body, 0, f.p, func(o op) {
		for y := o.r.Min.Y; o.kind == opMove && y < o.r.Max.Y; {
			top := y
			for y < o.r.Max.Y && f.from[y] == elsewhere {
				y++
			}
			f.add(image.Rect(o.r.Min.X, top, o.r.Max.X, y), o.dx, o.dy)
			for y < o.r.Max.Y && f.from[y] != elsewhere {
				y++
			}
		}
	})
}

// add notes a move of units.
func (f *rowFrame) add(r image.Rectangle, dx, dy int) {
	if !r.Empty() && len(f.moves) < mostMoves {
		f.moves = append(f.moves, lab.Move{R: f.p.ToPixels(r), DX: dx * f.p.SX, DY: dy})
	}
}
