// Package reel reads and writes reels: losslessly compressed screen recordings
// with a time, a sequence number and the list of changed regions for every
// frame. The file format is specified in docs/formats/reel.md.
//
// Frames go in through a [Writer] ([Create], [NewWriter]), one by one, and are
// in the kernel's hands when WriteFrame returns: a process that is killed loses
// nothing that it has written. A [Reader] gives any frame's facts without
// decoding pixels, and any frame's pixels at random; [Recover] saves what a
// cut-off or damaged file still holds, and names the damage.
//
// A frame is coded as what differs from the frame before: unchanged regions
// cost nothing, regions that moved or are flat cost a few bytes, and the rest is
// compressed by klauspost/compress. Blocks are guarded by CRC32C (Castagnoli,
// as in iSCSI, RFC 3720), pixels by XXH3-64.
package reel

import (
	"errors"
	"fmt"
	"time"

	"eidetic/internal/lab"
)

// Header describes a whole reel. It is stored as JSON; readers ignore fields
// that they do not know.
type Header struct {
	Version int        `json:"version"` // of the format; Create fills it in
	Format  lab.Format `json:"format"`
	Source  string     `json:"source,omitempty"` // "x11::99", "v4l2:/dev/video0"
	Wall    time.Time  `json:"wall"`             // when the recording started, for people
	// NotLossless says why the pixels are not what the screen showed ("MJPEG
	// at the source"); empty when they are.
	NotLossless string `json:"not_lossless,omitempty"`
	// Notes are free: the grabber's name, its colour range, the display's size.
	Notes map[string]string `json:"notes,omitempty"`
}

// Version of the format that this package writes. A reader refuses newer ones.
// Version 2 added grey literals and small residuals.
const Version = 2

// ErrNotReel is returned for a file of another kind.
var ErrNotReel = errors.New("this is not a reel (its first bytes are not a reel's)")

// MaxFrame bounds the bytes of a frame that a reader decodes: an 8K screen in
// BGRX has 133 MB. A header that claims more is refused, so that a small
// hostile file cannot make its reader allocate without end.
const MaxFrame = 256 << 20

// Damage is one place of a file that cannot be read.
type Damage struct {
	Offset int64  `json:"offset"` // bytes from the start of the file
	Length int64  `json:"length"` // bytes that were skipped
	Frame  int    `json:"frame"`  // the first frame that is affected, or −1 when only the index is
	What   string `json:"what"`   // for people: what is wrong
}

func (d Damage) String() string {
	if d.Frame < 0 {
		return fmt.Sprintf("byte %d: %s", d.Offset, d.What)
	}
	return fmt.Sprintf("frame %d, byte %d: %s", d.Frame, d.Offset, d.What)
}

// checkHeader says what is wrong with a header that came from outside.
func checkHeader(h Header) error {
	if h.Version < 1 || h.Version > Version {
		return fmt.Errorf("format version %d is not known here (1 … %d): use a newer appliance", h.Version, Version)
	}
	if err := h.Format.Validate(); err != nil {
		return err
	}
	if h.Format.FrameSize() > MaxFrame {
		return fmt.Errorf("a frame of %d × %d %s has %d bytes, more than %d",
			h.Format.Width, h.Format.Height, h.Format.Pixels, h.Format.FrameSize(), MaxFrame)
	}
	return nil
}
