// Package synthetic is a screen that does not exist: it draws test pictures
// with the frame's number in them, so that a recording can prove that it holds
// every frame, once, whole and in order.
//
// Contents are drawn from the frame's number alone: two sources of the same
// options deliver the same bytes, and a test can draw any frame again to
// compare. What moves is meant to load a recorder as screens do, not to be pretty.
package synthetic

import (
	"context"
	"fmt"
	"io"
	"time"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// Content is what a synthetic screen shows.
type Content string

// The contents, from the least to the most work for a recorder.
const (
	Static Content = "static" // nothing but the counter changes
	Load   Content = "load"   // a page that fills itself with blocks, then rests
	Scroll Content = "scroll" // text that moves up by 8 rows a frame
	Noise  Content = "noise"  // every pixel of every frame differs
)

// Options of a synthetic screen.
type Options struct {
	Format  lab.Format
	Content Content // default Load
	Frames  int     // how many; 0 means without end
	// Clock and Wait pace the frames at Format.Rate; without Wait they come
	// as fast as they are asked for, with the times that they should have had.
	Clock lab.Clock
	Wait  func(lab.Time)
	// Buffers is how many frames wait for a caller that is late, as they do in
	// a grabber's driver, before frames are skipped; default 1.
	Buffers int
}

// Source is a capture.Source.
type Source struct {
	o      Options
	period time.Duration
	start  lab.Time
	n      int
	canvas *canvas
}

// New returns a source; it fails on a format that is not valid or is MJPEG.
func New(o Options) (*Source, error) {
	if err := o.Format.Validate(); err != nil {
		return nil, fmt.Errorf("synthetic: %w", err)
	}
	if o.Format.Pixels == lab.MJPEG {
		return nil, fmt.Errorf("synthetic: MJPEG is not drawn")
	}
	if o.Content == "" {
		o.Content = Load
	}
	c, err := newCanvas(o.Format, o.Content)
	if err != nil {
		return nil, err
	}
	s := &Source{o: o, period: time.Duration(1e9 / o.Format.Rate), canvas: c}
	if o.Clock != nil {
		s.start = o.Clock()
	}
	return s, nil
}

// Format describes the frames.
func (s *Source) Format() lab.Format { return s.o.Format }

// Next waits until the next frame is due and draws it. When the caller comes
// so late that more than Options.Buffers frames were due, the oldest are
// skipped, as a grabber's would be, and Seq tells.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	if err := ctx.Err(); err != nil {
		return lab.Frame{}, err
	}
	if s.o.Wait != nil && s.n > 0 {
		now := s.o.Clock()
		newest := int(now.Sub(s.start) / s.period)
		s.n = max(s.n, newest+1-max(1, s.o.Buffers))
		if due := s.start.Add(time.Duration(s.n) * s.period); due > now {
			if err := capture.WaitUntil(ctx, now, due, s.o.Wait); err != nil {
				return lab.Frame{}, err
			}
		}
	}
	if s.o.Frames > 0 && s.n >= s.o.Frames {
		return lab.Frame{}, io.EOF
	}
	f := lab.Frame{Pix: s.canvas.draw(s.n)}
	f.Seq = uint64(s.n)
	f.Time = s.start.Add(time.Duration(s.n) * s.period)
	f.Changed = append(f.Changed, s.o.Format.Bounds())
	s.n++
	return f, nil
}

// Close does nothing.
func (s *Source) Close() error { return nil }
