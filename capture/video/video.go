// Package video turns recordings into evidence for people: WebM films through
// vpxenc, filmstrips, contact sheets and stills.
//
// Frames (a reel) go in; files that any browser shows come out. None of them
// is a basis for numbers: colours are subsampled, and films are lossy. The reel stays.
package video

import (
	"fmt"
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

// span checks a range of frames: last 0 means the last one there is.
func span(f Frames, first, last int) (int, int, error) {
	if f.Len() == 0 {
		return 0, 0, fmt.Errorf("the recording has no frames")
	}
	if last == 0 {
		last = f.Len() - 1
	}
	if first < 0 || last < first || last >= f.Len() {
		return 0, 0, fmt.Errorf("frames %d … %d are not among the recording's 0 … %d", first, last, f.Len()-1)
	}
	return first, last, nil
}

// crop checks a part of the picture: an empty one means all of it.
func crop(f lab.Format, r image.Rectangle) (image.Rectangle, error) {
	if r.Empty() {
		return f.Bounds(), nil
	}
	if !r.In(f.Bounds()) {
		return r, fmt.Errorf("the part %v is not inside the picture %v", r, f.Bounds())
	}
	return r, nil
}

// Still returns frame i as an image of its own.
func Still(f Frames, i int) (*image.RGBA, error) {
	pix, err := f.Pixels(i)
	if err != nil {
		return nil, fmt.Errorf("still: %w", err)
	}
	img := image.NewRGBA(f.Format().Bounds())
	if err := ToRGBA(img, f.Format(), pix, img.Rect); err != nil {
		return nil, fmt.Errorf("still: frame %d: %w", i, err)
	}
	return img, nil
}
