package reel

import (
	"image"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// Most of a page is black text on white: pixels whose blue, green and red are
// equal, or whose chroma is the middle. Of these only the first component's
// samples are coded (codeGrey).

// noChroma is a chroma sample without colour.
const noChroma = 128

// isGrey says whether all pixels of r are without colour. A fourth byte is 0.
func isGrey(f lab.PixelFormat, p diff.Plane, pix []byte, r image.Rectangle) bool {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := p.Row(pix, y, r.Min.X, r.Max.X)
		var bad uint64
		i := 0
		switch f {
		case lab.BGRX:
			for ; i+8 <= len(row); i += 8 {
				v := get(row[i:])
				bad |= v ^ (v&0x000000ff000000ff)*0x010101
			}
			for ; i < len(row); i += 4 {
				bad |= uint64((row[i] ^ row[i+1]) | (row[i] ^ row[i+2]) | row[i+3])
			}
		case lab.BGR24:
			for ; i < len(row); i += 3 {
				bad |= uint64((row[i] ^ row[i+1]) | (row[i] ^ row[i+2]))
			}
		case lab.YUYV, lab.UYVY:
			at := 1 // the first chroma byte
			if f == lab.UYVY {
				at = 0
			}
			for ; i+8 <= len(row); i += 8 {
				bad |= (get(row[i:]) >> (8 * at) & 0x00ff00ff00ff00ff) ^ noChroma*0x0001000100010001
			}
			for ; i < len(row); i += 2 {
				bad |= uint64(row[i+at] ^ noChroma)
			}
		default:
			return false
		}
		if bad != 0 {
			return false
		}
	}
	return true
}

// ungrey writes a row whose first component has the samples src.
func ungrey(row, src []byte, f lab.PixelFormat) {
	switch f {
	case lab.BGRX:
		row = row[:4*len(src)]
		for i, v := range src {
			p := row[4*i : 4*i+4 : 4*i+4]
			p[0], p[1], p[2], p[3] = v, v, v, 0
		}
	case lab.BGR24:
		row = row[:3*len(src)]
		for i, v := range src {
			p := row[3*i : 3*i+3 : 3*i+3]
			p[0], p[1], p[2] = v, v, v
		}
	case lab.YUYV:
		row = row[:2*len(src)]
		for i, v := range src {
			row[2*i], row[2*i+1] = v, noChroma
		}
	case lab.UYVY:
		row = row[:2*len(src)]
		for i, v := range src {
			row[2*i], row[2*i+1] = noChroma, v
		}
	}
}
