package v4l2

import (
	"encoding/binary"

	"eidetic/internal/lab"
)

// The functions in this file make a row of ours of a driver's rows, eight bytes at a time where that is quicker. Their
// loops cut the rows shorter instead of counting, because the compiler then leaves out the checks of bounds. Samples of
// 16 bits and words of pixels are little-endian, as V4L2 has them.

func get(b []byte) uint64    { return binary.LittleEndian.Uint64(b) }
func put(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }
func four(b []byte) uint32   { return binary.LittleEndian.Uint32(b) }

func asIs(dst []byte, src [3][]byte, _ *lab.YCbCrTables) { copy(dst, src[0]) }

// clearFourth clears the byte of each pixel that holds no colour: drivers do not set it.
func clearFourth(dst []byte, src [3][]byte, _ *lab.YCbCrTables) {
	const colours = 0x00ffffff_00ffffff
	from := src[0]
	for len(dst) >= 8 && len(from) >= 8 {
		put(dst, get(from)&colours)
		dst, from = dst[8:], from[8:]
	}
	if len(dst) > 0 {
		dst[0], dst[1], dst[2], dst[3] = from[0], from[1], from[2], 0
	}
}

// swapOfThree makes BGR of RGB.
func swapOfThree(dst []byte, src [3][]byte, _ *lab.YCbCrTables) {
	from := src[0]
	for len(dst) >= 3 && len(from) >= 3 {
		dst[0], dst[1], dst[2] = from[2], from[1], from[0]
		dst, from = dst[3:], from[3:]
	}
}

// swapOdd makes YUYV of YVYU.
func swapOdd(dst []byte, src [3][]byte, _ *lab.YCbCrTables) { swapChroma(dst, src[0], 8) }

// swapEven makes UYVY of VYUY.
func swapEven(dst []byte, src [3][]byte, _ *lab.YCbCrTables) { swapChroma(dst, src[0], 0) }

// swapChroma swaps the bytes 0 and 2 of each four, or 1 and 3 with a shift of 8 bits. The row may be swapped in place.
func swapChroma(dst, from []byte, shift int) {
	first := uint64(0x000000ff_000000ff) << shift
	luma := ^(first | first<<16)
	for len(dst) >= 8 && len(from) >= 8 {
		v := get(from)
		put(dst, v&luma|v&first<<16|v>>16&first)
		dst, from = dst[8:], from[8:]
	}
	if len(dst) >= 4 {
		v := uint64(four(from))
		binary.LittleEndian.PutUint32(dst, uint32(v&luma|v&first<<16|v>>16&first))
	}
}

// swapPairs makes UV of VU.
func swapPairs(dst []byte, src [3][]byte, _ *lab.YCbCrTables) {
	const even = 0x00ff00ff_00ff00ff
	from := src[0]
	for len(dst) >= 8 && len(from) >= 8 {
		v := get(from)
		put(dst, v>>8&even|v&even<<8)
		dst, from = dst[8:], from[8:]
	}
	for len(dst) >= 2 && len(from) >= 2 {
		dst[0], dst[1] = from[1], from[0]
		dst, from = dst[2:], from[2:]
	}
}

// spread puts a zero byte behind each of four.
func spread(four uint32) uint64 {
	v := uint64(four)
	v = (v | v<<16) & 0x0000ffff_0000ffff
	return (v | v<<8) & 0x00ff00ff_00ff00ff
}

// zip takes a byte from each in turn: UV of U and V, and YUYV of Y and UV.
func zip(dst []byte, src [3][]byte, _ *lab.YCbCrTables) {
	a, b := src[0], src[1]
	for len(dst) >= 8 && len(a) >= 4 && len(b) >= 4 {
		put(dst, spread(four(a))|spread(four(b))<<8)
		dst, a, b = dst[8:], a[4:], b[4:]
	}
	for len(dst) >= 2 {
		dst[0], dst[1] = a[0], b[0]
		dst, a, b = dst[2:], a[1:], b[1:]
	}
}

// weaveSwapped makes YUYV of Y and VU.
func weaveSwapped(dst []byte, src [3][]byte, c *lab.YCbCrTables) {
	zip(dst, src, c)
	swapChroma(dst, dst, 8)
}

// weaveThree makes YUYV of Y, U and V.
func weaveThree(dst []byte, src [3][]byte, _ *lab.YCbCrTables) {
	y, u, v := src[0], src[1], src[2]
	for len(dst) >= 16 && len(y) >= 8 && len(u) >= 4 && len(v) >= 4 {
		// Eight pixels: four pairs of chroma, spread over the odd bytes of sixteen.
		chroma := spread(four(u)) | spread(four(v))<<8
		put(dst, spread(four(y))|spread(uint32(chroma))<<8)
		put(dst[8:], spread(four(y[4:]))|spread(uint32(chroma>>32))<<8)
		dst, y, u, v = dst[16:], y[8:], u[4:], v[4:]
	}
	for len(dst) >= 4 {
		dst[0], dst[1], dst[2], dst[3] = y[0], u[0], y[1], v[0]
		dst, y, u, v = dst[4:], y[2:], u[1:], v[1:]
	}
}

// narrow rounds samples of ten bits, which stand in the upper bits of sixteen, to eight.
func narrow(dst []byte, src [3][]byte, _ *lab.YCbCrTables) {
	const one, nine = 0x0001_0001_0001_0001, 0x01ff_01ff_01ff_01ff
	from := src[0]
	for len(dst) >= 4 && len(from) >= 8 {
		v := (get(from)>>7&nine + one) >> 1 & nine
		v -= v >> 8 & one // 256 is 255
		v = (v | v>>8) & 0x0000ffff_0000ffff
		binary.LittleEndian.PutUint32(dst, uint32(v|v>>16))
		dst, from = dst[4:], from[8:]
	}
	for len(dst) >= 1 && len(from) >= 2 {
		dst[0] = byte(min((binary.LittleEndian.Uint16(from)>>7+1)>>1, 255))
		dst, from = dst[1:], from[2:]
	}
}

// colour makes BGRX of Y and UV.
func colour(dst []byte, src [3][]byte, c *lab.YCbCrTables) {
	paint := painter{c: c}
	y, uv := src[0], src[1]
	for len(dst) >= 16 && len(y) >= 4 && len(uv) >= 8 {
		pairs := get(uv)
		paint.four(dst, four(y), squeeze(pairs), squeeze(pairs>>8))
		dst, y, uv = dst[16:], y[4:], uv[8:]
	}
	for i := range len(dst) / 4 {
		binary.LittleEndian.PutUint32(dst[4*i:], c.BGRX(y[i], uv[2*i], uv[2*i+1]))
	}
}

// colourSwapped makes BGRX of Y and VU.
func colourSwapped(dst []byte, src [3][]byte, c *lab.YCbCrTables) {
	paint := painter{c: c}
	y, vu := src[0], src[1]
	for len(dst) >= 16 && len(y) >= 4 && len(vu) >= 8 {
		pairs := get(vu)
		paint.four(dst, four(y), squeeze(pairs>>8), squeeze(pairs))
		dst, y, vu = dst[16:], y[4:], vu[8:]
	}
	for i := range len(dst) / 4 {
		binary.LittleEndian.PutUint32(dst[4*i:], c.BGRX(y[i], vu[2*i+1], vu[2*i]))
	}
}

// colourThree makes BGRX of Y, U and V.
func colourThree(dst []byte, src [3][]byte, c *lab.YCbCrTables) {
	paint := painter{c: c}
	y, u, v := src[0], src[1], src[2]
	for len(dst) >= 16 && len(y) >= 4 && len(u) >= 4 && len(v) >= 4 {
		paint.four(dst, four(y), four(u), four(v))
		dst, y, u, v = dst[16:], y[4:], u[4:], v[4:]
	}
	for i := range len(dst) / 4 {
		binary.LittleEndian.PutUint32(dst[4*i:], c.BGRX(y[i], u[i], v[i]))
	}
}

// squeeze takes every second of eight bytes.
func squeeze(v uint64) uint32 {
	v &= 0x00ff00ff_00ff00ff
	v = (v | v>>8) & 0x0000ffff_0000ffff
	return uint32(v | v>>16)
}

// painter converts four pixels at once, and remembers the last four: on a screen most are like those before.
type painter struct {
	c           *lab.YCbCrTables
	any         bool
	y, u, v     uint32
	left, right uint64
}

func (p *painter) four(dst []byte, y, u, v uint32) {
	if !p.any || y != p.y || u != p.u || v != p.v {
		word := func(shift int) uint64 { return uint64(p.c.BGRX(byte(y>>shift), byte(u>>shift), byte(v>>shift))) }
		p.any, p.y, p.u, p.v = true, y, u, v
		p.left, p.right = word(0)|word(8)<<32, word(16)|word(24)<<32
	}
	put(dst, p.left)
	put(dst[8:], p.right)
}
