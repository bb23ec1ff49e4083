package rfb

import (
	"encoding/binary"
	"image"
)

// The bits of a hextile's first byte (RFC 6143, 7.7.4).
const (
	hextileRaw        = 1
	hextileBackground = 2
	hextileForeground = 4
	hextileSubrects   = 8
	hextileColoured   = 16
	hextileSide       = 16
)

// hextile reads tiles of 16×16, from left to right and top to bottom. Each tile inherits the
// colours of the one before.
func (c *Conn) hextile(s *Screen, r image.Rectangle) error {
	var background, foreground uint32
	for tile := range tiles(r, hextileSide) {
		bits, err := c.u8()
		if err != nil {
			return err
		}
		if bits&hextileRaw != 0 {
			if err := c.raw(s, tile); err != nil {
				return err
			}
			continue
		}
		for _, colour := range []struct {
			bit   byte
			value *uint32
		}{{hextileBackground, &background}, {hextileForeground, &foreground}} {
			if bits&colour.bit == 0 {
				continue
			}
			if *colour.value, err = c.pixel(); err != nil {
				return err
			}
		}
		s.fill(tile, background)
		if bits&hextileSubrects == 0 {
			continue
		}
		if err := c.subrects(s, tile, foreground, bits&hextileColoured != 0); err != nil {
			return err
		}
	}
	return nil
}

// subrects reads the single-coloured rectangles of a tile.
func (c *Conn) subrects(s *Screen, tile image.Rectangle, colour uint32, coloured bool) error {
	n, err := c.u8()
	if err != nil {
		return err
	}
	for range n {
		if coloured {
			if colour, err = c.pixel(); err != nil {
				return err
			}
		}
		var b [2]byte
		if err := c.readFull(b[:]); err != nil {
			return err
		}
		at := tile.Min.Add(image.Pt(int(b[0]>>4), int(b[0]&15)))
		sub := image.Rectangle{Min: at, Max: at.Add(image.Pt(int(b[1]>>4)+1, int(b[1]&15)+1))}
		if !sub.In(tile) {
			return broken("hextile: rectangle %v is outside its tile %v", sub, tile)
		}
		s.fill(sub, colour)
	}
	return nil
}

// pixel reads one pixel.
func (c *Conn) pixel() (uint32, error) {
	var b [bytesPerPixel]byte
	err := c.readFull(b[:])
	return binary.LittleEndian.Uint32(b[:]) & 0x00ffffff, err
}

// tiles yields squares of a given side that cover r; those at its edges are cut.
func tiles(r image.Rectangle, side int) func(func(image.Rectangle) bool) {
	return func(yield func(image.Rectangle) bool) {
		for y := r.Min.Y; y < r.Max.Y; y += side {
			for x := r.Min.X; x < r.Max.X; x += side {
				if !yield(image.Rect(x, y, x+side, y+side).Intersect(r)) {
					return
				}
			}
		}
	}
}
