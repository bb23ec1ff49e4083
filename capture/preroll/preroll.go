// Package preroll keeps the last seconds of a screen and begins a recording
// before it was asked for: what a person saw happen can still be saved.
//
// It is a capture.Sink in front of another. Frames are kept compressed, as
// reels in memory, in slices that are thrown away as they get too old. On
// Trigger the kept frames go to the real sink, followed by all later ones.
package preroll

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

// Sink is what takes the recording once it has begun; *reel.Writer is one.
type Sink interface {
	Append(*reel.Reader) error // all frames of another reel
	WriteFrame(lab.Frame) error
	WriteGap(lab.Gap) error
	WriteEvent(lab.SourceEvent) error
}

// Options of a pre-roll.
type Options struct {
	Format lab.Format
	Length time.Duration // how far back; default 5 s
	// Limit bounds the compressed bytes kept; older frames go first. Default 512 MiB.
	Limit int
}

// Ring keeps the last frames; it is a capture.Sink.
type Ring struct {
	o    Options
	sink Sink

	mu     sync.Mutex
	want   bool // Trigger was called
	begun  bool // the kept frames have gone to sink
	slices []*slice
	drop   int // frames thrown away for Limit before their time
}

// slice is a reel in memory of a part of the time.
type slice struct {
	data        bytes.Buffer
	w           *reel.Writer
	first, last lab.Time
	frames      int
}

// parts is how many slices the length is cut into: what is kept is between
// one and 1 + 1/parts times the length.
const parts = 8

// New returns a ring in front of sink.
func New(sink Sink, o Options) (*Ring, error) {
	if err := o.Format.Validate(); err != nil {
		return nil, fmt.Errorf("pre-roll: %w", err)
	}
	if o.Length <= 0 {
		o.Length = 5 * time.Second
	}
	if o.Limit <= 0 {
		o.Limit = 512 << 20
	}
	return &Ring{o: o, sink: sink}, nil
}

// Trigger begins the recording: with the next frame, the kept ones are
// written first. It may be called from anywhere, and again.
func (r *Ring) Trigger() {
	r.mu.Lock()
	r.want = true
	r.mu.Unlock()
}

// Begun says that the recording has begun: the sink has what was kept.
func (r *Ring) Begun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// Dropped returns the frames that were thrown away before their time because
// of Options.Limit.
func (r *Ring) Dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drop
}

// WriteFrame keeps a frame, or passes it on once the recording has begun.
func (r *Ring) WriteFrame(f lab.Frame) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.want && !r.begun {
		if err := r.flush(); err != nil {
			return fmt.Errorf("pre-roll: %w", err)
		}
		r.begun = true
	}
	if r.begun {
		return r.sink.WriteFrame(f)
	}
	return r.keep(f)
}

// WriteGap keeps a gap with the frames, or passes it on.
func (r *Ring) WriteGap(g lab.Gap) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun {
		return r.sink.WriteGap(g)
	}
	if n := len(r.slices); n > 0 {
		return r.slices[n-1].w.WriteGap(g)
	}
	return nil // nothing is kept that it could be a gap in
}

// WriteEvent keeps what happened to the source with the frames, or passes it on.
func (r *Ring) WriteEvent(e lab.SourceEvent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun {
		return r.sink.WriteEvent(e)
	}
	if n := len(r.slices); n > 0 {
		return r.slices[n-1].w.WriteEvent(e)
	}
	return nil // it happened before the first frame
}

// keep adds a frame to the newest slice.
func (r *Ring) keep(f lab.Frame) error {
	n := len(r.slices)
	if n == 0 || f.Time.Sub(r.slices[n-1].first) >= r.o.Length/parts {
		s := &slice{first: f.Time}
		if n > 0 && f.Time.Sub(r.slices[0].last) > r.o.Length {
			s = r.slices[0] // its memory is used again
			r.slices = append(r.slices[:0], r.slices[1:]...)
			s.data.Reset()
			s.first, s.frames = f.Time, 0
		}
		w, err := reel.NewWriter(&s.data, reel.Header{Format: r.o.Format})
		if err != nil {
			return err
		}
		s.w = w
		r.slices = append(r.slices, s)
		n = len(r.slices)
	}
	s := r.slices[n-1]
	if err := s.w.WriteFrame(f); err != nil {
		return err
	}
	s.last = f.Time
	s.frames++
	for total := r.bytes(); total > r.o.Limit && len(r.slices) > 1; total = r.bytes() {
		r.drop += r.slices[0].frames
		r.slices = append(r.slices[:0], r.slices[1:]...)
	}
	return nil
}

func (r *Ring) bytes() int {
	total := 0
	for _, s := range r.slices {
		total += s.data.Len()
	}
	return total
}

// flush writes the kept frames to the sink and forgets them. They are not
// compressed again: the screen does not wait while this happens.
func (r *Ring) flush() error {
	for _, s := range r.slices {
		if err := s.w.Close(); err != nil {
			return err
		}
		kept, err := reel.NewReader(bytes.NewReader(s.data.Bytes()), int64(s.data.Len()))
		if err != nil {
			return err
		}
		if err := r.sink.Append(kept); err != nil {
			return err
		}
		*s = slice{}
	}
	r.slices = nil
	return nil
}
