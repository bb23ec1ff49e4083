// Package video turns recordings into evidence for people: WebM, filmstrips, stills.
package video

import (
	"context"
	"errors"
	"image"

	"eidetic/internal/lab"
)

// Frames is a recording; *reel.Reader is one.
type Frames interface {
	Format() lab.Format
	Len() int
	Info(i int) lab.FrameInfo
	Pixels(i int) ([]byte, error)
}

// Options of a video.
type Options struct {
	First, Last int             // frames, inclusive; Last 0 means the last one
	Crop        image.Rectangle // part of the picture; default all of it
	Width       int             // scaled down to this many pixels; default unscaled
	Rate        float64         // frames per second of the video; default 60
}

var errNotYet = errors.New("video: not wired yet")

// WebM encodes the frames to a VP8 file at path on a constant-rate timeline.
func WebM(ctx context.Context, f Frames, path string, o Options) error { return errNotYet }

// Still returns frame i as an image.
func Still(f Frames, i int) (*image.RGBA, error) { return nil, errNotYet }

// Thumb is one picture of a filmstrip.
type Thumb struct {
	Frame  int     `json:"frame"`
	TimeMS float64 `json:"time_ms"` // since the first frame of the strip
	File   string  `json:"file,omitempty"`
}

// StripOptions of a filmstrip.
type StripOptions struct {
	First, Last int             // frames, inclusive; Last 0 means the last one
	Crop        image.Rectangle // part of the picture; default all of it
	Width       int             // of one thumbnail, pixels; default 200
	// EveryMS takes a picture at this distance; 0 means at visual changes, at
	// most Max of them.
	EveryMS float64
	Max     int // pictures; default 12
}

// Filmstrip writes JPEG thumbnails into dir (named strip-000.jpg …) and returns them in order.
func Filmstrip(ctx context.Context, f Frames, dir string, o StripOptions) ([]Thumb, error) {
	return nil, errNotYet
}

// Contact draws the same thumbnails into one PNG at path, with their times.
func Contact(ctx context.Context, f Frames, path string, o StripOptions) error { return errNotYet }
