package reel

import (
	"encoding/binary"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// component is where the samples of one kind lie in a row: blue, luma, …
type component struct {
	off, step int // bytes: of the first sample, and from one to the next
}

// components returns the components of each plane of a format, green first,
// because the other colours are predicted from it.
func components(f lab.Format) [][]component {
	odd := f.Width%2 == 1 // the last pair of a 4:2:2 row is cut: units are single samples
	switch f.Pixels {
	case lab.BGRX:
		return [][]component{{{1, 4}, {0, 4}, {2, 4}, {3, 4}}}
	case lab.BGR24:
		return [][]component{{{1, 3}, {0, 3}, {2, 3}}}
	case lab.YUYV:
		if odd {
			return [][]component{{{0, 2}, {1, 2}}}
		}
		return [][]component{{{0, 2}, {1, 4}, {3, 4}}}
	case lab.UYVY:
		if odd {
			return [][]component{{{1, 2}, {0, 2}}}
		}
		return [][]component{{{1, 2}, {0, 4}, {2, 4}}}
	case lab.NV12:
		return [][]component{{{0, 1}}, {{0, 2}, {1, 2}}}
	case lab.Grey:
		return [][]component{{{0, 1}}}
	default:
		return nil
	}
}

// hasGreen says whether a plane's second and third component are blue and red.
func hasGreen(f lab.Format) bool { return f.Pixels == lab.BGRX || f.Pixels == lab.BGR24 }

// perRow returns the samples of component c in a row of w units.
func (c component) perRow(p diff.Plane, w int) int { return w * p.Unit / c.step }

// gather copies a component's samples out of a row.
func (c component) gather(dst, row []byte) {
	switch c.step {
	case 1:
		copy(dst, row)
	case 2:
		i := 0
		for ; i+4 <= len(dst); i += 4 {
			x := get(row[2*i:]) >> (8 * c.off) & 0x00ff00ff00ff00ff
			x = (x | x>>8) & 0x0000ffff0000ffff
			binary.LittleEndian.PutUint32(dst[i:], uint32(x|x>>16))
		}
		for ; i < len(dst); i++ {
			dst[i] = row[2*i+c.off]
		}
	case 4:
		i := 0
		for ; i+4 <= len(dst); i += 4 {
			a, b := get(row[4*i:])>>(8*c.off), get(row[4*i+8:])>>(8*c.off)
			binary.LittleEndian.PutUint32(dst[i:], uint32(pick(a)|pick(b)<<16))
		}
		for ; i < len(dst); i++ {
			dst[i] = row[4*i+c.off]
		}
	default:
		row = row[c.off:]
		for i, k := 0, 0; i < len(dst); i, k = i+1, k+c.step {
			dst[i] = row[k]
		}
	}
}

// scatter is gather's inverse.
func (c component) scatter(row, src []byte) {
	if c.step == 1 {
		copy(row, src)
		return
	}
	row = row[c.off:]
	for i, k := 0, 0; i < len(src); i, k = i+1, k+c.step {
		row[k] = src[i]
	}
}

// Predictors. L is the sample to the left, U the one above, UL the one above L. In a
// rectangle's first row every predictor is L, and what lies outside is 0; in
// the first column of later rows every predictor is U.
const (
	predictLeft     = 0 // L
	predictUp       = 1 // U
	predictAverage  = 2 // ⌊(L + U) / 2⌋: best in noise
	predictGradient = 3 // L + U − UL: best on smooth shades
	predictors      = 4
)

const high = 0x8080808080808080

// subBytes subtracts the eight bytes of b from those of a.
func subBytes(a, b uint64) uint64 { return ((a | high) - (b &^ high)) ^ ((a ^ ^b) & high) }

// averageBytes is ⌊(a + b) / 2⌋ of each of eight bytes.
func averageBytes(a, b uint64) uint64 { return (a & b) + ((a^b)&0xfefefefefefefefe)>>1 }

// residuals writes cur minus its prediction to dst. up is the row above, nil
// for the first. All have the same length; eight samples are done at a time.
func residuals(dst, cur, up []byte, predictor int) {
	n := len(cur)
	if n == 0 {
		return
	}
	if up == nil {
		predictor = predictLeft
		dst[0] = cur[0]
	} else {
		up = up[:n]
		dst[0] = cur[0] - up[0]
	}
	dst = dst[:n]
	i := 1
	switch predictor {
	case predictLeft:
		for ; i+8 <= n; i += 8 {
			put(dst[i:], subBytes(get(cur[i:]), get(cur[i-1:])))
		}
		for ; i < n; i++ {
			dst[i] = cur[i] - cur[i-1]
		}
	case predictUp:
		for ; i+8 <= n; i += 8 {
			put(dst[i:], subBytes(get(cur[i:]), get(up[i:])))
		}
		for ; i < n; i++ {
			dst[i] = cur[i] - up[i]
		}
	case predictAverage:
		for ; i+8 <= n; i += 8 {
			put(dst[i:], subBytes(get(cur[i:]), averageBytes(get(cur[i-1:]), get(up[i:]))))
		}
		for ; i < n; i++ {
			dst[i] = cur[i] - byte((int(cur[i-1])+int(up[i]))>>1)
		}
	case predictGradient:
		for ; i+8 <= n; i += 8 {
			put(dst[i:], subBytes(subBytes(get(cur[i:]), get(cur[i-1:])), subBytes(get(up[i:]), get(up[i-1:]))))
		}
		for ; i < n; i++ {
			dst[i] = cur[i] - cur[i-1] - up[i] + up[i-1]
		}
	}
}

func get(b []byte) uint64    { return binary.LittleEndian.Uint64(b) }
func put(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// restore is the inverse of residuals, in place: row holds residuals and gets samples.
func restore(row, up []byte, predictor int) {
	n := len(row)
	if n == 0 {
		return
	}
	if up == nil {
		predictor = predictLeft
	} else {
		up = up[:n]
		row[0] += up[0]
	}
	left := row[0]
	switch predictor {
	case predictLeft:
		for i := 1; i < n; i++ {
			left += row[i]
			row[i] = left
		}
	case predictUp:
		for i := 1; i < n; i++ {
			row[i] += up[i]
		}
	case predictAverage:
		for i := 1; i < n; i++ {
			left = row[i] + byte((int(left)+int(up[i]))>>1)
			row[i] = left
		}
	case predictGradient:
		for i := 1; i < n; i++ {
			left += row[i] + up[i] - up[i-1]
			row[i] = left
		}
	}
}
