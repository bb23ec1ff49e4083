package reel

import (
	"bytes"
	"encoding/binary"
	"image"

	"github.com/klauspost/compress/s2"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// encoder turns frames into bodies. It keeps the frame before.
type encoder struct {
	format lab.Format
	planes []diff.Plane
	finder diff.Finder
	canvas []byte // the frame before
	sums   *sums
	moves  mover

	within, rects []image.Rectangle // scratch: units of one plane that may have changed, and that did
	ops           []op
	lits          []byte
	packs         []byte
	part          []byte
	cost          float64 // of decoding the body made last, ns
}

// op is one rectangle of a part.
type op struct {
	kind   byte
	r      image.Rectangle // units
	dx, dy int             // of the source, for opMove
	unit   []byte          // for opFill; aliases the frame
}

func newEncoder(f lab.Format) *encoder {
	return &encoder{
		format: f,
		planes: diff.Planes(f),
		canvas: make([]byte, f.FrameSize()),
		sums:   newSums(f),
	}
}

// encode appends the body of a frame to dst, and what changed to changed.
// within covers all that may have changed; key codes the whole frame. It
// reports whether the body is a key frame's, which it also is when nothing of
// the frame before was left.
func (e *encoder) encode(dst []byte, changed []image.Rectangle, pix []byte, within []image.Rectangle, key bool) ([]byte, []image.Rectangle, bool) {
	e.cost = 0
	fresh := 0 // bytes that do not rest on the frame before
	for i, p := range e.planes {
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
			e.sums.touch(i, r, pix)
			changed = append(changed, p.ToPixels(r).Intersect(e.format.Bounds()))
		}
		e.ops, e.lits = e.ops[:0], e.lits[:0]
		if key {
			e.flats(p, pix, p.Bounds())
		} else {
			for _, r := range e.rects {
				e.plan(p, pix, r)
			}
		}
		for _, o := range e.ops {
			if o.kind != opMove {
				fresh += o.r.Dx() * o.r.Dy() * p.Unit
			}
		}
		if len(e.ops) > 0 {
			dst = e.appendPart(dst, i, p, pix)
		}
		for _, r := range e.rects {
			for y := r.Min.Y; y < r.Max.Y; y++ {
				copy(p.Row(e.canvas, y, r.Min.X, r.Max.X), p.Row(pix, y, r.Min.X, r.Max.X))
			}
		}
	}
	return dst, changed, fresh == len(e.canvas)
}

// plan cuts a changed rectangle into moved, flat and literal ones.
func (e *encoder) plan(p diff.Plane, pix []byte, r image.Rectangle) {
	dy := e.moves.find(p, e.canvas, pix, r)
	if dy == 0 {
		e.flats(p, pix, r)
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
			e.ops = append(e.ops, op{kind: opMove, r: band, dy: dy})
			e.cost += costCopy * float64(band.Dx()*band.Dy()*p.Unit)
		} else {
			e.flats(p, pix, band)
		}
	}
}

// flats cuts r into bands of rows of one colour and literal bands.
func (e *encoder) flats(p diff.Plane, pix []byte, r image.Rectangle) {
	for y := r.Min.Y; y < r.Max.Y; {
		from := y
		row := p.Row(pix, y, r.Min.X, r.Max.X)
		if flat(row, p.Unit) {
			for y++; y < r.Max.Y && bytes.Equal(p.Row(pix, y, r.Min.X, r.Max.X), row); y++ {
			}
			band := image.Rect(r.Min.X, from, r.Max.X, y)
			e.ops = append(e.ops, op{kind: opFill, r: band, unit: row[:p.Unit]})
			e.cost += costCopy * float64(band.Dx()*band.Dy()*p.Unit)
			continue
		}
		for y++; y < r.Max.Y && !flat(p.Row(pix, y, r.Min.X, r.Max.X), p.Unit); y++ {
		}
		e.ops = append(e.ops, op{kind: opLiteral, r: image.Rect(r.Min.X, from, r.Max.X, y)})
	}
}

// flat says whether all units of a row are equal.
func flat(row []byte, unit int) bool {
	return bytes.Equal(row[unit:], row[:len(row)-unit])
}

// appendPart appends the part that e.ops describe.
func (e *encoder) appendPart(dst []byte, plane int, p diff.Plane, pix []byte) []byte {
	first := byte(plane)
	for _, o := range e.ops {
		if o.kind == opMove {
			first |= partMoves
		}
	}
	b := append(e.part[:0], first)
	b = binary.AppendUvarint(b, uint64(len(e.ops)))
	for _, o := range e.ops {
		b = append(b, o.kind)
		b = binary.AppendUvarint(b, uint64(o.r.Min.X))
		b = binary.AppendUvarint(b, uint64(o.r.Min.Y))
		b = binary.AppendUvarint(b, uint64(o.r.Dx()))
		b = binary.AppendUvarint(b, uint64(o.r.Dy()))
		switch o.kind {
		case opMove:
			b = binary.AppendVarint(b, int64(o.dx))
			b = binary.AppendVarint(b, int64(o.dy))
		case opFill:
			b = append(b, o.unit...)
		case opLiteral:
			for y := o.r.Min.Y; y < o.r.Max.Y; y++ {
				e.lits = append(e.lits, p.Row(pix, y, o.r.Min.X, o.r.Max.X)...)
			}
		}
	}
	b = e.appendLiterals(b)
	e.cost += costLiteral * float64(len(e.lits))
	e.part = b
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// appendLiterals compresses e.lits.
func (e *encoder) appendLiterals(b []byte) []byte {
	if len(e.lits) == 0 {
		return b
	}
	if n := s2.MaxEncodedLen(len(e.lits)); cap(e.packs) < n {
		e.packs = make([]byte, n)
	}
	if packed := s2.Encode(e.packs[:cap(e.packs)], e.lits); len(packed) < len(e.lits) {
		return append(append(b, codeS2), packed...)
	}
	return append(append(b, codeRaw), e.lits...)
}
