package reel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"time"

	"eidetic/internal/lab"
)

// frameHead is what a frame block says of its frame besides the pixels.
type frameHead struct {
	lab.FrameInfo
	index int    // in the reel, from 0
	key   bool   // decodes without the frame before
	sum   uint64 // XXH3-64 of the pixels, see sums
}

// maxChanged bounds the rectangles of one frame.
const maxChanged = 4096

const headKey = 1 // bit of a frame head's first byte

// append writes the head: the first byte's bits, then varints.
func (h frameHead) append(dst []byte) []byte {
	first := byte(0)
	if h.key {
		first |= headKey
	}
	dst = append(dst, first)
	dst = binary.AppendUvarint(dst, uint64(h.index))
	dst = binary.AppendUvarint(dst, h.Seq)
	dst = binary.AppendVarint(dst, int64(h.Time))
	dst = binary.AppendUvarint(dst, uint64(h.Uncertainty))
	dst = binary.AppendUvarint(dst, uint64(h.Flags))
	dst = binary.LittleEndian.AppendUint64(dst, h.sum)
	dst = binary.AppendUvarint(dst, uint64(len(h.Changed)))
	for _, r := range h.Changed {
		dst = binary.AppendUvarint(dst, uint64(r.Min.X))
		dst = binary.AppendUvarint(dst, uint64(r.Min.Y))
		dst = binary.AppendUvarint(dst, uint64(r.Dx()))
		dst = binary.AppendUvarint(dst, uint64(r.Dy()))
	}
	return dst
}

// parseFrameHead reads what append wrote; bounds is the whole frame.
func parseFrameHead(b []byte, bounds image.Rectangle) (frameHead, error) {
	c := cursor{b: b}
	var h frameHead
	first := c.byte()
	if first&^headKey != 0 {
		return h, fmt.Errorf("frame head: unknown flags %#x", first)
	}
	h.key = first&headKey != 0
	h.index = c.int(1 << 40)
	h.Seq = c.uvarint()
	h.Time = lab.Time(c.varint())
	h.Uncertainty = time.Duration(c.int(1 << 62))
	h.Flags = lab.FrameFlags(c.int(1<<32 - 1))
	h.sum = c.uint64()
	n := c.int(maxChanged)
	if n > len(c.b)/4 {
		return h, fmt.Errorf("frame head: %d changed regions do not fit into %d bytes", n, len(c.b))
	}
	if n > 0 {
		h.Changed = make([]image.Rectangle, n)
	}
	for i := range h.Changed {
		x, y := c.int(lab.MaxSide), c.int(lab.MaxSide)
		r := image.Rect(x, y, x+c.int(lab.MaxSide), y+c.int(lab.MaxSide))
		if !r.In(bounds) {
			return h, fmt.Errorf("frame head: changed region %v is outside the frame %v", r, bounds)
		}
		h.Changed[i] = r
	}
	if c.err != nil {
		return h, fmt.Errorf("frame head: %w", c.err)
	}
	if len(c.b) != 0 {
		return h, fmt.Errorf("frame head: %d bytes too many", len(c.b))
	}
	return h, nil
}

// cursor reads numbers from bytes that may be hostile. The first failure
// stays, and every later read returns zero.
type cursor struct {
	b   []byte
	err error
}

var (
	errShort = errors.New("too short")
	errRange = errors.New("a number is out of range")
)

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

func (c *cursor) byte() byte {
	if len(c.b) < 1 {
		c.fail(errShort)
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

func (c *cursor) uint64() uint64 {
	if len(c.b) < 8 {
		c.fail(errShort)
		return 0
	}
	v := binary.LittleEndian.Uint64(c.b)
	c.b = c.b[8:]
	return v
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail(errShort)
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.fail(errShort)
		return 0
	}
	c.b = c.b[n:]
	return v
}

// int reads a number of 0 … limit.
func (c *cursor) int(limit int) int {
	v := c.uvarint()
	if v > uint64(limit) {
		c.fail(errRange)
		return 0
	}
	return int(v)
}

// signed reads a number of −limit … limit.
func (c *cursor) signed(limit int) int {
	v := c.varint()
	if v < int64(-limit) || v > int64(limit) {
		c.fail(errRange)
		return 0
	}
	return int(v)
}

// bytes takes the next n bytes.
func (c *cursor) bytes(n int) []byte {
	if n < 0 || len(c.b) < n {
		c.fail(errShort)
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}
