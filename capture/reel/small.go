package reel

import "math/bits"

// Small residuals (packSmall): where a prediction is good, most residuals are
// −1, 0 or 1. A Huffman code spends at least a bit on each; four of them in one
// byte cost less than a bit each, and a quarter of the work.

const (
	smallStep  = 61 // samples looked at: one in so many
	smallShare = 13 // of 16 that must be small
)

// smallHelps samples whether most residuals are −1, 0 or 1.
func smallHelps(s []byte) bool {
	if len(s) < 1024 {
		return false
	}
	small, all := 0, 0
	for i := 0; i < len(s); i += smallStep {
		if s[i]+1 < 3 {
			small++
		}
		all++
	}
	return small*16 >= all*smallShare
}

// quads appends to dst one byte for every four residuals, two bits each, the
// first lowest: 0, 1 and 2 for −1, 0 and 1, and 3 for any other, which is
// appended to rest. A last, incomplete byte is filled with 1s, residuals of 0.
func quads(dst, rest, s []byte) ([]byte, []byte) {
	const ones, low7 = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f
	i := 0
	for ; i+8 <= len(s); i += 8 {
		v := get(s[i:])
		t := (v&low7 + ones) ^ v&high // plus one, byte by byte
		other := (t&low7 + 0x7d7d7d7d7d7d7d7d | t) & high
		x := t&(3*ones) | other>>7 | other>>6
		x = (x | x>>6) & 0x000f000f000f000f
		x |= x >> 12
		dst = append(dst, byte(x), byte(x>>32))
		for ; other != 0; other &= other - 1 {
			rest = append(rest, s[i+bits.TrailingZeros64(other)/8])
		}
	}
	for ; i < len(s); i += 4 {
		var q byte
		for k := range 4 {
			class := byte(1)
			if i+k < len(s) {
				class = min(s[i+k]+1, 3)
				if class == 3 {
					rest = append(rest, s[i+k])
				}
			}
			q |= class << (2 * k)
		}
		dst = append(dst, q)
	}
	return dst, rest
}

// unquads is the inverse of quads; false when rest has too few or too many bytes.
func unquads(dst, q, rest []byte) bool {
	for i, v := range q {
		s := dst[4*i : min(4*i+4, len(dst))]
		for k := range s {
			class := v >> (2 * k) & 3
			if class == 3 {
				if len(rest) == 0 {
					return false
				}
				s[k], rest = rest[0], rest[1:]
				continue
			}
			s[k] = class - 1
		}
	}
	return len(rest) == 0
}
