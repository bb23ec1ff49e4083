package rfb

import (
	"encoding/binary"
	"image"

	"eidetic/internal/lab"
)

// Screen is the server's screen, as far as updates have been read.
type Screen struct {
	Width, Height int
	Pix           []byte // BGRX without padding, the fourth byte 0
	// Changed covers the region that updates touched since Settle.
	Changed []image.Rectangle
	// Resized says that the size has changed since Settle. Pix is then black except for
	// later updates, until the server is asked for the whole screen again.
	Resized bool
}

// NewScreen returns a black screen of the size at the handshake.
func (c *Conn) NewScreen() *Screen {
	return &Screen{Width: c.width, Height: c.height, Pix: make([]byte, bytesPerPixel*c.width*c.height)}
}

// Bounds returns the rectangle of the whole screen.
func (s *Screen) Bounds() image.Rectangle { return image.Rect(0, 0, s.Width, s.Height) }

// Settle resets Changed and Resized.
func (s *Screen) Settle() { s.Changed, s.Resized = s.Changed[:0], false }

// maxChanged bounds the list of changed regions; a single region replaces a longer list.
const maxChanged = 1024

func (s *Screen) change(r image.Rectangle) {
	if r.Empty() {
		return
	}
	if len(s.Changed) == maxChanged {
		for _, old := range s.Changed {
			r = r.Union(old)
		}
		s.Changed = s.Changed[:0]
	}
	s.Changed = append(s.Changed, r)
}

// resize applies a size that has been checked.
func (s *Screen) resize(w, h int) {
	if w == s.Width && h == s.Height {
		return
	}
	n := bytesPerPixel * w * h
	if cap(s.Pix) < n {
		s.Pix = make([]byte, n)
	}
	s.Pix = s.Pix[:n]
	clear(s.Pix)
	s.Width, s.Height, s.Resized = w, h, true
	s.Changed = s.Changed[:0]
}

// row returns the bytes of r in line y.
func (s *Screen) row(r image.Rectangle, y int) []byte {
	at := bytesPerPixel * (y*s.Width + r.Min.X)
	return s.Pix[at : at+bytesPerPixel*r.Dx()]
}

// fill fills r with a colour.
func (s *Screen) fill(r image.Rectangle, pixel uint32) {
	if r.Empty() {
		return
	}
	first := s.row(r, r.Min.Y)
	binary.LittleEndian.PutUint32(first, pixel)
	for n := bytesPerPixel; n < len(first); n *= 2 {
		copy(first[n:], first[:n])
	}
	for y := r.Min.Y + 1; y < r.Max.Y; y++ {
		copy(s.row(r, y), first)
	}
}

// move copies pixels to r from a rectangle of the same size, which may overlap r.
func (s *Screen) move(r image.Rectangle, from image.Point) error {
	src := r.Sub(r.Min).Add(from)
	if !src.In(s.Bounds()) {
		return broken("a copy from %v, which is outside the screen of %v", src, s.Bounds().Max)
	}
	if src.Min.Y >= r.Min.Y {
		for y := range r.Dy() {
			copy(s.row(r, r.Min.Y+y), s.row(src, src.Min.Y+y))
		}
		return nil
	}
	for y := r.Dy() - 1; y >= 0; y-- {
		copy(s.row(r, r.Min.Y+y), s.row(src, src.Min.Y+y))
	}
	return nil
}

// clearFourth clears the unused byte of each pixel, in which servers leave any value.
func clearFourth(row []byte) {
	for ; len(row) >= 8; row = row[8:] {
		binary.LittleEndian.PutUint64(row, binary.LittleEndian.Uint64(row)&0x00ffffff_00ffffff)
	}
	if len(row) > 0 {
		row[3] = 0
	}
}

// Format describes the screen as the source of a film with rate frames per second.
func (s *Screen) Format(rate float64) lab.Format {
	return lab.Format{Pixels: lab.BGRX, Width: s.Width, Height: s.Height, Rate: rate}
}
