package rfb

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"sync"
	"time"

	"eidetic/internal/base/rfb"
	"eidetic/internal/lab"
)

// feed reads what the server sends, in a goroutine of its own, and holds a
// picture that is always whole: an update enters it in one piece.
type feed struct {
	conn   *rfb.Conn
	clock  lab.Clock
	bounds image.Rectangle

	complete chan struct{} // closed when every pixel has come once
	done     chan struct{} // closed when the reader has ended
	signs    chan struct{} // has an element after a sign of the server

	mu      sync.Mutex // guards what follows
	pix     []byte
	changed []image.Rectangle
	able    abilities
	asked   []request // signs that are awaited, oldest first
	count   uint64    // signs that were asked for
	last    lab.Time  // when the newest of them was
	known   lab.Time  // the picture is not older
	err     error
}

// abilities is what a server offers.
type abilities struct{ fences, continuous bool }

// request is a sign that was asked for.
type request struct {
	id     uint64
	at     lab.Time
	before lab.Time // when the one before was asked for
	pixel  image.Point
}

// resized is the error that ends a feed when the screen's size changes.
type resized struct{ width, height int }

func (r resized) Error() string {
	return fmt.Sprintf("%v: it is %d×%d now", ErrResolution, r.width, r.height)
}
func (r resized) Unwrap() error { return ErrResolution }

func newFeed(conn *rfb.Conn, screen *rfb.Screen, clock lab.Clock) *feed {
	f := &feed{
		conn: conn, clock: clock, bounds: screen.Bounds(),
		complete: make(chan struct{}), done: make(chan struct{}), signs: make(chan struct{}, 1),
		pix: bytes.Clone(screen.Pix),
	}
	f.known = clock()
	f.last = f.known
	go f.read(screen)
	return f
}

// read takes message after message.
func (f *feed) read(s *rfb.Screen) {
	defer close(f.done)
	missing := &coverage{missing: f.bounds.Dx() * f.bounds.Dy(), seen: make([]bool, f.bounds.Dx()*f.bounds.Dy()), width: f.bounds.Dx()}
	for {
		m, err := f.conn.Read(s)
		if err == nil && s.Resized {
			err = resized{s.Width, s.Height}
		}
		if err == nil {
			err = f.message(m, s)
		}
		if err != nil {
			f.mu.Lock()
			f.err = err
			f.mu.Unlock()
			return
		}
		if missing != nil && missing.add(s.Changed, f.conn.IsClosed) {
			missing = nil
			close(f.complete)
		}
		s.Settle()
	}
}

// message acts on what was read.
func (f *feed) message(m rfb.Message, s *rfb.Screen) error {
	switch m.Kind {
	case rfb.FenceAsked:
		f.mu.Lock()
		news := !f.able.fences
		f.able.fences = true
		f.mu.Unlock()
		if news {
			return f.conn.Send(rfb.AppendRequest(nil, true, f.bounds))
		}
	case rfb.Continuous:
		f.mu.Lock()
		f.able.continuous = !f.able.continuous // the first offers, another ends them
		on := f.able.continuous
		f.mu.Unlock()
		b := rfb.AppendRequest(nil, true, f.bounds)
		if on {
			b = rfb.AppendContinuous(nil, true, f.bounds)
		}
		return f.conn.Send(b)
	case rfb.FenceAnswer:
		return f.answered(m.Fence)
	case rfb.Update:
		able := f.update(s)
		// A request that was answered without pixels is used up all the same.
		if !able.continuous && (able.fences || !m.Pixels) {
			return f.conn.Send(rfb.AppendRequest(nil, true, f.bounds))
		}
	}
	return nil
}

// answered notes the answer to a fence. They come in order.
func (f *feed) answered(id uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.asked) > 0 {
		r := f.asked[0]
		if r.id > id {
			break
		}
		f.asked = f.asked[1:]
		if r.id == id {
			f.known = r.at
			f.signal()
			return nil
		}
	}
	return errors.New("the server answered a fence that it was not asked for")
}

// update takes the screen over.
func (f *feed) update(s *rfb.Screen) abilities {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range s.Changed {
		f.copy(s.Pix, r)
	}
	if len(f.asked) > 0 && !f.able.fences {
		// The server may have sent this before it saw the request, if it
		// answers the two halves of a request one after another: so it is only known to
		// be later than the one before.
		if r := f.asked[0]; covers(s.Changed, r.pixel) {
			f.known, f.asked = r.before, f.asked[:0]
			f.signal()
		}
	}
	return f.able
}

// copy takes over the rows of r that differ, and notes them as changed.
func (f *feed) copy(src []byte, r image.Rectangle) {
	stride := 4 * f.bounds.Dx()
	first, last := -1, 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		at, end := y*stride+4*r.Min.X, y*stride+4*r.Max.X
		if bytes.Equal(f.pix[at:end], src[at:end]) {
			continue
		}
		copy(f.pix[at:end], src[at:end])
		if last = y; first < 0 {
			first = y
		}
	}
	if first < 0 {
		return
	}
	r.Min.Y, r.Max.Y = first, last+1
	const most = 256
	if len(f.changed) == most {
		for _, old := range f.changed {
			r = r.Union(old)
		}
		f.changed = f.changed[:0]
	}
	f.changed = append(f.changed, r)
}

// signal wakes whoever waits for signs.
func (f *feed) signal() {
	select {
	case f.signs <- struct{}{}:
	default:
	}
}

// ask asks the server for a sign of life that keeps its place among the updates.
func (f *feed) ask() error {
	// More unanswered requests than that tell nothing more.
	const most = 64
	f.mu.Lock()
	fences := f.able.fences
	if len(f.asked) >= most || len(f.asked) > 0 && !fences {
		f.mu.Unlock()
		return nil
	}
	f.count++
	r := request{id: f.count, at: f.clock(), before: f.last}
	f.last = r.at
	// Another pixel each time, so that an answer to the one before is not taken for this one's.
	r.pixel = image.Pt(int(f.count*7919%uint64(f.bounds.Dx())), int(f.count*104729%uint64(f.bounds.Dy())))
	f.asked = append(f.asked, r)
	f.mu.Unlock()
	if fences {
		return f.conn.Send(rfb.AppendFence(nil, r.id))
	}
	b := rfb.AppendRequest(nil, true, f.bounds)
	return f.conn.Send(rfb.AppendRequest(b, false, image.Rectangle{Min: r.pixel, Max: r.pixel.Add(image.Pt(1, 1))}))
}

// take brings pix up to date, and returns what changed and since when it is known.
func (f *feed) take(pix []byte, rects []image.Rectangle) ([]image.Rectangle, lab.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stride := 4 * f.bounds.Dx()
	for _, r := range f.changed {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			at, end := y*stride+4*r.Min.X, y*stride+4*r.Max.X
			copy(pix[at:end], f.pix[at:end])
		}
	}
	rects = append(rects, f.changed...)
	f.changed = f.changed[:0]
	return rects, f.known, f.failed()
}

func (f *feed) can() abilities {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.able
}

// waiting says whether a sign is awaited.
func (f *feed) waiting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked) > 0
}

// silence is for how long the oldest sign has been awaited.
func (f *feed) silence(now lab.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return 0
	}
	return now.Sub(f.asked[0].at)
}

func (f *feed) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed()
}

func (f *feed) failed() error {
	if f.err == nil || errors.Is(f.err, ErrResolution) || errors.Is(f.err, rfb.ErrNoPixels) {
		return f.err
	}
	return fmt.Errorf("%w: %w", ErrClosed, f.err)
}

// coverage knows which pixels have not come yet.
type coverage struct {
	seen    []bool
	width   int
	missing int
}

// add notes rectangles and says whether no pixel is missing. It leaves the rest out once nobody wants to know.
func (c *coverage) add(rects []image.Rectangle, isClosed func() bool) bool {
	for _, r := range rects {
		if isClosed() {
			return false
		}
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for i := y*c.width + r.Min.X; i < y*c.width+r.Max.X; i++ {
				if !c.seen[i] {
					c.seen[i] = true
					c.missing--
				}
			}
		}
	}
	return c.missing == 0
}

func covers(rects []image.Rectangle, p image.Point) bool {
	for _, r := range rects {
		if p.In(r) {
			return true
		}
	}
	return false
}
