package v4l2

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// interruption returns an event in the place of a frame; ends says why the source
// ends, nil when Next is to be called again.
func (s *Source) interruption(kind, detail string, f *lab.Format, ends error) error {
	if ends != nil {
		ends = fmt.Errorf("v4l2: %s: %w", s.o.Path, ends)
	}
	return &capture.Interruption{Event: lab.SourceEvent{Kind: kind, Time: lab.Monotonic(), Detail: detail, Format: f}, Ends: ends}
}

// event reads one event and says what it means, if anything.
func (s *Source) event() error {
	var e event
	if err := s.dev.ioctl(reqDequeueEvent, pointer(&e)); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAGAIN) {
			return nil // no event waits for this handle
		}
		return s.trouble(fmt.Errorf("dequeue event: %w", err))
	}
	if u32(e[:], 0) != eventSource || u32(e[:], 8)&changeResolution == 0 {
		return nil
	}
	return s.look()
}

// look asks what signal there is, compares it with the one that is filmed, and
// returns the interruption that follows from it; nil if none does.
func (s *Source) look() error {
	t, err := queryTimings(s.dev)
	switch {
	case errors.Is(err, errNoTimings):
		return s.lookAtFormat()
	case errors.Is(err, ErrUnplugged):
		return s.trouble(unix.ENODEV)
	case err != nil && s.lost:
		s.blind = true
		return nil
	case err != nil:
		s.lost, s.blind = true, true
		return s.interruption(lab.SourceSignalLost, err.Error(), nil, nil)
	case s.timings == nil || !t.same(s.timings):
		now := t.get()
		f := s.format
		f.Width, f.Height = now.Width, now.Height
		if now.Rate > 0 {
			f.Rate = now.Rate
		}
		why := ErrResolution
		if f.Width == s.format.Width && f.Height == s.format.Height {
			why = capture.ErrRate
		}
		return s.interruption(lab.SourceResized, "", &f, fmt.Errorf("%w to %v", why, now))
	case s.lost:
		return s.back()
	}
	return s.lookAtFormat()
}

// lookAtFormat compares the driver's format, which is all that says what changed where the input has no timings.
func (s *Source) lookAtFormat() error {
	now, err := s.granted()
	if err != nil {
		return s.trouble(err)
	}
	was, to := s.pad, s.format
	if now.width == was.width && now.height == was.height && now.fourcc == was.fourcc {
		if now.colourspace == was.colourspace && now.encoding == was.encoding && now.quantisation == was.quantisation {
			return nil
		}
		to.Matrix, to.Range = now.colours(s.layout.isYCbCr())
		return s.interruption(lab.SourceResized, "", &to, ErrColours)
	}
	to.Width, to.Height = int(now.width), int(now.height)
	return s.interruption(lab.SourceResized, "", &to, fmt.Errorf("%w to %d × %d", ErrResolution, now.width, now.height))
}

// silence handles a frame that did not come in time. It reports the signal as lost,
// once. Some drivers do not report its return, so later calls look for it.
func (s *Source) silence() error {
	if !s.lost {
		s.lost = true
		return s.interruption(lab.SourceSignalLost, fmt.Sprintf("no frame came for %v: is the cable plugged in and the screen awake?",
			s.o.Patience), nil, nil)
	}
	if s.timings != nil {
		return s.look()
	}
	return nil
}

// back reports that a lost signal has returned. With timings the stream is started
// again, because drivers may have stopped it.
func (s *Source) back() error {
	if s.timings != nil {
		if err := s.restart(); err != nil {
			return s.trouble(err)
		}
	}
	s.lost, s.blind, s.started = false, false, false
	return s.interruption(lab.SourceSignalBack, "", nil, nil)
}

// trouble turns the error of an ioctl into an interruption. A stream that failed is
// started again, unless it fails at once each time.
func (s *Source) trouble(err error) error {
	var already *capture.Interruption
	if errors.As(err, &already) {
		return err
	}
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return s.interruption(lab.SourceUnplugged, "", nil, ErrUnplugged)
	}
	const most = 3
	if s.failed++; s.failed <= most && errors.Is(err, unix.EIO) {
		again := s.restart()
		if again == nil {
			return s.interruption(StreamFailed, "the driver reported an error; the stream was started again", nil, nil)
		}
		err = errors.Join(err, again)
	}
	return s.interruption(StreamFailed, err.Error(), nil, fmt.Errorf("%w: %w", ErrStream, err))
}
