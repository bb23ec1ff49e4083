package synthetic

import "eidetic/internal/lab"

// The counter is a strip of blocks along the top of the picture: 32 bits of the
// number, most significant first, then 8 check bits, each a bright or a dark
// block. It survives scaling to another size, changed colour ranges and JPEG.
const (
	counterBits = 32
	checkBits   = 8
	blocks      = counterBits + checkBits
	bright      = 235
	dark        = 16
)

// blockSize returns a block's width and height in pixels, even so that
// subsampled colour does not smear it; 0 when the picture is too small.
func blockSize(f lab.Format) int {
	return min(f.Width/blocks, f.Height, 16) &^ 1
}

// check is a checksum of a number that no single swapped block leaves unchanged. That of 0 is not 0: a black picture has
// no number.
func check(n uint32) uint32 { return (n*0x9e3779b1^n>>15)>>24 ^ 0xa5 }

// DrawCounter draws n into the top of a frame.
func DrawCounter(f lab.Format, pix []byte, n uint32) {
	size := blockSize(f)
	bits := uint64(n)<<checkBits | uint64(check(n))
	for i := range blocks {
		v := byte(dark)
		if bits>>(blocks-1-i)&1 == 1 {
			v = bright
		}
		for y := range size {
			for x := i * size; x < (i+1)*size; x++ {
				setGrey(f, pix, x, y, v)
			}
		}
	}
}

// ReadCounter reads the number from a frame; false when there is none, or it
// is not whole (a torn frame).
func ReadCounter(f lab.Format, pix []byte) (uint32, bool) {
	size := blockSize(f)
	if size == 0 || len(pix) < f.FrameSize() {
		return 0, false
	}
	var bits uint64
	for i := range blocks {
		bits <<= 1
		v := luma(f, pix, i*size+size/2, size/2)
		switch {
		case v > 160:
			bits |= 1
		case v > 90:
			return 0, false
		}
	}
	n := uint32(bits >> checkBits)
	return n, uint32(bits)&(1<<checkBits-1) == check(n)
}

// setGrey sets one pixel to a grey.
func setGrey(f lab.Format, pix []byte, x, y int, v byte) {
	i := y*f.Stride() + x*f.Stride()/f.Width
	switch f.Pixels {
	case lab.BGRX, lab.BGR24:
		pix[i], pix[i+1], pix[i+2] = v, v, v
	case lab.YUYV:
		pix[i], pix[i+1] = v, 128
	case lab.UYVY:
		pix[i], pix[i+1] = 128, v
	case lab.NV12:
		pix[i] = v
		uv := f.Width*f.Height + y/2*(2*((f.Width+1)/2)) + x/2*2
		pix[uv], pix[uv+1] = 128, 128
	case lab.Grey:
		pix[i] = v
	}
}

// luma returns how bright a pixel is: green for RGB formats.
func luma(f lab.Format, pix []byte, x, y int) byte {
	i := y*f.Stride() + x*f.Stride()/f.Width
	switch f.Pixels {
	case lab.BGRX, lab.BGR24, lab.UYVY:
		return pix[i+1]
	default:
		return pix[i]
	}
}
