package scrcpy

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"eidetic/internal/lab"
)

// Kinds of NAL units (ITU-T H.264, table 7-1).
const (
	nalSlice = 1
	nalIDR   = 5 // a slice of a picture from which decoding can begin
	nalSPS   = 7 // a sequence parameter set
)

// units are the NAL units of a packet, without their start codes.
func units(packet []byte) iter.Seq[[]byte] {
	code := []byte{0, 0, 1}
	return func(yield func([]byte) bool) {
		for at := bytes.Index(packet, code); at >= 0; {
			packet = packet[at+len(code):]
			at = bytes.Index(packet, code)
			unit := packet
			if at >= 0 {
				unit = bytes.TrimRight(packet[:at], "\x00")
			}
			if len(unit) > 0 && !yield(unit) {
				return
			}
		}
	}
}

// sps is what a sequence parameter set says of its pictures.
type sps struct {
	width, height   int
	matrix          lab.Matrix
	frameNumberBits uint
	separatePlanes  bool
	mayHaveGaps     bool // in the numbers of its pictures
}

// bits reads the bits of a NAL unit, from the left.
type bits struct {
	data []byte
	at   int // in bits
	err  error
}

// newBits reads a unit after its first byte, without the bytes that keep start codes out of it. most bounds how many
// bytes are looked at.
func newBits(unit []byte, most int) *bits {
	unit = unit[1:min(len(unit), most)]
	return &bits{data: bytes.ReplaceAll(unit, []byte{0, 0, 3}, []byte{0, 0})}
}

var errShort = errors.New("it is cut off") // constant

func (b *bits) u(n uint) (v uint) {
	for range n {
		if b.at>>3 >= len(b.data) {
			b.err = errShort
			return 0
		}
		v = v<<1 | uint(b.data[b.at>>3]>>(7-b.at&7)&1)
		b.at++
	}
	return v
}

func (b *bits) flag() bool { return b.u(1) == 1 }

// ue reads an unsigned Exp-Golomb code (clause 9.1).
func (b *bits) ue() uint {
	zeros := uint(0)
	for b.err == nil && !b.flag() {
		if zeros++; zeros > 31 {
			b.err = errors.New("it is no Exp-Golomb code")
		}
	}
	return 1<<zeros - 1 + b.u(zeros)
}

// se reads a signed one.
func (b *bits) se() int {
	v := b.ue()
	if v&1 == 1 {
		return int(v/2 + 1)
	}
	return -int(v / 2)
}

// mostSPS bounds the bytes of a parameter set.
const mostSPS = 1 << 10

// parseSPS reads a sequence parameter set (clause 7.3.2.1).
func parseSPS(unit []byte) (s sps, err error) {
	b := newBits(unit, mostSPS)
	profile := b.u(8)
	b.u(16) // constraints and level
	b.ue()  // its number
	chroma := uint(1)
	switch profile {
	case 100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135:
		if chroma = b.ue(); chroma == 3 {
			s.separatePlanes = b.flag()
		}
		luma, colour := b.ue(), b.ue()
		if chroma != 1 || luma != 0 || colour != 0 {
			return s, errors.New("pictures that are not 4:2:0 with 8 bits")
		}
		b.flag() // lossless
		if b.flag() {
			b.scalingLists()
		}
	}
	bitsOfNumber := b.ue() + 4
	switch b.ue() { // order of the pictures
	case 0:
		b.ue()
	case 1:
		b.flag()
		b.se()
		b.se()
		for range min(b.ue(), 255) {
			b.se()
		}
	}
	b.ue() // reference pictures
	s.mayHaveGaps = b.flag()
	across, down := b.ue()+1, b.ue()+1
	frames := b.flag()
	if !frames {
		b.flag()
	}
	b.flag() // direct prediction
	var left, right, top, bottom uint
	if b.flag() {
		left, right, top, bottom = b.ue(), b.ue(), b.ue(), b.ue()
	}
	if b.flag() {
		s.matrix = b.matrix()
	}
	switch {
	case b.err != nil:
		return s, fmt.Errorf("the parameters of the phone's video: %w", b.err)
	case !frames:
		return s, errors.New("interlaced pictures")
	case bitsOfNumber > 16:
		return s, fmt.Errorf("numbers of pictures of %d bits", bitsOfNumber)
	case across > lab.MaxSide/16 || down > lab.MaxSide/16 || max(left, right, top, bottom) > lab.MaxSide:
		return s, fmt.Errorf("pictures of %d × %d blocks", across, down)
	}
	s.frameNumberBits = bitsOfNumber
	s.width, s.height = int(16*across)-2*int(left+right), int(16*down)-2*int(top+bottom)
	if s.width < 1 || s.height < 1 || s.width*s.height > maxPixels {
		return s, fmt.Errorf("pictures of %d × %d", s.width, s.height)
	}
	return s, nil
}

// scalingLists passes over them (clause 7.3.2.1.1.1).
func (b *bits) scalingLists() {
	for i := range 8 {
		if !b.flag() {
			continue
		}
		last, next, size := 8, 8, 16
		if i >= 6 {
			size = 64
		}
		for range size {
			if next != 0 {
				next = (last + b.se()%256 + 256) % 256
			}
			if next != 0 {
				last = next
			}
		}
	}
}

// matrix reads which colours the samples stand for (annex E.1.1).
func (b *bits) matrix() lab.Matrix {
	const extended = 255
	if b.flag() && b.u(8) == extended { // shape of a pixel
		b.u(32)
	}
	if b.flag() { // overscan
		b.flag()
	}
	if !b.flag() { // video signal
		return ""
	}
	b.u(4) // format and range, which the decoder brings to the limited one
	if !b.flag() {
		return ""
	}
	b.u(16) // primaries and transfer
	return map[uint]lab.Matrix{1: lab.BT709, 5: lab.BT601, 6: lab.BT601, 7: lab.SMPTE240M, 9: lab.BT2020}[b.u(8)]
}

// order notices packets that are missing, by the numbers that pictures have in the stream (clause 7.4.3, frame_num):
// a reference picture counts one on.
type order struct {
	have   bool // a picture from which decoding can begin has come
	number uint // of the last reference picture
}

// mostHead bounds the bytes of a slice's head that are looked at.
const mostHead = 32

// add takes the packet of a picture and says whether something before it is missing. isIDR says that it needs nothing
// before it.
func (o *order) add(data []byte, s sps) (missing, isIDR bool, err error) {
	for unit := range units(data) {
		kind := unit[0] & 31
		if kind != nalSlice && kind != nalIDR {
			continue
		}
		b := newBits(unit, mostHead)
		b.ue() // first block
		b.ue() // kind of the slice
		b.ue() // picture parameter set
		if s.separatePlanes {
			b.u(2)
		}
		number := b.u(s.frameNumberBits)
		if b.err != nil {
			return true, false, fmt.Errorf("the head of a picture: %w", b.err)
		}
		isIDR = kind == nalIDR
		missing = !isIDR && (!o.have || !s.mayHaveGaps && number != (o.number+1)&(1<<s.frameNumberBits-1))
		o.have = o.have || isIDR
		if unit[0]>>5 != 0 || isIDR { // others may be left out
			o.number = number
		}
		return missing, isIDR, nil
	}
	return true, false, errors.New("a packet without a picture")
}
