// Package through makes of a screen's exact pictures what a grabber with a cable would deliver, so that what a stick
// does to the numbers can be tried before it is bought, on the same screen at the same moment: a turned or scaled
// picture, a dithering panel, analogue noise, JPEG, colours at a quarter of the resolution. BGRX flows in; BGRX, NV12
// or JPEGs flow out.
package through

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"strconv"
	"strings"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// Way is what happens to the pictures, in the order of the fields.
type Way struct {
	Rotate        int // degrees clockwise: 0, 90, 180, 270
	Width, Height int // scaled to; 0: not
	Dither        int // codes between the levels that the panel has, between which it goes to and fro; 0: it has all
	Noise         int // each channel of each pixel moves by so much at most, anew in each picture
	JPEG          int // quality; 0: no compression
	Quarter       bool
}

// mostPixels bounds a scaled picture: 4096 × 2304.
const mostPixels = 4096 * 2304

// Names of the steps.
const grammar = "rotate=90|180|270, scale=WIDTHxHEIGHT, dither=CODES, noise=CODES, mjpeg=QUALITY, 420"

// Parse reads a list of steps: "scale=1920x1080,noise=1,mjpeg=80".
func Parse(text string) (w Way, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		number := func(to *int, low, high int) {
			if *to, err = strconv.Atoi(value); err != nil || *to < low || *to > high {
				err = fmt.Errorf("%.40q: %s takes a whole number from %d to %d", part, name, low, high)
			}
		}
		switch name {
		case "rotate":
			number(&w.Rotate, 0, 270)
			if err == nil && w.Rotate%90 != 0 {
				err = fmt.Errorf("%.40q: a picture is turned by 90, 180 or 270 degrees", part)
			}
		case "scale":
			if w.Width, w.Height, err = lab.ParseSize(value); err == nil && (w.Width*w.Height == 0 || w.Width*w.Height > mostPixels) {
				err = fmt.Errorf("%.40q: say to which size, as scale=1920x1080, with at most %d pixels", part, mostPixels)
			}
		case "dither":
			number(&w.Dither, 2, 16)
		case "noise":
			number(&w.Noise, 1, 64)
		case "mjpeg":
			number(&w.JPEG, 1, 100)
		case "420":
			w.Quarter = true
		default:
			err = fmt.Errorf("%.40q is nothing that a grabber does to pictures: write steps of %s, with commas between", part, grammar)
		}
		if err != nil {
			return Way{}, err
		}
	}
	if w.JPEG > 0 && w.Quarter {
		return Way{}, fmt.Errorf("mjpeg has its colours at a quarter of the resolution already: leave 420 out")
	}
	return w, nil
}

// Source delivers another source's pictures as they are at the end of the way.
type Source struct {
	capture.Source
	way    Way
	format lab.Format
	in     lab.Format
	random *rand.Rand
	table  []int8 // of noise

	pix, other []byte
	sent       []byte // the last picture as it came out
	still      []byte // what is the same in each picture of a still screen
	tick       int
	places     []place // of each column, and then of each row, of a scaled picture
	rgba       *image.RGBA
	code       bytes.Buffer
}

// place is between which pixels a pixel of a scaled picture lies: at and the next one, with the share of that one.
type place struct{ at, share int }

// New takes a source over. The seed makes the noise.
func New(from capture.Source, w Way, seed uint64) (*Source, error) {
	in := from.Format()
	if in.Pixels != lab.BGRX || in.Range == lab.LimitedRange {
		return nil, fmt.Errorf("only pictures in BGRX of full range can be worn as a grabber wears them, not in %s of %s range", in.Pixels,
			cmp.Or(in.Range, "unknown"))
	}
	if in.Width < 2 || in.Height < 2 {
		return nil, fmt.Errorf("a screen of %d × %d pixels is too small to be worn", in.Width, in.Height)
	}
	s := &Source{Source: from, way: w, in: in, format: in, random: rand.New(rand.NewPCG(seed, 44))}
	if w.Rotate%180 != 0 {
		s.format.Width, s.format.Height = in.Height, in.Width
	}
	turned := s.format
	if w.Width > 0 {
		s.format.Width, s.format.Height = w.Width, w.Height
		s.places = append(placesOf(turned.Width, w.Width), placesOf(turned.Height, w.Height)...)
	}
	switch {
	case w.Quarter:
		s.format.Pixels = lab.NV12
	case w.JPEG > 0:
		s.format.Pixels = lab.MJPEG
	}
	s.table = make([]int8, 1<<16+4*s.format.Width)
	for i := range s.table {
		s.table[i] = int8(s.random.IntN(2*w.Noise+1) - w.Noise)
	}
	s.rgba = image.NewRGBA(s.format.Bounds())
	return s, s.format.Validate()
}

func placesOf(from, to int) (all []place) {
	for i := range to {
		at := max(0, (2*i+1)*from*128/to-128) // of 256 parts of a pixel, from the middle of the first
		all = append(all, place{min(at/256, from-2), min(at-256*min(at/256, from-2), 256)})
	}
	return all
}

// Format describes what comes out.
func (s *Source) Format() lab.Format { return s.format }

// NotLossless says that this is a rehearsal.
func (s *Source) NotLossless() string {
	return fmt.Sprintf("worn as by a grabber, on purpose: %+v", s.way)
}

// Next returns the next picture.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	f, err := s.Source.Next(ctx)
	if err != nil {
		return f, err
	}
	first := s.still == nil
	if first || f.Flags&lab.FrameRepeat == 0 {
		s.still = append(s.still[:0], s.scaled(s.turned(f.Pix))...)
	}
	f.Changed = []image.Rectangle{s.format.Bounds()}
	if s.way.Noise == 0 && s.way.Dither == 0 {
		if f.Flags&lab.FrameRepeat != 0 && !first {
			f.Changed = nil
			f.Pix = s.sent
			return f, nil
		}
	} else {
		f.Flags &^= lab.FrameRepeat | lab.FrameProven
	}
	s.tick++
	s.rasterize()
	s.sent, err = s.coded()
	f.Pix = s.sent
	return f, err
}

func (s *Source) turned(pix []byte) []byte {
	w, h := s.in.Width, s.in.Height
	if s.way.Rotate == 0 {
		return pix
	}
	s.other = grown(s.other, len(pix))
	for y := range h {
		for x := range w {
			var to int
			switch s.way.Rotate {
			case 90:
				to = x*h + h - 1 - y
			case 180:
				to = (h-1-y)*w + w - 1 - x
			case 270:
				to = (w-1-x)*h + y
			}
			copy(s.other[4*to:4*to+4], pix[4*(y*w+x):])
		}
	}
	return s.other
}

// scaled is bilinear, as cheap scalers are.
func (s *Source) scaled(pix []byte) []byte {
	if s.places == nil {
		return pix
	}
	width := s.in.Width
	if s.way.Rotate%180 != 0 {
		width = s.in.Height
	}
	out := make([]byte, 4*s.format.Width*s.format.Height)
	columns, rows := s.places[:s.format.Width], s.places[s.format.Width:]
	for y, r := range rows {
		a, b := pix[4*r.at*width:][:4*width], pix[4*(r.at+1)*width:][:4*width]
		line := out[4*y*s.format.Width:]
		for x, c := range columns {
			for k := range 3 {
				i := 4*c.at + k
				up := int(a[i])*(256-c.share) + int(a[i+4])*c.share
				down := int(b[i])*(256-c.share) + int(b[i+4])*c.share
				line[4*x+k] = byte((up*(256-r.share) + down*r.share + 1<<15) >> 16)
			}
		}
	}
	return out
}

func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// rasterize makes pix of still: what differs from picture to picture.
func (s *Source) rasterize() {
	s.pix = append(grown(s.pix, len(s.still))[:0], s.still...)
	w, levels := s.format.Width, s.way.Dither
	for y := range s.format.Height {
		line := s.pix[4*y*w:][:4*w]
		if levels > 0 {
			for i, v := range line {
				if i&3 != 3 && v != 255 {
					// Each pixel of four goes up in another picture of four.
					turn := (s.tick + 2*(i>>2&1) + y&1) & 3
					line[i] = byte(min((int(v)+turn*levels/4)/levels*levels, 255))
				}
			}
		}
		if s.way.Noise > 0 {
			noise := s.table[s.random.IntN(1<<16):][:4*w]
			for i, n := range noise {
				if i&3 != 3 {
					line[i] = byte(min(max(int(line[i])+int(n), 0), 255))
				}
			}
		}
	}
}

// coded compresses.
func (s *Source) coded() ([]byte, error) {
	switch {
	case s.way.Quarter:
		return s.nv12(), nil
	case s.way.JPEG == 0:
		return s.pix, nil
	}
	for i := 0; i < len(s.pix); i += 4 {
		p, q := s.pix[i:i+4], s.rgba.Pix[i:i+4]
		q[0], q[1], q[2], q[3] = p[2], p[1], p[0], 255
	}
	s.code.Reset()
	if err := jpeg.Encode(&s.code, s.rgba, &jpeg.Options{Quality: s.way.JPEG}); err != nil {
		return nil, err
	}
	return s.code.Bytes(), nil
}

// nv12 converts to limited range, by BT.709 from 720 rows on and by BT.601 below, as is usual on HDMI.
func (s *Source) nv12() []byte {
	w, h := s.format.Width, s.format.Height
	out := make([]byte, s.format.FrameSize())
	// Y, Cb and Cr of R, G and B, of 65536.
	m := [3][3]int{{16829, 33039, 6416}, {-9714, -19070, 28784}, {28784, -24103, -4681}}
	if h >= 720 {
		m = [3][3]int{{11966, 40254, 4064}, {-6596, -22189, 28784}, {28784, -26145, -2639}}
	}
	for y := range h {
		for x := range w {
			p := s.pix[4*(y*w+x):]
			out[y*w+x] = byte((m[0][0]*int(p[2])+m[0][1]*int(p[1])+m[0][2]*int(p[0])+1<<15)>>16 + 16)
		}
	}
	colour, stride := out[w*h:], 2*((w+1)/2)
	for y := 0; y < h; y += 2 {
		for x := 0; x < w; x += 2 {
			var sum [3]int
			n := 0
			for j := y; j < min(y+2, h); j++ {
				for i := x; i < min(x+2, w); i++ {
					p := s.pix[4*(j*w+i):]
					sum[0], sum[1], sum[2] = sum[0]+int(p[2]), sum[1]+int(p[1]), sum[2]+int(p[0])
					n++
				}
			}
			for k := range 2 {
				v := m[k+1][0]*sum[0] + m[k+1][1]*sum[1] + m[k+1][2]*sum[2]
				colour[y/2*stride+x+k] = byte((v/n+1<<15)>>16 + 128)
			}
		}
	}
	return out
}
