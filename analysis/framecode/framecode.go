// Package framecode reads the strip of pixels that a page can draw on every animation
// frame: a counter, the page's own clock, and 24 bits of the application's. What was
// drawn is in the frame itself, so frames are tied to what the page did without any clock
// in between (the Eideticker specification's out-of-band information). Pixels flow in,
// codes and the relation of the two clocks flow out.
//
// The strip is 400 × 4 device pixels at the page's upper left corner: 100 cells of 4 × 4,
// black for 0 and white for 1, the most significant bit first: 8 bits 10110010, 20 of
// the counter, 32 of performance.now() in tenths of ms, 24 of the application, 16 of CRC
// (CRC-16/CCITT-FALSE over the 76 bits between, filled up with zeros to 80).
package framecode

import (
	_ "embed"
	"errors"
	"fmt"
	"image"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// Script is what a page runs to draw the strip. The application's bits are
// eideticBits() if the page has such a function, else the page's scrollY.
//
//go:embed framecode.js
var Script string

// Reports is a script by which a page tells the box its marks and measures of User Timing, its paints, long tasks,
// layout shifts, slow events, and the rectangles of its largest and of its named elements, with the page's clock that
// the codes carry. BOX_PATH in it stands for the path at which the box listens, HEROES for whether the largest heading
// and image are looked for at each report, which only measurements of them need.
//
//go:embed reports.js
var Reports string

// Strip is the rectangle of the codes of a page whose corner is at a pixel of the frame.
func Strip(corner image.Point) image.Rectangle {
	return image.Rect(0, 0, Cells*Side, Side).Add(corner)
}

// Cells of the strip and their side in pixels.
const (
	Cells = 100
	Side  = 4
	mark  = 0b10110010
)

// Code is what one strip says.
type Code struct {
	Counter uint32  // of animation frames, modulo 2²⁰
	PageMS  float64 // performance.now() when it was drawn, modulo 119 hours
	Bits    uint32  // 24 of the application's
}

// ErrNone says that no strip is there: the marks are missing.
var ErrNone = errors.New("no frame code")

// ErrBroken says that a strip is there, and does not agree with its checksum: it was torn, or
// covered in part.
var ErrBroken = errors.New("the frame code does not agree with its checksum")

// checksum is CRC-16/CCITT-FALSE of the bits, filled up with zeros to whole bytes.
func checksum(bits []bool) uint16 {
	crc := uint16(0xffff)
	for i := range (len(bits) + 7) / 8 * 8 {
		bit := i < len(bits) && bits[i]
		top := crc>>15 == 1
		crc <<= 1
		if top != bit {
			crc ^= 0x1021
		}
	}
	return crc
}

// Decode reads the strip whose corner is at a pixel of a frame.
func Decode(a visual.Access, f lab.Format, pix visual.Raster, corner image.Point) (Code, error) {
	strip := Strip(corner)
	if !strip.In(f.Bounds()) {
		return Code{}, fmt.Errorf("a frame code at %v reaches beyond the frame of %d×%d: %w", corner, f.Width, f.Height, ErrNone)
	}
	if err := a.Check(pix); err != nil {
		return Code{}, err
	}
	// The middle of each cell: its edges may be blurred by a camera or by chroma.
	var sums [Cells]int
	row := make([]uint32, Cells*Side)
	for y := 1; y < Side-1; y++ {
		a.Row(row, pix, corner.Y+y, corner.X)
		for i := range sums {
			for x := 1; x < Side-1; x++ {
				sums[i] += a.Luma(row[i*Side+x])
			}
		}
	}
	var bits [Cells]bool
	for i, s := range sums {
		bits[i] = s >= 128*(Side-2)*(Side-2)
	}
	get := func(at, n int) (v uint64) {
		for _, b := range bits[at : at+n] {
			v <<= 1
			if b {
				v |= 1
			}
		}
		return v
	}
	if get(0, 8) != mark {
		return Code{}, ErrNone
	}
	if uint16(get(84, 16)) != checksum(bits[8:84]) {
		return Code{}, ErrBroken
	}
	return Code{uint32(get(8, 20)), float64(get(28, 32)) / 10, uint32(get(60, 24))}, nil
}

// Seen is a frame with its code.
type Seen struct {
	Frame int
	Code
	New bool // the first frame that shows it
}

// Read decodes every frame; the strip's corner is that of the content area.
func Read(frames visual.Frames, start, end int, corner image.Point) (seen []Seen, broken int, err error) {
	access, err := visual.NewAccess(frames.Format())
	if err != nil {
		return nil, 0, fmt.Errorf("read frame codes: %w", err)
	}
	if end == 0 {
		end = frames.Len()
	}
	if start < 0 || start >= end || end > frames.Len() {
		return nil, 0, fmt.Errorf("read frame codes: frames %d … %d of a recording of %d", start, end-1, frames.Len())
	}
	for i := start; i < end; i++ {
		if n := len(seen); i > start && len(frames.Info(i).Changed) == 0 {
			if n > 0 && seen[n-1].Frame == i-1 {
				seen = append(seen, Seen{i, seen[n-1].Code, false})
			}
			continue
		}
		pix, err := access.Read(frames, i)
		if err != nil {
			return nil, 0, fmt.Errorf("read frame codes: frame %d: %w", i, err)
		}
		c, err := Decode(access, frames.Format(), pix, corner)
		switch {
		case errors.Is(err, ErrBroken):
			broken++
		case errors.Is(err, ErrNone):
		case err != nil:
			return nil, 0, fmt.Errorf("read frame codes: frame %d: %w", i, err)
		default:
			n := len(seen)
			seen = append(seen, Seen{i, c, n == 0 || seen[n-1].Code != c})
		}
	}
	return seen, broken, nil
}

// Clock is the relation of the page's clock to the box's: a page instant p, in ms, was at a box
// instant in [Low + p, High + p].
type Clock struct {
	Low, High lab.Time
	Frames    int // that bound it
}

// ErrClock says that no offset fits all frames: the page was loaded anew, or a clock stepped.
var ErrClock = errors.New("no offset of the page's clock fits all its frame codes")

// Relate bounds the offset of the page's clock. A frame that shows a code was taken after the
// page drew it, so the offset is at most the least of frame time less page time. A code that is
// new had not been on the screen when the frame before was taken; that bounds the delay of
// drawing, latest, from below only if the delay itself is bounded: delay is the longest
// that the page may have needed from drawing to the screen.
func Relate(frames visual.Frames, seen []Seen, delay lab.Time) (Clock, error) {
	c := Clock{Low: -1 << 62, High: 1 << 62}
	for _, s := range seen {
		if !s.New || s.Frame == 0 {
			continue
		}
		page := lab.Time(s.PageMS * 1e6)
		before := frames.Info(s.Frame - 1)
		c.High = min(c.High, frames.Info(s.Frame).Time-page)
		c.Low = max(c.Low, before.Time.Add(-before.Uncertainty)-page-delay)
		c.Frames++
	}
	if c.Frames == 0 {
		return c, ErrNone
	}
	if c.Low > c.High {
		return c, fmt.Errorf("%w (by %v)", ErrClock, c.Low.Sub(c.High))
	}
	return c, nil
}

// Documents cuts what was seen where a page's clock goes back: each document begins one.
func Documents(seen []Seen) (out [][]Seen) {
	from := 0
	for i := range seen {
		if i > 0 && seen[i].PageMS < seen[i-1].PageMS {
			out = append(out, seen[from:i])
			from = i
		}
	}
	if from < len(seen) {
		out = append(out, seen[from:])
	}
	return out
}

// FrameOf places a page instant, such as a mark of User Timing or the time of the largest
// paint, on the frames: the first that shows a code drawn at or after it; −1 if none does.
func FrameOf(seen []Seen, pageMS float64) int {
	for _, s := range seen {
		if s.PageMS >= pageMS {
			return s.Frame
		}
	}
	return -1
}
