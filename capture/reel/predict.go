package reel

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/huff0"

	"eidetic/capture/diff"
)

// Predicted literals (codePredicted): each component's samples of all literal
// rectangles, minus their prediction, in Huffman-coded blocks. It is what
// MagicYUV and Ut Video do, with the predictor chosen for each part.

const (
	blockSamples = 1 << 17 // of a Huffman block

	packRaw      = 0 // samples as they are
	packConstant = 1 // one sample, repeated
	packHuffman  = 2 // huff0, four streams
	packSmall    = 3 // quads, then the residuals that are not small
)

// predictCoder holds the scratch memory of coding predicted literals.
type predictCoder struct {
	samples [4][]byte // of each component
	res     []byte
	quads   []byte
	rest    []byte
	huff    *huff0.Scratch
}

func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// append codes the literal rectangles of ops.
func (c *predictCoder) append(dst []byte, p diff.Plane, comps []component, green bool, pix []byte, ops []op) []byte {
	units := 0
	for _, o := range ops {
		if o.kind == opLiteral {
			units += o.r.Dx() * o.r.Dy()
		}
	}
	for i, k := range comps {
		c.samples[i] = grow(c.samples[i], k.perRow(p, units))
	}
	c.collect(p, comps, pix, ops)
	subtract := green && c.greenHelps()
	if subtract {
		for i := 1; i <= 2; i++ {
			subtractInto(c.samples[i], c.samples[0])
		}
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	for i, k := range comps {
		if v, ok := constant(c.samples[i]); ok {
			dst = append(dst, predictLeft|predictConstant, v)
			continue
		}
		predictor := c.choose(c.samples[i], p, k, ops)
		dst = append(dst, byte(predictor))
		c.res = grow(c.res, len(c.samples[i]))
		eachRow(p, k, ops, func(at, width int, first bool) {
			var up []byte
			if !first {
				up = c.samples[i][at-width : at]
			}
			residuals(c.res[at:at+width], c.samples[i][at:at+width], up, predictor)
		})
		dst = c.packResiduals(dst, c.res)
	}
	return dst
}

// packResiduals appends residuals in blocks, as what they are best.
func (c *predictCoder) packResiduals(dst, s []byte) []byte {
	for len(s) > 0 {
		n := min(len(s), blockSamples)
		if smallHelps(s[:n]) {
			c.quads, c.rest = quads(c.quads[:0], c.rest[:0], s[:n])
			dst = append(dst, packSmall)
			dst = binary.AppendUvarint(dst, uint64(len(c.rest)))
			dst = c.pack(dst, c.quads)
			dst = c.pack(dst, c.rest)
		} else {
			dst = c.pack(dst, s[:n])
		}
		s = s[n:]
	}
	return dst
}

// predictConstant marks a component whose samples are all equal; one follows.
const predictConstant = 0x80

// collect gathers all components' samples.
func (c *predictCoder) collect(p diff.Plane, comps []component, pix []byte, ops []op) {
	var at [4]int
	for _, o := range ops {
		if o.kind != opLiteral {
			continue
		}
		for y := o.r.Min.Y; y < o.r.Max.Y; y++ {
			row := p.Row(pix, y, o.r.Min.X, o.r.Max.X)
			if p.Unit == 4 && len(comps) == 4 {
				n := o.r.Dx()
				split4(c.samples[0][at[0]:at[0]+n], c.samples[1][at[0]:], c.samples[2][at[0]:], c.samples[3][at[0]:], row)
				at[0] += n
				continue
			}
			for i, k := range comps {
				n := k.perRow(p, o.r.Dx())
				k.gather(c.samples[i][at[i]:at[i]+n], row)
				at[i] += n
			}
		}
	}
}

// split4 parts BGRX pixels into green, blue, red and the fourth byte.
func split4(g, b, r, x, row []byte) {
	n := len(g)
	b, r, x, row = b[:n], r[:n], x[:n], row[:4*n]
	i := 0
	for ; i+8 <= n; i += 8 {
		q := row[4*i : 4*i+32 : 4*i+32]
		v0, v1, v2, v3 := get(q), get(q[8:]), get(q[16:]), get(q[24:])
		put(b[i:], pick(v0)|pick(v1)<<16|pick(v2)<<32|pick(v3)<<48)
		put(g[i:], pick(v0>>8)|pick(v1>>8)<<16|pick(v2>>8)<<32|pick(v3>>8)<<48)
		put(r[i:], pick(v0>>16)|pick(v1>>16)<<16|pick(v2>>16)<<32|pick(v3>>16)<<48)
		put(x[i:], pick(v0>>24)|pick(v1>>24)<<16|pick(v2>>24)<<32|pick(v3>>24)<<48)
	}
	for ; i < n; i++ {
		b[i], g[i], r[i], x[i] = row[4*i], row[4*i+1], row[4*i+2], row[4*i+3]
	}
}

// join4 is split4 backwards.
func join4(row, g, b, r, x []byte) {
	n := len(g)
	b, r, x, row = b[:n], r[:n], x[:n], row[:4*n]
	for i := range g {
		binary.LittleEndian.PutUint32(row[4*i:], uint32(b[i])|uint32(g[i])<<8|uint32(r[i])<<16|uint32(x[i])<<24)
	}
}

// pick returns bytes 0 and 4 of v as the low two bytes.
func pick(v uint64) uint64 { return v&0xff | v>>24&0xff00 }

// subtractInto subtracts b from a.
func subtractInto(a, b []byte) {
	b = b[:len(a)]
	i := 0
	for ; i+8 <= len(a); i += 8 {
		put(a[i:], subBytes(get(a[i:]), get(b[i:])))
	}
	for ; i < len(a); i++ {
		a[i] -= b[i]
	}
}

// addInto adds b to a.
func addInto(a, b []byte) {
	b = b[:len(a)]
	for i := range a {
		a[i] += b[i]
	}
}

// constant says whether all samples are equal.
func constant(s []byte) (byte, bool) {
	return s[0], diff.Flat(s, 1)
}

// size is the magnitude of a residual, which wraps around.
func size(v byte) int {
	n := int(int8(v))
	return max(n, -n)
}

// greenHelps samples whether blue and red vary less once green is taken off.
func (c *predictCoder) greenHelps() bool {
	g, b, r := c.samples[0], c.samples[1], c.samples[2]
	with, without := 0, 0
	for i := 1; i < len(g); i += 1 + len(g)/2048 {
		dg, db, dr := g[i]-g[i-1], b[i]-b[i-1], r[i]-r[i-1]
		without += size(db) + size(dr)
		with += size(db-dg) + size(dr-dg)
	}
	return with < without
}

// choose returns the predictor with the smallest residuals in some rows.
func (c *predictCoder) choose(s []byte, p diff.Plane, k component, ops []op) int {
	var sum [predictors]int
	rows := 0
	eachRow(p, k, ops, func(at, width int, first bool) {
		if rows++; first || rows%8 != 0 {
			return
		}
		cur, up := s[at:at+width], s[at-width:at]
		for i := 1; i < width; i += 3 {
			l, u, ul := cur[i-1], up[i], up[i-1]
			sum[predictLeft] += size(cur[i] - l)
			sum[predictUp] += size(cur[i] - u)
			sum[predictAverage] += size(cur[i] - byte((int(l)+int(u))>>1))
			sum[predictGradient] += size(cur[i] - l - u + ul)
		}
	})
	best := predictLeft
	for i, v := range sum {
		if v < sum[best] {
			best = i
		}
	}
	return best
}

// eachRow calls fn with the place and width of every row of the literal
// rectangles in a component's samples.
func eachRow(p diff.Plane, k component, ops []op, fn func(at, width int, first bool)) {
	at := 0
	for _, o := range ops {
		if o.kind != opLiteral {
			continue
		}
		width := k.perRow(p, o.r.Dx())
		for y := range o.r.Dy() {
			fn(at, width, y == 0)
			at += width
		}
	}
}

// pack appends samples in Huffman blocks.
func (c *predictCoder) pack(dst, s []byte) []byte {
	if c.huff == nil {
		c.huff = &huff0.Scratch{Reuse: huff0.ReusePolicyNone}
	}
	for len(s) > 0 {
		n := min(len(s), blockSamples)
		out, _, err := huff0.Compress4X(s[:n], c.huff)
		switch {
		case err == nil:
			dst = append(dst, packHuffman)
			dst = binary.AppendUvarint(dst, uint64(len(out)))
			dst = append(dst, out...)
		case errors.Is(err, huff0.ErrUseRLE):
			dst = append(dst, packConstant, s[0])
		default: // incompressible, or too short
			dst = append(dst, packRaw)
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	return dst
}

// unpackSmall reads a block of small residuals.
func (c *predictCoder) unpackSmall(r *cursor, dst []byte) error {
	c.rest = grow(c.rest, r.int(len(dst)))
	c.quads = grow(c.quads, (len(dst)+3)/4)
	if err := c.unpack(r, c.quads, false); err != nil {
		return fmt.Errorf("small residuals: %w", err)
	}
	if err := c.unpack(r, c.rest, false); err != nil {
		return fmt.Errorf("large residuals: %w", err)
	}
	if !unquads(dst, c.quads, c.rest) {
		return errors.New("the large residuals are not as many as the small ones need")
	}
	return nil
}

// unpack reads len(dst) samples; small says whether they may be in blocks of
// small residuals.
func (c *predictCoder) unpack(r *cursor, dst []byte, small bool) error {
	for len(dst) > 0 {
		n := min(len(dst), blockSamples)
		switch kind := r.byte(); kind {
		case packRaw:
			copy(dst[:n], r.bytes(n))
		case packConstant:
			v := r.byte()
			for i := range dst[:n] {
				dst[i] = v
			}
		case packHuffman:
			in := r.bytes(r.int(n))
			if r.err != nil {
				return r.err
			}
			var err error
			if c.huff, in, err = huff0.ReadTable(in, c.huff); err != nil {
				return fmt.Errorf("huff0 table: %w", err)
			}
			out, err := c.huff.Decoder().Decompress4X(dst[:0:n], in)
			if err != nil || len(out) != n {
				return fmt.Errorf("huff0 block of %d samples for %d: %w", len(out), n, cmp.Or(err, errShort))
			}
		case packSmall:
			if !small {
				return errors.New("a block of small residuals inside another")
			}
			if err := c.unpackSmall(r, dst[:n]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown block %d", kind)
		}
		if r.err != nil {
			return r.err
		}
		dst = dst[n:]
	}
	return nil
}

// decode reads the literals of ops into c.samples.
func (c *predictCoder) decode(r *cursor, p diff.Plane, comps []component, green bool, ops []op) error {
	units := 0
	for _, o := range ops {
		if o.kind == opLiteral {
			units += o.r.Dx() * o.r.Dy()
		}
	}
	subtract := r.byte()
	if subtract > 1 || subtract == 1 && !green {
		return fmt.Errorf("unknown colour transform %d", subtract)
	}
	for i, k := range comps {
		s := grow(c.samples[i], k.perRow(p, units))
		c.samples[i] = s
		predictor := int(r.byte())
		if predictor == predictConstant {
			v := r.byte()
			for j := range s {
				s[j] = v
			}
			continue
		}
		if predictor >= predictors {
			return fmt.Errorf("unknown predictor %d", predictor)
		}
		if err := c.unpack(r, s, true); err != nil {
			return err
		}
		eachRow(p, k, ops, func(at, width int, first bool) {
			var up []byte
			if !first {
				up = s[at-width : at]
			}
			restore(s[at:at+width], up, predictor)
		})
	}
	if r.err != nil {
		return r.err
	}
	if len(r.b) > 0 {
		return fmt.Errorf("%d bytes too many", len(r.b))
	}
	if subtract == 1 {
		addInto(c.samples[1], c.samples[0])
		addInto(c.samples[2], c.samples[0])
	}
	return nil
}
