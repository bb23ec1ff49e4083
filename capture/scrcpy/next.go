package scrcpy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// Format describes the frames: NV12.
func (s *Source) Format() lab.Format { return s.feed.format }

// Notes are what a recording should remember of the phone.
func (s *Source) Notes() map[string]string {
	return map[string]string{
		"phone":  s.phone,
		"signal": fmt.Sprintf("H.264 of scrcpy %s, at most %d Mbit/s", s.server.Version, bitRate/1_000_000),
	}
}

// NotLossless says that the phone compressed the pictures.
func (s *Source) NotLossless() string { return "H.264 at the phone" }

// Next returns the next picture, or a repeat where none was drawn.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	if err := ctx.Err(); err != nil {
		return lab.Frame{}, err
	}
	if !s.begun {
		return s.first(), nil
	}
	for {
		if s.held != nil {
			return s.picture()
		}
		due := s.last.Add(s.period)
		horizon, limited, err := s.feed.horizon()
		if err != nil {
			return lab.Frame{}, s.ended(err)
		}
		wait := due.Add(hold).Sub(s.o.Clock())
		still := !limited || due < horizon
		if !still {
			wait = s.period // it is being decoded
		}
		s.timer.Reset(max(wait, 0))
		select {
		case p, ok := <-s.feed.pictures:
			if !ok {
				return lab.Frame{}, s.ended(s.feed.failure())
			}
			s.held = &p
		case <-s.timer.C:
			if at, limited, _ := s.feed.horizon(); !still || limited && at <= due || len(s.feed.pictures) > 0 {
				continue // a packet has come meanwhile: what it shows is looked at first
			}
			s.repeat = true
			return s.still(due), nil
		case <-ctx.Done():
			return lab.Frame{}, ctx.Err()
		}
	}
}

// first is the newest picture so far, which the screen still shows.
func (s *Source) first() lab.Frame {
	s.begun = true
	s.feed.begin()
	for more := true; more; {
		select {
		case p, ok := <-s.feed.pictures:
			if more = ok; ok {
				s.feed.release(s.held.pix)
				s.held = &p
			}
		default:
			more = false
		}
	}
	p := *s.held
	s.held = nil
	at, uncertain := s.feed.stamp(p)
	known := s.o.Clock().Add(-hold)
	if next, limited, _ := s.feed.horizon(); limited {
		known = min(known, next-1)
	}
	if at < known {
		at, uncertain = known, 0
	}
	return s.show(p, lab.FrameInfo{Time: at, Uncertainty: uncertain})
}

// picture is the picture that is held, or what comes before it: the repeats that it proves, and what there is to tell.
func (s *Source) picture() (lab.Frame, error) {
	p := *s.held
	at, uncertain := s.feed.stamp(p)
	if n := int(at.Sub(s.last) / s.period); n > mostProven {
		s.last = s.last.Add(time.Duration(n-mostProven) * s.period)
	}
	if due := s.last.Add(s.period); due < at.Add(-s.period/2) {
		return s.still(due), nil
	}
	if s.repeat && at <= s.last {
		// The repeats after it were wrong: the old picture is only known to have been there until then.
		f := s.still(s.last.Add(time.Microsecond))
		s.repeat = false
		f.Uncertainty = f.Time.Sub(at)
		return f, nil
	}
	if p.damage != "" && !s.hurt {
		s.hurt = true
		return lab.Frame{}, &capture.Interruption{Event: lab.SourceEvent{Kind: lab.SourceDamaged, Time: p.arrived, Detail: p.damage}}
	}
	s.held, s.hurt = nil, p.damage != ""
	if at <= s.last { // its time is known less well
		later := s.last.Add(time.Microsecond)
		at, uncertain = later, uncertain+later.Sub(at)
	}
	return s.show(p, lab.FrameInfo{Time: at, Uncertainty: uncertain}), nil
}

// show gives a picture out.
func (s *Source) show(p picture, info lab.FrameInfo) lab.Frame {
	s.feed.release(s.shown)
	s.shown, s.last, s.repeat = p.pix, info.Time, false
	s.seq += uint64(1 + p.lost)
	info.Seq, info.Flags = s.seq, lab.FrameLook
	if p.damage != "" {
		info.Flags |= lab.FrameCorrupt
	}
	s.rects[0] = s.feed.format.Bounds()
	info.Changed = s.rects[:]
	return lab.Frame{FrameInfo: info, Pix: s.shown}
}

// still is a repeat.
func (s *Source) still(at lab.Time) lab.Frame {
	s.last = at
	s.seq++
	return lab.Frame{FrameInfo: lab.FrameInfo{Seq: s.seq, Time: at, Flags: lab.FrameLook | lab.FrameRepeat}, Pix: s.shown}
}

// ended makes an interruption of what ended the feed.
func (s *Source) ended(err error) error {
	e := lab.SourceEvent{Kind: lab.SourceUnplugged, Time: s.o.Clock(), Detail: err.Error()}
	size := resized{}
	if errors.As(err, &size) {
		f := s.feed.format
		f.Width, f.Height = size.width, size.height
		e.Kind, e.Format = lab.SourceResized, &f
		return &capture.Interruption{Event: e, Ends: fmt.Errorf("scrcpy: %s: %w", s.serial, err)}
	}
	err = s.run.Reason(err)
	e.Detail = err.Error()
	return &capture.Interruption{Event: e, Ends: fmt.Errorf("scrcpy: %s: %w: %w", s.serial, ErrClosed, err)}
}

// Close ends the server, and with it the pictures.
func (s *Source) Close() error {
	s.shut()
	return nil
}

func (s *Source) shut() {
	s.timer.Stop()
	if s.feed != nil {
		_ = s.video.Close() // the phone may have done so before
		s.feed.end()
	}
	if s.run != nil {
		_ = s.video.Close()
		s.run.Stop()
	}
}

var _ capture.Source = (*Source)(nil)
