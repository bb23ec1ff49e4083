package reel

import (
	"errors"
	"fmt"
	"image"

	"github.com/klauspost/compress/s2"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// decoder turns bodies back into frames. It keeps the frame before. What it
// reads may be hostile: a body costs no more time than a few frames' size.
type decoder struct {
	format  lab.Format
	planes  []diff.Plane
	comps   [][]component
	predict predictCoder
	packed  []byte
	cur     []byte // the frame decoded last
	prev    []byte // the one before, when moves need it
	lits    []byte
	drawn   []int     // scratch: units drawn in each row
	rows    *rowFrame // instead of cur and prev, see Reader.Rows
}

// newDecoder makes one for frames in one piece, or for rows, which needs a format of one plane.
func newDecoder(f lab.Format, rows bool) *decoder {
	d := &decoder{format: f, planes: diff.Planes(f), comps: components(f)}
	if rows {
		d.rows = newRowFrame(d.planes[0])
	} else {
		d.cur = make([]byte, f.FrameSize())
	}
	return d
}

// decode makes cur the frame that body describes. After an error cur is not a frame.
func (d *decoder) decode(body []byte, key bool) error {
	switch {
	case key:
		clear(d.cur)
	case needsPrev(body):
		d.flip(body)
	}
	return d.parts(body, key)
}

// decodeRows makes rows the frame that body describes; follows says that they hold the one before.
func (d *decoder) decodeRows(body []byte, key, follows bool) error {
	d.rows.begin(body, key)
	if err := d.parts(body, key); err != nil {
		return err
	}
	d.rows.end(body, key, follows)
	return nil
}

// parts decodes the parts of a body.
func (d *decoder) parts(body []byte, key bool) error {
	budget := d.format.FrameSize() // no byte of a frame is coded twice
	c := cursor{b: body}
	for n := 0; len(c.b) > 0; n++ {
		part := c.bytes(c.int(len(c.b)))
		if c.err != nil {
			return fmt.Errorf("part %d: %w", n, c.err)
		}
		if err := d.part(part, key, &budget); err != nil {
			return fmt.Errorf("part %d: %w", n, err)
		}
	}
	return nil
}

// flip makes room for a frame that takes rows from elsewhere in the one
// before: cur becomes prev, and prev's memory the new cur. Rows that body draws
// anew over their whole width, which scrolling does with most, are not copied.
func (d *decoder) flip(body []byte) {
	if d.prev == nil {
		d.prev = make([]byte, len(d.cur))
	}
	d.cur, d.prev = d.prev, d.cur
	at := 0
	for i, p := range d.planes {
		if cap(d.drawn) < p.Rows {
			d.drawn = make([]int, p.Rows)
		}
		d.drawn = d.drawn[:p.Rows]
		clear(d.drawn)
		eachOp(body, i, p, func(o op) {
			for y := o.r.Min.Y; y < o.r.Max.Y; y++ {
				d.drawn[y] += o.r.Dx()
			}
		})
		for _, n := range d.drawn {
			if n < p.Units() {
				copy(d.cur[at:at+p.Stride], d.prev[at:at+p.Stride])
			}
			at += p.Stride
		}
	}
}

// eachOp calls fn with the rectangles of a plane, as far as body is well formed.
func eachOp(body []byte, plane int, p diff.Plane, fn func(op)) {
	c := cursor{b: body}
	budget := p.Size()
	for len(c.b) > 0 {
		part := cursor{b: c.bytes(c.int(len(c.b)))}
		if int(part.byte()&^partMoves) != plane {
			continue
		}
		for n := part.int(len(part.b) / 5); n > 0; n-- {
			o, err := readOp(&part, p)
			if budget -= o.bytes(p); err != nil || budget < 0 {
				return
			}
			fn(o)
		}
	}
}

// needsPrev says whether a part has a moved rectangle. A malformed body is
// reported when it is decoded.
func needsPrev(body []byte) bool {
	c := cursor{b: body}
	for len(c.b) > 0 {
		part := c.bytes(c.int(len(c.b)))
		if c.err != nil {
			return false
		}
		if len(part) > 0 && part[0]&partMoves != 0 {
			return true
		}
	}
	return false
}

var errTwice = errors.New("more pixels are coded than the frame has")

// part decodes one part into cur.
func (d *decoder) part(b []byte, key bool, budget *int) error {
	c := cursor{b: b}
	first := int(c.byte())
	moves := first&partMoves != 0
	first &^= partMoves
	if c.err != nil {
		return c.err
	}
	if first >= len(d.planes) {
		return fmt.Errorf("plane %d of %d", first, len(d.planes))
	}
	if moves && key {
		return errors.New("a key frame refers to the frame before")
	}
	p := d.planes[first]
	n := c.int(len(c.b) / 5)
	ops := make([]op, 0, min(n, 4096)) // n is what the body claims
	literals := 0
	for i := 0; i < n && c.err == nil; i++ {
		o, err := readOp(&c, p)
		if err != nil {
			return fmt.Errorf("rectangle %d: %w", i, err)
		}
		if o.kind == opMove && !moves {
			return fmt.Errorf("rectangle %d: moved, in a part without moves", i)
		}
		size := o.r.Dx() * o.r.Dy() * p.Unit
		if *budget -= size; *budget < 0 {
			return errTwice
		}
		if o.kind == opLiteral {
			literals += size
		}
		ops = append(ops, o)
	}
	if c.err != nil {
		return c.err
	}
	if literals > 0 && len(c.b) > 0 && c.b[0] == codePredicted {
		c.byte()
		if err := d.predict.decode(&c, p, d.comps[first], hasGreen(d.format), ops); err != nil {
			return fmt.Errorf("predicted literals: %w", err)
		}
		d.scatter(p, d.comps[first], ops)
		return nil
	}
	if literals > 0 && len(c.b) > 0 && c.b[0] == codeGrey {
		c.byte()
		return d.grey(&c, p, first, ops, literals/p.Unit)
	}
	if err := d.literals(&c, literals); err != nil {
		return fmt.Errorf("literals: %w", err)
	}
	lits := d.lits
	for _, o := range ops {
		lits = d.apply(p, o, lits)
	}
	return nil
}

// grey draws the rectangles of a part whose literals, units of them, have no colour.
func (d *decoder) grey(c *cursor, p diff.Plane, plane int, ops []op, units int) error {
	if len(d.comps[plane]) < 2 || len(d.planes) > 1 {
		return fmt.Errorf("grey literals in %s", d.format.Pixels)
	}
	luma := d.comps[plane][0]
	if err := d.literals(c, luma.perRow(p, units)); err != nil {
		return fmt.Errorf("grey literals: %w", err)
	}
	lits := d.lits
	for _, o := range ops {
		if o.kind != opLiteral {
			d.apply(p, o, nil)
			continue
		}
		n := luma.perRow(p, o.r.Dx())
		for y := o.r.Min.Y; y < o.r.Max.Y; y++ {
			ungrey(d.row(p, y, o.r), lits[:n], d.format.Pixels)
			lits = lits[n:]
		}
	}
	return nil
}

// readOp reads one rectangle and checks it against the plane.
func readOp(c *cursor, p diff.Plane) (op, error) {
	o := op{kind: c.byte()}
	x, y := c.int(p.Units()), c.int(p.Rows)
	o.r = image.Rect(x, y, x+c.int(p.Units()), y+c.int(p.Rows))
	if o.r.Empty() {
		return o, fmt.Errorf("%v is empty", o.r)
	}
	if !o.r.In(p.Bounds()) {
		return o, fmt.Errorf("%v is outside the plane %v", o.r, p.Bounds())
	}
	switch o.kind {
	case opLiteral:
	case opMove:
		o.dx, o.dy = c.signed(p.Units()), c.signed(p.Rows)
		if !o.r.Add(image.Pt(o.dx, o.dy)).In(p.Bounds()) {
			return o, fmt.Errorf("%v comes from outside the plane", o.r)
		}
	case opFill:
		o.unit = c.bytes(p.Unit)
	default:
		return o, fmt.Errorf("unknown kind %d", o.kind)
	}
	return o, c.err
}

// literals decompresses the rest of a part, n bytes, into d.lits.
func (d *decoder) literals(c *cursor, n int) error {
	d.lits = d.lits[:0]
	if n == 0 {
		if len(c.b) > 0 {
			return fmt.Errorf("%d bytes for no pixel", len(c.b))
		}
		return nil
	}
	switch code := c.byte(); code {
	case codeRaw:
		if len(c.b) != n {
			return fmt.Errorf("%d bytes for %d", len(c.b), n)
		}
		d.lits = append(d.lits, c.b...)
	case codeS2, codeS2Huffman:
		in := c.b
		if code == codeS2Huffman {
			d.packed = grow(d.packed, c.int(s2.MaxEncodedLen(n)))
			if err := d.predict.unpack(c, d.packed, false); err != nil {
				return err
			}
			if len(c.b) > 0 {
				return fmt.Errorf("%d bytes too many", len(c.b))
			}
			in = d.packed
		}
		if got, err := s2.DecodedLen(in); err != nil || got != n {
			return fmt.Errorf("s2 holds %d bytes for %d (%v)", got, n, err)
		}
		if cap(d.lits) < n {
			d.lits = make([]byte, n)
		}
		var err error
		if d.lits, err = s2.Decode(d.lits[:n], in); err != nil {
			return fmt.Errorf("s2: %w", err)
		}
	default:
		return fmt.Errorf("unknown compression %d", code)
	}
	return nil
}

// scatter draws the rectangles of a part with predicted literals.
func (d *decoder) scatter(p diff.Plane, comps []component, ops []op) {
	at := make([]int, len(comps))
	for _, o := range ops {
		if o.kind != opLiteral {
			d.apply(p, o, nil)
			continue
		}
		for y := o.r.Min.Y; y < o.r.Max.Y; y++ {
			row := d.row(p, y, o.r)
			if p.Unit == 4 && len(comps) == 4 {
				n := o.r.Dx()
				var from [4][]byte
				for i := range from {
					from[i] = d.predict.samples[i][at[i] : at[i]+n]
					at[i] += n
				}
				join4(row, from[0], from[1], from[2], from[3])
				continue
			}
			for i, k := range comps {
				n := k.perRow(p, o.r.Dx())
				k.scatter(row, d.predict.samples[i][at[i]:at[i]+n])
				at[i] += n
			}
		}
	}
}

// row returns row y of a rectangle of the frame that is being decoded.
func (d *decoder) row(p diff.Plane, y int, r image.Rectangle) []byte {
	if d.rows != nil {
		return d.rows.rows[y][r.Min.X*p.Unit : r.Max.X*p.Unit]
	}
	return p.Row(d.cur, y, r.Min.X, r.Max.X)
}

// apply draws one rectangle and returns the literals that are left.
func (d *decoder) apply(p diff.Plane, o op, lits []byte) []byte {
	for y := o.r.Min.Y; y < o.r.Max.Y; y++ {
		if d.rows != nil && d.rows.taken[y] {
			continue // the whole row is one of the frame before
		}
		row := d.row(p, y, o.r)
		switch o.kind {
		case opLiteral:
			lits = lits[copy(row, lits):]
		case opMove:
			if from := o.r.Add(image.Pt(o.dx, 0)); d.rows != nil {
				copy(row, d.rows.before[y+o.dy][from.Min.X*p.Unit:from.Max.X*p.Unit])
			} else {
				copy(row, p.Row(d.prev, y+o.dy, from.Min.X, from.Max.X))
			}
		case opFill:
			if y > o.r.Min.Y {
				copy(row, d.row(p, o.r.Min.Y, o.r))
				continue
			}
			for n := copy(row, o.unit); n < len(row); n *= 2 {
				copy(row[n:], row[:n])
			}
		}
	}
	return lits
}
