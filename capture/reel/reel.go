// Package reel reads and writes reels: losslessly compressed screen recordings
// with a time, a sequence number and the list of changed regions for every
// frame. The file format is specified in docs/formats/reel.md.
//
// Frames go in through a [Writer] (or [Create]), one by one, and are on their
// way to the disk when WriteFrame returns: a process that is killed loses
// nothing that it has written. A [Reader] gives any frame's facts without
// decoding pixels, and any frame's pixels at random; [Recover] saves what a
// cut-off or damaged file still holds, and names the damage.
package reel

import (
	"errors"
	"time"

	"eidetic/internal/lab"
)

// Header describes a whole reel.
type Header struct {
	Format lab.Format `json:"format"`
	Source string     `json:"source,omitempty"` // "x11::99", "v4l2:/dev/video0"
	Wall   time.Time  `json:"wall"`             // when the recording started, for people
	// NotLossless says why the pixels are not what the screen showed ("MJPEG
	// at the source"); empty when they are.
	NotLossless string `json:"not_lossless,omitempty"`
}

var errNotYet = errors.New("reel: not wired yet")

// Writer writes a reel; it is a capture.Sink.
type Writer struct{}

// Create makes the file at path and writes the header.
func Create(path string, h Header) (*Writer, error) { return nil, errNotYet }

// WriteFrame appends one frame.
func (w *Writer) WriteFrame(f lab.Frame) error { return errNotYet }

// WriteGap notes lost frames.
func (w *Writer) WriteGap(g lab.Gap) error { return errNotYet }

// Close writes the index and closes the file.
func (w *Writer) Close() error { return errNotYet }

// Reader reads a reel. It is not safe for use by several goroutines at once;
// open the file once for each.
type Reader struct{}

// Open reads the index, or rebuilds it when the file was cut off.
func Open(path string) (*Reader, error) { return nil, errNotYet }

// Header returns the reel's description.
func (r *Reader) Header() Header { return Header{} }

// Format describes every frame.
func (r *Reader) Format() lab.Format { return lab.Format{} }

// Len returns the number of frames.
func (r *Reader) Len() int { return 0 }

// Info returns frame i's facts without decoding pixels.
func (r *Reader) Info(i int) lab.FrameInfo { return lab.FrameInfo{} }

// Sum returns XXH3-64 of frame i's pixels (see docs/formats/reel.md): frames
// of one reel with equal sums are equal. It needs no decoding.
func (r *Reader) Sum(i int) uint64 { return 0 }

// Pixels returns frame i's pixels, valid until the next call. Forward access
// is fastest; any other costs at most one key frame's distance.
func (r *Reader) Pixels(i int) ([]byte, error) { return nil, errNotYet }

// Gaps returns what was lost while recording.
func (r *Reader) Gaps() []lab.Gap { return nil }

// Recovered says what was wrong with the file when the index had to be rebuilt; nil for a whole file.
func (r *Reader) Recovered() []Damage { return nil }

// Close closes the file.
func (r *Reader) Close() error { return nil }

// Damage is one place of a file that cannot be read.
type Damage struct {
	Offset int64  `json:"offset"` // bytes from the start of the file
	Length int64  `json:"length"` // bytes that were skipped
	Frame  int    `json:"frame"`  // the first frame that is affected, or −1
	What   string `json:"what"`   // for people: what is wrong
}

// Report says how a file stands.
type Report struct {
	Frames int       `json:"frames"` // whole frames
	Lost   int       `json:"lost"`   // lost while recording, by the gaps
	Damage []Damage  `json:"damage"` // empty for a good file
	Gaps   []lab.Gap `json:"gaps"`
}

// Good says that nothing is damaged.
func (r Report) Good() bool { return len(r.Damage) == 0 }

// Verify decodes every frame of the file at path and checks every checksum.
// The error is for a file that cannot be read at all.
func Verify(path string) (Report, error) { return Report{}, errNotYet }

// Recover writes every whole frame of path, which may be cut off or damaged,
// to a new reel at out; frames that damage took become gaps.
func Recover(path, out string) (Report, error) { return Report{}, errNotYet }
