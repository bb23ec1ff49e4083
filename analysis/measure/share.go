package measure

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// shared lets several walks over the same frames, each on a processor of its own, decode every
// frame once. A walk that is ahead waits for the others at the end of a few frames' memory.
type shared struct {
	frames visual.Frames
	mu     sync.Mutex // of frames' pixels
	last   []int      // for each frame from start on, the last one not after it that has pixels of its own
	start  int
	views  []*view
	free   chan []byte
}

// shot is a decoded frame.
type shot struct {
	frame int
	pix   []byte
	moves []lab.Move
	err   error
	users atomic.Int32
}

// Frames that are kept decoded at most, and those that wait for a walk.
const (
	sharedFrames = 6
	sharedAhead  = 3
)

// view is the frames as one walk sees them; it implements visual.Frames.
type view struct {
	s      *shared
	queue  chan *shot
	done   chan struct{}
	cur    *shot
	before *shot // the one before cur, since some walks look back
	own    []byte
	ownAt  int
}

// each runs walks side by side, each over a view of its own, and returns the first error in their
// order. One walk alone gets the frames themselves.
func each(frames visual.Frames, start, end int, walks []func(visual.Frames) error) error {
	if len(walks) == 0 {
		return nil
	}
	if len(walks) == 1 {
		return walks[0](frames)
	}
	s := &shared{frames: frames, start: start, free: make(chan []byte, sharedFrames)}
	for range sharedFrames {
		s.free <- nil
	}
	last := start
	for i := start; i < end; i++ {
		if i == start || len(frames.Info(i).Changed) > 0 {
			last = i
		}
		s.last = append(s.last, last)
	}
	errs := make([]error, len(walks))
	var running sync.WaitGroup
	for range walks {
		s.views = append(s.views, &view{s: s, queue: make(chan *shot, sharedAhead), done: make(chan struct{}), ownAt: -1})
	}
	for i, walk := range walks {
		running.Go(func() {
			defer s.views[i].close()
			errs[i] = walk(s.views[i])
		})
	}
	running.Go(s.decode)
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// decode hands every frame with pixels of its own to all walks that go on.
func (s *shared) decode() {
	defer func() {
		for _, v := range s.views {
			close(v.queue)
		}
	}()
	var before *shot
	defer func() { s.release(before) }()
	for _, i := range slices.Compact(slices.Clone(s.last)) {
		one := &shot{frame: i}
		one.users.Store(int32(len(s.views) + 1)) // and this
		one.pix, one.moves, one.err = s.read(i, <-s.free)
		err := one.err
		s.release(before) // the decoder needed it until now
		before = one
		going := false
		for _, v := range s.views {
			select {
			case v.queue <- one:
				going = true
			case <-v.done:
				s.release(one)
			}
		}
		if !going || err != nil {
			return
		}
	}
}

// read decodes a frame into memory of its own.
func (s *shared) read(i int, buf []byte) ([]byte, []lab.Move, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pix, err := s.frames.Pixels(i)
	if err != nil {
		return buf, nil, err
	}
	moves := visual.MovesOf(s.frames, i)
	if l, ok := s.frames.(lender); ok {
		if lent := l.Lend(buf); lent != nil {
			return lent, moves, nil
		}
	}
	return append(buf[:0], pix...), moves, nil
}

func (s *shared) release(one *shot) {
	if one != nil && one.users.Add(-1) == 0 {
		s.free <- one.pix
	}
}

// close ends a walk: what waits for it is given back.
func (v *view) close() {
	close(v.done)
	v.s.release(v.cur)
	v.s.release(v.before)
	for one := range v.queue {
		v.s.release(one)
	}
}

// Format describes every frame.
func (v *view) Format() lab.Format { return v.s.frames.Format() }

// Len is the number of frames.
func (v *view) Len() int { return v.s.frames.Len() }

// Info returns what is known of frame i.
func (v *view) Info(i int) lab.FrameInfo { return v.s.frames.Info(i) }

// Pixels returns a frame that is shared, or that this walk alone looks back or ahead at.
func (v *view) Pixels(i int) ([]byte, error) {
	at := i
	if k := i - v.s.start; k >= 0 && k < len(v.s.last) {
		at = v.s.last[k]
	} else {
		return v.alone(i)
	}
	for {
		switch {
		case v.cur != nil && v.cur.frame == at:
			return v.cur.pix, v.cur.err
		case v.before != nil && v.before.frame == at:
			return v.before.pix, v.before.err
		case v.cur != nil && v.cur.frame > at:
			return v.alone(at)
		}
		one, ok := <-v.queue
		if !ok {
			if v.cur != nil && v.cur.err != nil {
				return nil, v.cur.err
			}
			return nil, fmt.Errorf("frame %d was not decoded", i)
		}
		v.s.release(v.before)
		v.before, v.cur = v.cur, one
		if one.err != nil {
			return nil, one.err
		}
	}
}

// Before returns the frame that Pixels returned before the last one, for walks that go forwards from frame
// to frame. It implements visual.LookBack.
func (v *view) Before() []byte {
	if v.before == nil {
		return nil
	}
	return v.before.pix
}

// Moves returns what is known of the frame that Pixels returned last. It implements visual.Mover.
func (v *view) Moves(i int) []lab.Move {
	if v.cur == nil || v.cur.frame != i {
		return nil
	}
	return v.cur.moves
}

// lender is a source of frames that can give their memory away.
type lender interface {
	Lend(spare []byte) []byte
}

// alone reads a frame for this walk.
func (v *view) alone(i int) ([]byte, error) {
	if v.ownAt == i {
		return v.own, nil
	}
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	pix, err := v.s.frames.Pixels(i)
	if err != nil {
		return nil, err
	}
	v.own, v.ownAt = append(v.own[:0], pix...), i
	return v.own, nil
}
