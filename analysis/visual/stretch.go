package visual

import (
	"encoding/binary"
	"image"
	"math/bits"
)

// colourBits are those of two BGRX pixels that are no padding.
const colourBits = 0x00ffffff00ffffff

const stretchPrime = 0x9e3779b97f4a7c15

// StretchSum is a hash of n pixels of row y from x0 on: equal stretches have equal sums, and others
// equal ones with the chance of 64-bit hashes. It is 0 where all have one colour. row is scratch
// memory for n pixels.
func (a Access) StretchSum(pix Raster, y, x0, n int, row []uint32) uint64 {
	if !a.plane.bgrx {
		row = row[:n]
		a.Row(row, pix, y, x0)
		return sumOf(row)
	}
	mem, at := pix.line(y)
	src := mem[at*a.plane.stride+4*x0:][:4*n]
	first := uint64(binary.LittleEndian.Uint32(src)) & 0xffffff
	first |= first << 32
	var differ uint64
	h0, h1, h2, h3 := uint64(1), uint64(2), uint64(3), uint64(4)
	for len(src) >= 32 { // four chains, since each step waits for the one before
		v0, v1 := binary.LittleEndian.Uint64(src)&colourBits, binary.LittleEndian.Uint64(src[8:])&colourBits
		v2, v3 := binary.LittleEndian.Uint64(src[16:])&colourBits, binary.LittleEndian.Uint64(src[24:])&colourBits
		differ |= (v0 ^ first) | (v1 ^ first) | (v2 ^ first) | (v3 ^ first)
		h0, h1 = bits.RotateLeft64(h0^v0, 29)*stretchPrime, bits.RotateLeft64(h1^v1, 29)*stretchPrime
		h2, h3 = bits.RotateLeft64(h2^v2, 29)*stretchPrime, bits.RotateLeft64(h3^v3, 29)*stretchPrime
		src = src[32:]
	}
	for ; len(src) >= 4; src = src[4:] {
		v := uint64(binary.LittleEndian.Uint32(src)) & 0xffffff
		differ |= v ^ first&0xffffff
		h0 = bits.RotateLeft64(h0^v, 29) * stretchPrime
	}
	if differ == 0 {
		return 0
	}
	return mix(mix(h0, h1), mix(h2, h3)) | 1
}

func mix(a, b uint64) uint64 {
	h := (bits.RotateLeft64(a, 31) ^ b) * stretchPrime
	return h ^ h>>32
}

// sumOf is the same for any pixels.
func sumOf(row []uint32) uint64 {
	var differ uint32
	hash := uint64(1)
	for _, c := range row {
		differ |= c ^ row[0]
		hash = (hash ^ uint64(c)) * stretchPrime
		hash ^= hash >> 29
	}
	if differ == 0 {
		return 0
	}
	return hash | 1
}

// Plain says of each piece of side × side pixels whether it has one colour: out holds
// size.X × size.Y pieces from the corner on, in rows. row is scratch memory for a row of them.
func (a Access) Plain(out []bool, pix Raster, corner, size image.Point, side int, row []uint32) {
	if a.plane.bgrx && side%2 == 0 {
		a.plainBGRX(out, pix, corner, size, side)
		return
	}
	row = row[:size.X*side]
	first := make([]uint32, size.X)
	for y := range size.Y * side {
		a.Row(row, pix, corner.Y+y, corner.X)
		pieces := out[y/side*size.X:][:size.X]
		for x := range pieces {
			px := row[x*side:][:side]
			if y%side == 0 {
				first[x], pieces[x] = px[0], true
			}
			for _, c := range px {
				pieces[x] = pieces[x] && c == first[x]
			}
		}
	}
}

// plainBGRX reads two pixels at a time.
func (a Access) plainBGRX(out []bool, pix Raster, corner, size image.Point, side int) {
	lines := make([][]byte, side)
	for cy := range size.Y {
		pieces := out[cy*size.X:][:size.X]
		for y := range side {
			mem, at := pix.line(corner.Y + cy*side + y)
			lines[y] = mem[at*a.plane.stride+4*corner.X:][:4*side*size.X]
		}
		for x := range pieces {
			from, to := 4*x*side, 4*(x+1)*side
			first := uint64(binary.LittleEndian.Uint32(lines[0][from:])) & 0xffffff
			first |= first << 32
			var differ uint64
			for y := 0; y < side && differ == 0; y++ {
				line := lines[y][from:to]
				for len(line) >= 8 {
					differ |= binary.LittleEndian.Uint64(line) ^ first
					line = line[8:]
				}
				differ &= colourBits
			}
			pieces[x] = differ == 0
		}
	}
}
