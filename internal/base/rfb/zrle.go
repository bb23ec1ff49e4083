package rfb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"io"

	"github.com/klauspost/compress/zlib"
)

const (
	zrleSide  = 64
	cpixel    = 3 // bytes of a compressed pixel: blue, green and red
	largestPL = 127
)

// inflater is the single zlib stream of a connection. The compressed bytes of a rectangle are
// put into in. Decoding a rectangle's tiles may leave the end marker of its data unread;
// the next rectangle's decoding reads it.
type inflater struct {
	in  bytes.Buffer
	out io.ReadCloser
	buf [zrleSide * zrleSide * cpixel]byte
}

// maxLeft bounds what a rectangle may leave unread: an empty block and its end marker.
const maxLeft = 64

// feed reads n compressed bytes from r.
func (z *inflater) feed(r io.Reader, n int64) error {
	if _, err := io.CopyN(&z.in, r, n); err != nil {
		return fmt.Errorf("the VNC server closed the connection: %w", err)
	}
	if z.out == nil {
		out, err := zlib.NewReader(&z.in)
		if err != nil {
			return broken("ZRLE: %v", err)
		}
		z.out = out
	}
	return nil
}

// take returns the next n decompressed bytes, valid until the next call.
func (z *inflater) take(n int) ([]byte, error) {
	b := z.buf[:n]
	if _, err := io.ReadFull(z.out, b); err != nil {
		return nil, broken("ZRLE: %v", err)
	}
	return b, nil
}

func (z *inflater) u8() (int, error) {
	b, err := z.take(1)
	if err != nil {
		return 0, err
	}
	return int(b[0]), nil
}

// pixel reads a compressed pixel.
func (z *inflater) pixel() (uint32, error) {
	b, err := z.take(cpixel)
	if err != nil {
		return 0, err
	}
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16, nil
}

// run reads the length of a run: bytes are summed up to the first one below 255.
func (z *inflater) run(limit int) (int, error) {
	n := 1
	for {
		v, err := z.u8()
		if err != nil {
			return 0, err
		}
		n += v
		if n > limit {
			return 0, broken("ZRLE: a run of %d pixels, but only %d are left", n, limit)
		}
		if v < 255 {
			return n, nil
		}
	}
}

// zrle reads a rectangle in ZRLE (RFC 6143, 7.7.6).
func (c *Conn) zrle(s *Screen, r image.Rectangle) error {
	var b [4]byte
	if err := c.readFull(b[:]); err != nil {
		return err
	}
	// Deflate makes incompressible data slightly larger.
	n, pixels := int64(be.Uint32(b[:])), int64(r.Dx()*r.Dy())
	if most := 2*bytesPerPixel*pixels + 1<<16; n > most {
		return broken("ZRLE: %d bytes for %d pixels", n, pixels)
	}
	if err := c.zlib.feed(c.r, n); err != nil {
		return err
	}
	for tile := range tiles(r, zrleSide) {
		if err := c.zlib.tile(s, tile); err != nil {
			return err
		}
	}
	if left := c.zlib.in.Len(); left > maxLeft {
		return broken("ZRLE: %d bytes after the last tile", left)
	}
	return nil
}

// tile reads one tile.
func (z *inflater) tile(s *Screen, t image.Rectangle) error {
	kind, err := z.u8()
	if err != nil {
		return err
	}
	palette, err := z.palette(kind &^ 128)
	if err != nil {
		return err
	}
	switch {
	case kind == 0:
		return z.rawTile(s, t)
	case kind == 1:
		s.fill(t, palette[0])
		return nil
	case kind >= 2 && kind <= 16:
		return z.packedTile(s, t, palette)
	case kind == 128:
		return z.runTile(s, t, func() (uint32, bool, error) {
			p, err := z.pixel()
			return p, true, err
		})
	case kind >= 130:
		return z.runTile(s, t, func() (uint32, bool, error) {
			v, err := z.u8()
			if err == nil && v&^128 >= len(palette) {
				err = broken("ZRLE: colour %d of %d", v&^128, len(palette))
			}
			if err != nil {
				return 0, false, err
			}
			return palette[v&^128], v&128 != 0, nil
		})
	default:
		return broken("ZRLE: a tile of type %d", kind)
	}
}

// palette reads n colours.
func (z *inflater) palette(n int) ([]uint32, error) {
	b, err := z.take(min(n, largestPL) * cpixel)
	if err != nil {
		return nil, err
	}
	colours := make([]uint32, 0, largestPL)
	for ; len(b) > 0; b = b[cpixel:] {
		colours = append(colours, uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16)
	}
	return colours, nil
}

func (z *inflater) rawTile(s *Screen, t image.Rectangle) error {
	b, err := z.take(t.Dx() * t.Dy() * cpixel)
	if err != nil {
		return err
	}
	for y := t.Min.Y; y < t.Max.Y; y++ {
		for row := s.row(t, y); len(row) > 0; row, b = row[bytesPerPixel:], b[cpixel:] {
			row[0], row[1], row[2], row[3] = b[0], b[1], b[2], 0
		}
	}
	return nil
}

// packedTile reads indices of 1, 2 or 4 bits; each row begins with a new byte.
func (z *inflater) packedTile(s *Screen, t image.Rectangle, palette []uint32) error {
	width := 4
	if len(palette) <= 2 {
		width = 1
	} else if len(palette) <= 4 {
		width = 2
	}
	stride := (t.Dx()*width + 7) / 8
	b, err := z.take(stride * t.Dy())
	if err != nil {
		return err
	}
	mask := 1<<width - 1
	for y := t.Min.Y; y < t.Max.Y; y++ {
		row := s.row(t, y)
		for x := range t.Dx() {
			at := x * width
			v := int(b[at/8]) >> (8 - width - at%8) & mask
			if v >= len(palette) {
				return broken("ZRLE: colour %d of %d", v, len(palette))
			}
			binary.LittleEndian.PutUint32(row[bytesPerPixel*x:], palette[v])
		}
		b = b[stride:]
	}
	return nil
}

// runTile paints runs of pixels, which continue from row to row. next returns a run's colour
// and whether its length follows.
func (z *inflater) runTile(s *Screen, t image.Rectangle, next func() (uint32, bool, error)) error {
	w, left := t.Dx(), t.Dx()*t.Dy()
	for at := 0; left > 0; {
		colour, long, err := next()
		if err != nil {
			return err
		}
		n := 1
		if long {
			if n, err = z.run(left); err != nil {
				return err
			}
		}
		for left -= n; n > 0; {
			x, y := t.Min.X+at%w, t.Min.Y+at/w
			part := min(n, t.Max.X-x)
			s.fill(image.Rect(x, y, x+part, y+1), colour)
			n, at = n-part, at+part
		}
	}
	return nil
}
