package visual

import (
	"errors"
	"fmt"
)

// ErrNoContent is returned, wrapped with the frames, when nothing but the end
// page follows the start frame.
var ErrNoContent = errors.New("the end page follows the start frame at once: the load showed no content")

// contentEnd returns one past the last frame that shows content: o.End, or the
// first frame of the end page where the recording ends with it.
//
// A frame belongs to the end page if the content area has its colour. So does the
// frame just before, if it brought the colour to 1/16 of the area or more: it was
// taken while the page was being painted, and as the final frame it would make a
// page of red and content the goal of every measurement.
func (s *screen) contentEnd(frames Frames, o Options) (int, error) {
	if o.EndPage.A == 0 || o.End-o.Start < 2 {
		return o.End, nil
	}
	count := func(i int) (n int, err error) {
		pix, err := frames.Pixels(i)
		if err == nil {
			err = s.plane.check(pix)
		}
		if err != nil {
			return 0, fmt.Errorf("frame %d: %w", i, err)
		}
		for _, part := range s.parts {
			n += s.plane.count(pix, part, 1, o.EndPage)
		}
		return n, nil
	}
	end := o.End
	hits, err := count(end - 1)
	if err != nil || !isFilled(hits, s.pixels) {
		return end, err
	}
	for ; end > o.Start+1; end-- {
		before := hits
		if len(frames.Info(end-1).Changed) > 0 {
			if before, err = count(end - 2); err != nil {
				return 0, err
			}
		}
		if !isFilled(hits, s.pixels) && !isLarge(hits-before, s.pixels) {
			return end, nil
		}
		hits = before
	}
	return 0, fmt.Errorf("frames %d … %d: %w", o.Start, o.End-1, ErrNoContent)
}

// check says what is wrong with a frame whose size is not the format's.
func (p plane) check(pix []byte) error {
	if want := p.format.FrameSize(); len(pix) != want {
		return fmt.Errorf("frame holds %d bytes, a %s frame of %d×%d has %d", len(pix), p.format.Pixels, p.format.Width, p.format.Height,
			want)
	}
	return nil
}
