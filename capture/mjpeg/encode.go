package mjpeg

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"math/bits"
)

// Encoder writes pictures as JPEGs (ITU-T T.81, baseline, 4:2:0) of one quality. It has the tables of image/jpeg, so
// its pictures look the same, and takes about half of its processor time for a picture of a film (BenchmarkEncode): the transform
// of Arai, Agui and Nakajima (1988) leaves its scale to the quantisation, no coefficient is divided, and parts of one
// colour are not transformed. Several goroutines may use it.
type Encoder struct {
	head []byte // up to the picture's own bytes
	size int    // where the head has the height and the width
	// Of luminance and of chrominance: what the coefficients are multiplied with, in the order of zigzag.
	scale [2][64]float32
	// Of each class and category: the code << 8 | its length.
	dc, ac [2][256]uint32
}

const (
	mostSide      = 1<<16 - 1
	squareSide    = 16   // of what is coded together: four blocks of luminance
	largest       = 1023 // coefficient
	zeroRun       = 0xf0 // the symbol of 16 coefficients that are 0
	endOfBlock    = 0x00 // the symbol of nothing but zeros
	pixelsPerByte = 4    // of a JPEG, about: its room
)

// NewEncoder returns an encoder of a quality of 1 … 100, as image/jpeg counts it.
func NewEncoder(quality int) (*Encoder, error) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, 1, 1)), &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("the tables of a JPEG: %w", err)
	}
	segments := make(map[byte][]byte)
	for _, marker := range []byte{markerQuanta, markerFrame, markerTables, markerScan} {
		segment, ok := find(b.Bytes(), marker)
		if !ok {
			return nil, fmt.Errorf("the tables of a JPEG: no segment %#x", marker)
		}
		segments[marker] = segment
	}
	at := func(marker byte) int { return bytes.Index(b.Bytes(), segments[marker]) }
	e := &Encoder{head: b.Bytes()[:at(markerScan)+len(segments[markerScan])], size: at(markerFrame) + 5}
	// The transform leaves each row and each column multiplied with these, and with √8.
	factors := [8]float64{1, 1.387039845, 1.306562965, 1.175875602, 1, 0.785694958, 0.541196100, 0.275899379}
	for table := segments[markerQuanta][4:]; len(table) >= 65; table = table[65:] {
		for k, q := range table[1:65] {
			u, v := zigzag[k]%8, zigzag[k]/8
			e.scale[table[0]&1][k] = float32(1 / (float64(q) * 8 * factors[u] * factors[v]))
		}
	}
	for table := segments[markerTables][4:]; len(table) >= 17; {
		codes := &e.dc
		if table[0]>>4 == 1 {
			codes = &e.ac
		}
		values, code, n := table[17:], uint32(0), 0
		for length, count := range table[1:17] {
			for range count {
				codes[table[0]&1][values[n]] = code<<8 | uint32(length+1)
				code++
				n++
			}
			code <<= 1
		}
		table = values[n:]
	}
	return e, nil
}

// zigzag is the order in which coefficients are coded (ITU-T T.81, figure A.6).
var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// Encode returns a picture of a width, whose pixels are 0x00RRGGBB in rows, as a JPEG.
func (e *Encoder) Encode(pix []uint32, width int) ([]byte, error) {
	if width < 1 || len(pix) == 0 || len(pix)%width != 0 || width > mostSide || len(pix)/width > mostSide {
		return nil, fmt.Errorf("no JPEG has %d pixels in rows of %d", len(pix), width)
	}
	height := len(pix) / width
	w := writer{out: append(make([]byte, 0, len(e.head)+len(pix)/pixelsPerByte), e.head...)}
	binary.BigEndian.PutUint16(w.out[e.size:], uint16(height))
	binary.BigEndian.PutUint16(w.out[e.size+2:], uint16(width))
	var square [squareSide * squareSide]uint32
	var s samples
	var before [3]int32 // the DC coefficients of Y, Cb and Cr
	for y := 0; y < height; y += squareSide {
		for x := 0; x < width; x += squareSide {
			flat := cut(&square, pix, width, height, x, y)
			s.from(&square, flat)
			for i := range s {
				kind, of := 0, 0
				if i > 3 {
					kind, of = 1, i-3
				}
				before[of] = e.block(&w, &s[i], kind, flat, before[of])
			}
		}
	}
	return w.end(), nil
}

// cut copies the square at x, y, and continues the picture's last column and row to its edges; it says whether all of
// it has one colour.
func cut(square *[squareSide * squareSide]uint32, pix []uint32, width, height, x, y int) (flat bool) {
	first := pix[y*width+x]
	var other uint32
	for j := range squareSide {
		from := min(y+j, height-1) * width
		row, to := pix[from+x:from+min(x+squareSide, width)], square[squareSide*j:][:squareSide]
		n := copy(to, row)
		for ; n < squareSide; n++ {
			to[n] = row[len(row)-1]
		}
		for _, c := range to {
			other |= c ^ first
		}
	}
	return other&0xffffff == 0
}

// samples are the blocks of a square: four of Y, one each of Cb and Cr, around 0.
type samples [6][64]float32

// from converts a square by the formula of JFIF (BT.601 in full range); of one that is flat, the first sample of each
// block.
func (s *samples) from(square *[squareSide * squareSide]uint32, flat bool) {
	if flat {
		c := square[0]
		y := luma(c)
		s[0][0], s[1][0], s[2][0], s[3][0] = y, y, y, y
		s[4][0], s[5][0] = chroma(c&0xff00ff*4, c>>8&0xff*4)
		return
	}
	for j := 0; j < squareSide; j += 2 {
		above, below := (*[squareSide]uint32)(square[squareSide*j:]), (*[squareSide]uint32)(square[squareSide*j+squareSide:])
		for half := range 2 {
			to := &s[j/8*2+half]
			a, b := (*[8]float32)(to[j%8*8:]), (*[8]float32)(to[j%8*8+8:])
			at := (j/2*8 + half*4) & 63
			cb, cr := (*[4]float32)(s[4][at:]), (*[4]float32)(s[5][at:])
			for i := 0; i < 8; i += 2 {
				p, q, r, t := above[half*8+i], above[half*8+i+1], below[half*8+i], below[half*8+i+1]
				a[i], a[i+1], b[i], b[i+1] = luma(p), luma(q), luma(r), luma(t)
				cb[i/2], cr[i/2] = chroma(p&0xff00ff+q&0xff00ff+r&0xff00ff+t&0xff00ff, p>>8&0xff+q>>8&0xff+r>>8&0xff+t>>8&0xff)
			}
		}
	}
}

// luma is Y − 128 of a pixel.
func luma(c uint32) float32 {
	return float32(int32(c>>16&0xff*19595+c>>8&0xff*38470+c&0xff*7471+1<<15)>>16 - 128)
}

// chroma is Cb − 128 and Cr − 128 of the sums of four pixels: of red << 16 | blue, and of green.
func chroma(redBlue, green uint32) (cb, cr float32) {
	r, g, b := int32(redBlue>>16), int32(green), int32(redBlue&0xffff)
	const unit = 1. / (4 << 16)
	return float32(-11059*r-21709*g+32768*b) * unit, float32(32768*r-27439*g-5329*b) * unit
}

// block writes a block, of luminance (0) or chrominance (1), and returns its DC coefficient.
func (e *Encoder) block(w *writer, b *[64]float32, kind int, flat bool, before int32) int32 {
	scale, codes := &e.scale[kind], &e.ac[kind]
	if flat {
		dc := rounded(b[0] * 64 * scale[0])
		w.value(&e.dc[kind], 0, dc-before)
		w.code(codes[endOfBlock])
		return dc
	}
	transform(b)
	dc := rounded(b[0] * scale[0])
	w.value(&e.dc[kind], 0, dc-before)
	run := 0
	for k := 1; k < 64; k++ {
		v := rounded(b[zigzag[k]&63] * scale[k])
		if v == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			w.code(codes[zeroRun])
		}
		w.value(codes, run<<4, min(max(v, -largest), largest))
		run = 0
	}
	if run > 0 {
		w.code(codes[endOfBlock])
	}
	return dc
}

// rounded is the nearest whole number of one that is not far from 0.
func rounded(v float32) int32 { return int32(v+16384.5) - 16384 }

// transform is the discrete cosine transform in two dimensions, but for the factors that scale has.
func transform(b *[64]float32) {
	for i := 0; i < 64; i += 8 {
		r := (*[8]float32)(b[i:])
		r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7] = transform8(r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7])
	}
	for i := range 8 {
		b[i], b[i+8], b[i+16], b[i+24], b[i+32], b[i+40], b[i+48], b[i+56] =
			transform8(b[i], b[i+8], b[i+16], b[i+24], b[i+32], b[i+40], b[i+48], b[i+56])
	}
}

func transform8(a, b, c, d, e, f, g, h float32) (_, _, _, _, _, _, _, _ float32) {
	s0, s1, s2, s3 := a+h, b+g, c+f, d+e
	d0, d1, d2, d3 := a-h, b-g, c-f, d-e
	t0, t1, t2, t3 := s0+s3, s1+s2, s1-s2, s0-s3
	even := (t2 + t3) * 0.707106781
	u0, u1, u2 := d3+d2, d2+d1, d1+d0
	turn := (u0 - u2) * 0.382683433
	v0, v1, v2 := 0.541196100*u0+turn, u1*0.707106781, 1.306562965*u2+turn
	w0, w1 := d0+v1, d0-v1
	return t0 + t1, w0 + v2, t3 + even, w1 - v0, t0 - t1, w1 + v0, t3 - even, w0 - v2
}

// writer writes the bits of a picture.
type writer struct {
	out []byte
	acc uint64 // its lowest bits are still to be written
	n   uint32 // so many, less than 32
}

// code writes a code.
func (w *writer) code(c uint32) { w.put(uint64(c>>8), c&0xff) }

// value writes the code of a value after a run of zeros, and the value (ITU-T T.81, F.1.2).
func (w *writer) value(codes *[256]uint32, run int, v int32) {
	size := uint32(bits.Len32(uint32(max(v, -v))))
	if v < 0 {
		v--
	}
	c := codes[(run|int(size))&0xff]
	w.put(uint64(c>>8)<<size|uint64(uint32(v)&(1<<size-1)), c&0xff+size)
}

// put writes n bits, 32 at most.
func (w *writer) put(v uint64, n uint32) {
	w.acc = w.acc<<n | v
	w.n += n
	if w.n < 32 {
		return
	}
	w.n -= 32
	word := uint32(w.acc >> w.n)
	if ones := ^word; (ones-0x01010101)&^ones&0x80808080 == 0 { // no byte is 0xff
		w.out = binary.BigEndian.AppendUint32(w.out, word)
		return
	}
	for shift := 24; shift >= 0; shift -= 8 {
		w.byte(byte(word >> shift))
	}
}

// byte writes a byte; one that looks like the begin of a marker is followed by 0.
func (w *writer) byte(b byte) {
	if w.out = append(w.out, b); b == 0xff {
		w.out = append(w.out, 0)
	}
}

// end writes what is left, filled up with ones.
func (w *writer) end() []byte {
	fill := -w.n & 7
	w.acc = w.acc<<fill | (1<<fill - 1)
	for w.n += fill; w.n > 0; {
		w.n -= 8
		w.byte(byte(w.acc >> w.n))
	}
	return append(w.out, 0xff, markerEnd)
}
