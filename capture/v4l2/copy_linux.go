package v4l2

import (
	"encoding/binary"

	"eidetic/internal/lab"
)

// copy fills pix from a dequeued buffer without the driver's padding, and
// returns how many bytes there were.
func (s *Source) copy(b *buffer) int {
	mem := s.maps[b.index()]
	if s.format.Pixels == lab.MJPEG {
		return copy(s.pix, s.filled(b, 0, mem[0]))
	}
	at := 0
	for i, p := range s.pieces() {
		if i >= len(mem) {
			break
		}
		whole := p.tight * p.rows
		n := unpad(s.pix[at:at+whole], s.filled(b, i, mem[i]), p.tight, int(s.pad.planes[i].stride))
		at += n
		if n < whole {
			break
		}
	}
	if s.format.Pixels == lab.BGRX {
		clearFourth(s.pix[:at&^3])
	}
	return at
}

// filled returns the part of a plane's memory that the driver has filled.
func (s *Source) filled(b *buffer, plane int, mem []byte) []byte {
	if s.kind == typeCapture {
		return mem[:min(len(mem), int(b.used()))]
	}
	p := s.planes[plane][:]
	end := min(len(mem), int(u32(p, 0)))
	return mem[min(end, int(u32(p, 16))):end]
}

// unpad copies rows without padding and returns the bytes of those that were whole.
func unpad(dst, src []byte, tight, stride int) int {
	if stride == tight {
		return copy(dst, src)
	}
	for at := 0; at < len(dst); at += tight {
		if len(src) < tight {
			return at
		}
		copy(dst[at:at+tight], src)
		src = src[min(stride, len(src)):]
	}
	return len(dst)
}

// clearFourth clears the byte of each pixel that holds no colour: drivers do not set it.
func clearFourth(pix []byte) {
	for ; len(pix) >= 8; pix = pix[8:] {
		binary.NativeEndian.PutUint64(pix, binary.NativeEndian.Uint64(pix)&0x00ffffff_00ffffff)
	}
	if len(pix) > 0 {
		pix[3] = 0
	}
}

// colour says in words what the values of a picture mean.
func colour(f lab.Format, p pixFormat) string {
	space := map[uint32]string{1: "SMPTE 170M", 3: "Rec. 709", 7: "JPEG", 8: "sRGB", 10: "BT.2020"}[p.colourspace]
	if space == "" {
		space = "unknown colour space"
	}
	rgb := f.Pixels == lab.BGRX || f.Pixels == lab.BGR24
	switch {
	case p.quantisation == 1, p.quantisation == 0 && (rgb || p.colourspace == 7):
		return space + ", full range"
	default:
		return space + ", limited range (16 … 235)"
	}
}
