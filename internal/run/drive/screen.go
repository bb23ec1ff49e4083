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
	"eidetic/capture/diff"
	"eidetic/capture/mjpeg"
	"eidetic/internal/lab"
)

// Screen is what a device shows now: the newest picture of a source, when it changed, and where.
type Screen struct {
	source capture.Source
	format lab.Format
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	pix   []byte
	last  lab.Time // up to when the screen is known
	err   error
	news  chan struct{} // closed when something has come
	count int           // of the changes
	tiles []int         // the change in which each tile changed last, in rows
	when  [Remembered]lab.Time
}

const (
	// Remembered is how many of the newest changes are known by their time.
	Remembered = 64
	// tileSize is the side in pixels of what is said to have changed.
	tileSize = 64
)

// Watch begins to watch a source, which it takes over.
func Watch(ctx context.Context, source capture.Source) *Screen {
	ctx, cancel := context.WithCancel(ctx)
	s := &Screen{source: source, format: source.Format(), cancel: cancel, done: make(chan struct{}), news: make(chan struct{})}
	size := s.grid()
	s.tiles = make([]int, size.X*size.Y)
	go s.read(ctx)
	return s
}

// grid is how many tiles there are in each direction.
func (s *Screen) grid() image.Point {
	return image.Pt((s.format.Width+tileSize-1)/tileSize, (s.format.Height+tileSize-1)/tileSize)
}

func (s *Screen) read(ctx context.Context) {
	defer close(s.done)
	var finder diff.Finder
	for {
		frame, err := s.source.Next(ctx)
		var interruption *capture.Interruption
		if errors.As(err, &interruption) && interruption.Ends == nil {
			continue
		}
		changed := frame.Changed
		switch {
		case err != nil || len(changed) == 0 && s.pix != nil:
		case s.pix == nil:
			changed = []image.Rectangle{s.bounds()}
		case s.format.Pixels != lab.MJPEG: // a source may say that more has changed
			changed = finder.Frame(nil, s.format, s.pix, frame.Pix, changed)
		}
		s.mu.Lock()
		if s.err = err; err == nil {
			if len(changed) > 0 {
				s.keep(frame.Pix, changed)
				s.count++
				s.when[s.count%Remembered] = frame.Time
				s.mark(changed)
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

// keep takes over what has changed of a picture.
func (s *Screen) keep(pix []byte, changed []image.Rectangle) {
	if s.pix == nil || s.format.Pixels == lab.MJPEG {
		s.pix = append(s.pix[:0], pix...)
		return
	}
	diff.Copy(s.format, s.pix, pix, changed)
}

// mark notes that areas have changed now.
func (s *Screen) mark(areas []image.Rectangle) {
	across := s.grid().X
	for _, r := range areas {
		r = r.Intersect(s.bounds())
		for y := r.Min.Y / tileSize; y*tileSize < r.Max.Y; y++ {
			for x := r.Min.X / tileSize; x*tileSize < r.Max.X; x++ {
				s.tiles[y*across+x] = s.count
			}
		}
	}
}

// state is what is known now, and what is closed when more is known.
func (s *Screen) state() (changed, last lab.Time, news chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.when[s.count%Remembered], s.last, s.news, s.err
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
	f := s.format
	if f.Pixels == lab.MJPEG {
		code := pix
		f.Pixels = lab.BGRX
		pix = make([]byte, f.FrameSize())
		if err := mjpeg.Decode(pix, code, f); err != nil {
			return nil, fmt.Errorf("the screen: %w", err)
		}
	}
	return visual.PictureOf(f, pix, s.bounds())
}

// Picture returns the newest picture, and when it changed. It waits for the first one.
func (s *Screen) Picture(ctx context.Context) (*visual.Picture, lab.Time, error) {
	p, err := s.picture(ctx, 0)
	changed, _, _, _ := s.state()
	return p, changed, err
}

// Format is that of the source.
func (s *Screen) Format() lab.Format { return s.format }

// Changed waits until more than so many changes were seen, and returns how many there are now.
func (s *Screen) Changed(ctx context.Context, after int) (int, error) {
	for {
		s.mu.Lock()
		count, news, err := s.count, s.news, s.err
		s.mu.Unlock()
		switch {
		case err != nil:
			return count, fmt.Errorf("the screen: %w", err)
		case count > after:
			return count, nil
		}
		if err := s.await(ctx, news); err != nil {
			return count, err
		}
	}
}

// Copy is a copy of a screen's newest picture, which Since brings up to date. Its zero value has nothing yet.
type Copy struct {
	Pix   []byte // in the screen's format
	Count int    // of the changes that it has
}

// Since brings a copy up to date. It returns what has changed after so many changes: the times of the newest of them, in
// order, and the areas.
func (s *Screen) Since(after int, c *Copy) (times []lab.Time, areas []image.Rectangle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := max(after, s.count-Remembered) + 1; i <= s.count; i++ {
		times = append(times, s.when[i%Remembered])
	}
	if c.Count == 0 || s.format.Pixels == lab.MJPEG {
		c.Pix = append(c.Pix[:0], s.pix...)
	} else {
		diff.Copy(s.format, c.Pix, s.pix, s.areas(c.Count))
	}
	c.Count = s.count
	return times, s.areas(after)
}

// areas are those of the tiles that changed after so many changes: what lies side by side is one, and so are equal ones
// one below the other, up to a height that lets several be encoded at the same time.
func (s *Screen) areas(after int) (out []image.Rectangle) {
	const highest = 4 * tileSize
	size := s.grid()
	above := 0 // where the areas of the row above begin
	for y := range size.Y {
		row := len(out)
		for x := 0; x < size.X; x++ {
			from := x
			for x < size.X && s.tiles[y*size.X+x] > after {
				x++
			}
			if x > from {
				out = append(out, image.Rect(from, y, x, y+1))
			}
		}
		if same := out[above:row]; len(same) == len(out)-row && len(same) > 0 && (same[0].Dy()+1)*tileSize <= highest &&
			slices.EqualFunc(same, out[row:], func(a, b image.Rectangle) bool {
				return a.Min.X == b.Min.X && a.Max == image.Pt(b.Max.X, b.Min.Y)
			}) {
			for i := range same {
				same[i].Max.Y++
			}
			out = out[:row]
			continue
		}
		above = row
	}
	for i, r := range out {
		out[i] = image.Rectangle{r.Min.Mul(tileSize), r.Max.Mul(tileSize)}.Intersect(s.bounds())
	}
	return out
}

func (s *Screen) bounds() image.Rectangle { return s.format.Bounds() }

// Close ends watching.
func (s *Screen) Close() error {
	s.cancel()
	<-s.done
	return s.source.Close()
}
