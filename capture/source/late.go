package source

import (
	"context"
	"time"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// Late is a source whose pictures are stamped later than the screen showed them: a cable, a
// grabber and its driver take time. It moves each frame to the interval in which the screen can
// have shown it.
type Late struct {
	capture.Source
	Least, Most time.Duration // from the screen to the time stamp
}

// Next moves the next frame of the source.
func (s *Late) Next(ctx context.Context) (lab.Frame, error) {
	f, err := s.Source.Next(ctx)
	if err == nil {
		f.Time = f.Time.Add(-s.Least)
		f.Uncertainty += s.Most - s.Least
	}
	return f, err
}

// Notes are those of the source.
func (s *Late) Notes() map[string]string { return Notes(s.Source) }

// NotLossless is that of the source.
func (s *Late) NotLossless() string { return notLossless(s.Source) }

var _ capture.Source = (*Late)(nil)
