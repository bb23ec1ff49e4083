package lab

import (
	"fmt"
	"image"
	"time"
)

// PixelFormat names how the pixels of a frame lie in memory, by the names of V4L2's
// documentation without their prefix.
type PixelFormat string

// The formats that screens and grabbers deliver.
const (
	BGRX  PixelFormat = "BGRX"  // 4 bytes a pixel, the fourth is 0 (V4L2 XBGR32, X11 depth 24)
	BGR24 PixelFormat = "BGR24" // 3 bytes a pixel
	YUYV  PixelFormat = "YUYV"  // 4:2:2 packed, 2 bytes a pixel
	UYVY  PixelFormat = "UYVY"  // 4:2:2 packed, 2 bytes a pixel
	NV12  PixelFormat = "NV12"  // 4:2:0, a Y plane and an interleaved UV plane
	Grey  PixelFormat = "GREY"  // 1 byte a pixel
	MJPEG PixelFormat = "MJPEG" // compressed, not lossless at the source
)

// Format describes every frame of a source or a reel.
type Format struct {
	Pixels PixelFormat `json:"pixels"`
	Width  int         `json:"width"`  // pixels
	Height int         `json:"height"` // pixels
	Rate   float64     `json:"rate"`   // nominal frames per second
	// Matrix and Range say what colours the samples stand for, as far as the source knows.
	Matrix Matrix      `json:"matrix,omitempty"`
	Range  ColourRange `json:"range,omitempty"`
}

// Stride returns the bytes of one row of the first plane. Rows have no padding: sources
// remove that of their drivers.
func (f Format) Stride() int {
	switch f.Pixels {
	case BGRX:
		return 4 * f.Width
	case BGR24:
		return 3 * f.Width
	case YUYV, UYVY:
		return 2 * f.Width
	default:
		return f.Width
	}
}

// FrameSize returns the bytes of one frame, or 0 for MJPEG, whose frames differ in size.
func (f Format) FrameSize() int {
	switch f.Pixels {
	case MJPEG:
		return 0
	case NV12:
		return f.Width*f.Height + 2*((f.Width+1)/2)*((f.Height+1)/2)
	default:
		return f.Stride() * f.Height
	}
}

// Bounds returns the rectangle of the whole frame.
func (f Format) Bounds() image.Rectangle { return image.Rect(0, 0, f.Width, f.Height) }

// MaxSide bounds width and height, so that a hostile file cannot claim a huge allocation.
// No screen is larger.
const MaxSide = 16384

// Validate returns an error for a format that no source can have.
func (f Format) Validate() error {
	switch f.Pixels {
	case BGRX, BGR24, YUYV, UYVY, NV12, Grey, MJPEG:
	default:
		return fmt.Errorf("pixel format %q is not one of BGRX, BGR24, YUYV, UYVY, NV12, GREY, MJPEG", f.Pixels)
	}
	if f.Width < 1 || f.Height < 1 || f.Width > MaxSide || f.Height > MaxSide {
		return fmt.Errorf("frame size %d×%d is outside 1×1 … %d×%d", f.Width, f.Height, MaxSide, MaxSide)
	}
	if !(f.Rate > 0 && f.Rate <= 1000) {
		return fmt.Errorf("frame rate %v is outside 0 … 1000 per second", f.Rate)
	}
	switch f.Matrix {
	case "", BT601, BT709, BT2020, SMPTE240M:
	default:
		return fmt.Errorf("colour matrix %q is not one of 601, 709, 2020, 240M", f.Matrix)
	}
	switch f.Range {
	case "", FullRange, LimitedRange:
	default:
		return fmt.Errorf("colour range %q is neither full nor limited", f.Range)
	}
	return nil
}

// FrameFlags says what is special about a frame.
type FrameFlags uint32

const (
	// FrameRepeat: the source knows that no pixel changed since the frame before.
	FrameRepeat FrameFlags = 1 << iota
	// FrameCorrupt: the driver marked the buffer as damaged, or the buffer was too short.
	FrameCorrupt
	// FrameShort, with FrameCorrupt: the buffer held fewer bytes than the format needs;
	// the missing bytes are zero.
	FrameShort
	// FrameProven, with FrameRepeat: the source did not look at the screen at this frame's
	// time, but its next look proved that nothing had been drawn since the look before,
	// so the picture at this time is known.
	FrameProven
	// FrameLook: the source looked at the screen outside its schedule. Time is when; Seq
	// counts the looks and need not agree with the time.
	FrameLook
)

// FrameInfo is what is known of a frame without its pixels.
type FrameInfo struct {
	// Seq is the source's own count. A step of more than one means that frames were lost
	// between the screen and the recorder.
	Seq uint64
	// Missed counts the ticks of the source's schedule since the frame before at which it
	// did not look at the screen. Missed ticks are not lost frames: with FrameRepeat
	// nothing was drawn meanwhile; otherwise the time of the change is known less well,
	// see Unseen. A reel stores Missed in its events.
	Missed int
	// Time is when the source took the frame; the true instant lies in
	// [Time − Uncertainty, Time].
	Time        Time
	Uncertainty time.Duration
	Flags       FrameFlags
	// Changed covers every pixel that differs from the frame before, and may cover more.
	// It is empty with FrameRepeat and for an equal frame. It is Bounds() for the first
	// frame of a reel, and for any frame whose changes are unknown.
	Changed []image.Rectangle
}

// Frame is one picture of the screen.
type Frame struct {
	FrameInfo
	// Pix holds Format.FrameSize() bytes, rows from the top without padding. The source
	// owns it; it is valid until the next call to the source.
	Pix []byte
}

// Gap says which frames are missing from a recording, and why.
type Gap struct {
	Seq    uint64 `json:"seq"`    // the first lost frame, in the source's count
	Count  int    `json:"count"`  // lost frames
	Reason string `json:"reason"` // one of the Gap… constants, or a source's own words
	From   Time   `json:"from_ns"`
	To     Time   `json:"to_ns"` // the times of the frames around the gap
	// Before is the index, in the recording, of the first frame after the gap.
	Before int `json:"before"`
}

func (g Gap) String() string {
	frames := "frames"
	if g.Count == 1 {
		frames = "frame"
	}
	return fmt.Sprintf("before frame %d: %d %s lost, %s", g.Before, g.Count, frames, g.Reason)
}

// The reasons for which frames are lost.
const (
	GapSource  = "missed by the source"   // a step in the source's own sequence
	GapRing    = "recorder's ring full"   // the writer was too slow
	GapCorrupt = "buffer short or marked" // the driver delivered a damaged frame
)

// Move says that a part of a frame holds what stood elsewhere in the frame before: the pixel at p is
// that at p + (DX, DY).
type Move struct {
	R      image.Rectangle
	DX, DY int
}
