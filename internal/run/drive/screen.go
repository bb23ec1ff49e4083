package drive

import (
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"sync"

	"eidetic/analysis/visual"
	"eidetic/capture"
	"eidetic/internal/lab"
)

// Screen is what a device shows now: the newest picture of a source, and when it changed.
type Screen struct {
	source capture.Source
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	pix     []byte
	changed lab.Time // of the picture
	last    lab.Time // up to when the screen is known
	err     error
	news    chan struct{} // closed when something has come
}

// Watch begins to watch a source, which it takes over.
func Watch(ctx context.Context, source capture.Source) *Screen {
	ctx, cancel := context.WithCancel(ctx)
	s := &Screen{source: source, cancel: cancel, done: make(chan struct{}), news: make(chan struct{})}
	go s.read(ctx)
	return s
}

func (s *Screen) read(ctx context.Context) {
	defer close(s.done)
	for {
		frame, err := s.source.Next(ctx)
		var interruption *capture.Interruption
		if errors.As(err, &interruption) && interruption.Ends == nil {
			continue
		}
		s.mu.Lock()
		if s.err = err; err == nil {
			if len(frame.Changed) > 0 || s.pix == nil {
				s.pix, s.changed = append(s.pix[:0], frame.Pix...), frame.Time
			}
			s.last = frame.Time.Add(-frame.Uncertainty)
		}
		close(s.news)
		s.news = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// state is what is known now, and what is closed when more is known.
func (s *Screen) state() (changed, last lab.Time, news chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed, s.last, s.news, s.err
}

// await waits until something has come, or ctx ends.
func (s *Screen) await(ctx context.Context, news chan struct{}) error {
	select {
	case <-news:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// picture returns the newest picture, the first one after an instant.
func (s *Screen) picture(ctx context.Context, after lab.Time) (*visual.Picture, error) {
	for {
		_, last, news, err := s.state()
		if err != nil {
			return nil, fmt.Errorf("the screen: %w", err)
		}
		if last > after {
			break
		}
		if err := s.await(ctx, news); err != nil {
			return nil, fmt.Errorf("the screen shows nothing new: %w", err)
		}
	}
	s.mu.Lock()
	pix := slices.Clone(s.pix)
	s.mu.Unlock()
	return visual.PictureOf(s.source.Format(), pix, s.bounds())
}

// Picture returns the newest picture, and when it changed. It waits for the first one.
func (s *Screen) Picture(ctx context.Context) (*visual.Picture, lab.Time, error) {
	p, err := s.picture(ctx, 0)
	changed, _, _, _ := s.state()
	return p, changed, err
}

func (s *Screen) bounds() image.Rectangle { return s.source.Format().Bounds() }

// Close ends watching.
func (s *Screen) Close() error {
	s.cancel()
	<-s.done
	return s.source.Close()
}
