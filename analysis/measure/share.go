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
	free   chan []byte // memory for frames in one piece
}

// shot is a decoded frame.
type shot struct {
	frame int
	rows  [][]byte // nil: the recording has none
	moves []lab.Move
	err   error
	users atomic.Int32

	once sync.Once
	pix  []byte // in one piece: of a recording with rows, for walks that ask
}

// Frames that are kept decoded at most, and those that wait for a walk.
const (
	sharedFrames = 6
	sharedAhead  = 3
)

// view is the frames as one walk sees them; it implements visual.Frames and visual.RowFrames.
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
	for _, i := range slices.Compact(slices.Clone(s.last)) {
		one := &shot{frame: i, pix: <-s.free}
		one.users.Store(int32(len(s.views)))
		s.read(one)
		err := one.err // one is the walks' from here on
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

// read decodes a frame: as rows, or else into memory of its own.
func (s *shared) read(one *shot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.frames.(visual.RowFrames); ok {
		if one.rows, one.moves, one.err = f.Rows(one.frame); one.err != nil || one.rows != nil {
			return
		}
	}
	pix, err := s.frames.Pixels(one.frame)
	one.pix, one.err = append(one.pix[:0], pix...), err
}

// flat returns a frame in one piece.
func (one *shot) flat() ([]byte, error) {
	if one.rows != nil {
		one.once.Do(func() {
			one.pix = one.pix[:0]
			for _, row := range one.rows {
				one.pix = append(one.pix, row...)
			}
		})
	}
	return one.pix, one.err
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

// Pixels returns a frame in one piece.
func (v *view) Pixels(i int) ([]byte, error) {
	one, err := v.shot(i)
	if err != nil {
		return nil, err
	}
	if one == nil {
		return v.alone(i)
	}
	return one.flat()
}

// Rows returns a frame's rows, and what is known of where they stood; nil rows for one that this walk alone looks
// back or ahead at. It implements visual.RowFrames.
func (v *view) Rows(i int) ([][]byte, []lab.Move, error) {
	one, err := v.shot(i)
	if err != nil || one == nil {
		return nil, nil, err
	}
	if one.frame != i { // equal to a frame before, whose moves are not its own
		return one.rows, nil, nil
	}
	return one.rows, one.moves, nil
}

// shot returns a frame that is shared, nil for one that this walk alone looks back or ahead at.
func (v *view) shot(i int) (*shot, error) {
	k := i - v.s.start
	if k < 0 || k >= len(v.s.last) {
		return nil, nil
	}
	at := v.s.last[k]
	for {
		switch {
		case v.cur != nil && v.cur.frame == at:
			return v.cur, v.cur.err
		case v.before != nil && v.before.frame == at:
			return v.before, v.before.err
		case v.cur != nil && v.cur.frame > at:
			return nil, nil
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
