package visual

import (
	"encoding/binary"
	"fmt"

	"eidetic/internal/lab"
)

// A code is one pixel as a number that is equal exactly when the captured
// pixel is: 0x00RRGGBB for RGB and grey sources, 0x00YYUUVV for YUV ones, so
// that comparing never depends on a colour conversion.
type code = uint32

// plane turns a source's rows into codes, and codes into colour.
type plane struct {
	format lab.Format
	// row writes the codes of pixels x0 … x0+len(dst)−1 of row y.
	row func(dst []code, pix []byte, y, x0 int)
	// rgb turns a code into 0x00RRGGBB.
	rgb func(code) uint32
	// same is set where rgb is the identity.
	same bool
	// bgrx is set where a pixel is four bytes, of which the last is padding, and same is set.
	bgrx   bool
	stride int
	planes int
}

// newPlane refuses formats whose pixels cannot be read at any place.
func newPlane(f lab.Format) (plane, error) {
	if err := f.Validate(); err != nil {
		return plane{}, err
	}
	p := plane{format: f, rgb: func(c code) uint32 { return c }, same: true}
	stride, width, height := f.Stride(), f.Width, f.Height
	p.stride, p.bgrx, p.planes = stride, f.Pixels == lab.BGRX, 1
	switch f.Pixels {
	case lab.BGRX:
		p.row = func(dst []code, pix []byte, y, x0 int) {
			src := pix[y*stride+4*x0:][:4*len(dst)]
			for i := range dst {
				dst[i] = binary.LittleEndian.Uint32(src[4*i:]) & 0xffffff
			}
		}
	case lab.BGR24:
		p.row = func(dst []code, pix []byte, y, x0 int) {
			src := pix[y*stride+3*x0:][:3*len(dst)]
			for i := range dst {
				dst[i] = uint32(src[3*i]) | uint32(src[3*i+1])<<8 | uint32(src[3*i+2])<<16
			}
		}
	case lab.Grey:
		p.row = func(dst []code, pix []byte, y, x0 int) {
			src := pix[y*stride+x0:][:len(dst)]
			for i := range dst {
				dst[i] = uint32(src[i]) * 0x010101
			}
		}
	case lab.YUYV, lab.UYVY:
		if width%2 != 0 {
			return plane{}, fmt.Errorf("a %s frame %d pixels wide splits a chroma pair: the width must be even", f.Pixels, width)
		}
		luma, chroma := 0, 1
		if f.Pixels == lab.UYVY {
			luma, chroma = 1, 0
		}
		p.row = func(dst []code, pix []byte, y, x0 int) {
			src := pix[y*stride:][:stride]
			for i := range dst {
				x := x0 + i
				pair := src[x&^1*2:][:4]
				dst[i] = uint32(pair[x&1*2+luma])<<16 | uint32(pair[chroma])<<8 | uint32(pair[chroma+2])
			}
		}
	case lab.NV12:
		p.planes = 2
		uv, uvStride := width*height, 2*((width+1)/2)
		p.row = func(dst []code, pix []byte, y, x0 int) {
			src, colour := pix[y*width+x0:], pix[uv+y/2*uvStride:][:uvStride]
			for i := range dst {
				x := (x0 + i) &^ 1
				dst[i] = uint32(src[i])<<16 | uint32(colour[x])<<8 | uint32(colour[x+1])
			}
		}
	default:
		return plane{}, fmt.Errorf("%s frames hold no pixels that can be compared: decode them first", f.Pixels)
	}
	if f.Pixels.IsYCbCr() {
		tables := f.YCbCr().Tables()
		p.same, p.rgb = false, func(c code) uint32 { return tables.BGRX(byte(c>>16), byte(c>>8), byte(c)) }
	}
	if t := f.Stretch(); t != nil {
		p.same, p.bgrx, p.rgb = false, false, func(c code) uint32 {
			return uint32(t[c>>16&255])<<16 | uint32(t[c>>8&255])<<8 | uint32(t[c&255])
		}
	}
	return p, nil
}

// luma is PIL's conversion to "L", in which the field's thresholds are given.
func luma(rgb uint32) int {
	return int((19595*(rgb>>16&255) + 38470*(rgb>>8&255) + 7471*(rgb&255) + 0x8000) >> 16)
}
