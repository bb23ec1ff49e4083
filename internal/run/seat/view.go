package seat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/analysis/visual"
	"eidetic/capture/diff"
	"eidetic/capture/mjpeg"
	"eidetic/internal/lab"
	"eidetic/internal/run/drive"
)

const (
	// MostViews is how many may look at one device at the same time.
	MostViews = 8
	// viewPeriod is the shortest time from one update to the next; during a run on this box it is measuredPeriod, so that what
	// is measured has the processor.
	viewPeriod     = 25 * time.Millisecond
	measuredPeriod = time.Second
	// filmPeriod is how often the film of a run or an errand is looked for.
	filmPeriod = 250 * time.Millisecond
	// freshTime is for how long an update that was made for one view serves others: theirs is no older.
	freshTime = 2 * viewPeriod

	quality     = 85
	mostColours = 256 // of a part that is kept exact
	encoders    = 2   // at the same time
)

// ErrManyViews is for one more than MostViews.
var ErrManyViews = fmt.Errorf("%d look at the device already: close another window of it first", MostViews) // constant

// View is how one person looks at the device for a while. It is for one goroutine.
type View struct {
	seat   *Seat
	who    string
	screen *drive.Screen // that of the update before
	after  int           // changes of it
	film   time.Time     // of the picture of a film before
	began  time.Time     // the update before to be made
}

// View has somebody begin to look; the caller closes it. The error is [ErrManyViews] or [lab.ErrShare].
func (s *Seat) View(who string) (*View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for _, one := range s.views {
		if one == who {
			own++
		}
	}
	if err := lab.Room(len(s.views), own, MostViews, ErrManyViews); err != nil {
		return nil, err
	}
	s.views = append(s.views, who)
	return &View{seat: s, who: who}, nil
}

// Close ends looking.
func (v *View) Close() {
	s := v.seat
	s.eyes.Lock()
	defer s.eyes.Unlock()
	s.mu.Lock()
	i := slices.Index(s.views, v.who)
	s.views = slices.Delete(s.views, i, i+1)
	s.mu.Unlock()
	if s.screen != nil {
		s.looked = time.Now()
		after(&s.unseen, lookTime, s.tidy)
	}
}

// Next waits until there is something new, and returns all of it: who is slow misses what was in between. After an error
// the next update has the whole picture.
func (v *View) Next(ctx context.Context) (lab.LiveUpdate, error) {
	period := viewPeriod
	if v.seat.isMeasured() {
		period = measuredPeriod
	}
	err := lab.Wait(ctx, time.Until(v.began.Add(period)))
	for err == nil {
		var u lab.LiveUpdate
		var ok bool
		if u, ok, err = v.look(ctx); err == nil && ok {
			return u, nil
		}
	}
	v.screen, v.film = nil, time.Time{}
	return lab.LiveUpdate{}, err
}

// look waits for what is new on the screen; without ok there is nothing, or somebody else has the screen now.
func (v *View) look(ctx context.Context) (u lab.LiveUpdate, ok bool, err error) {
	s := v.seat
	screen, err := s.open(ctx)
	var shown *filmedError
	if errors.As(err, &shown) {
		v.screen = nil
		return v.lookAtFilm(ctx, shown)
	}
	if err != nil {
		return u, false, err
	}
	if screen != v.screen {
		v.screen, v.after, v.film = screen, 0, time.Time{}
	}
	first := ctx
	if v.after == 0 {
		var cancel context.CancelFunc
		first, cancel = context.WithTimeoutCause(ctx, firstPicture, errors.New("the screen shows nothing"))
		defer cancel()
	}
	if _, err = screen.Changed(first, v.after); err == nil {
		v.began = time.Now()
		u, v.after, err = s.update(screen, v.after)
	}
	switch {
	case err == nil:
		return u, len(u.Parts) > 0 || u.Move != nil, nil
	case first.Err() != nil:
		return u, false, context.Cause(first)
	case s.lost(screen):
		return u, false, err
	}
	return u, false, nil // a run or an errand has taken it
}

// lost closes a screen that has failed, and says whether it was the seat's still.
func (s *Seat) lost(screen *drive.Screen) bool {
	s.eyes.Lock()
	defer s.eyes.Unlock()
	if s.screen != screen {
		return false
	}
	s.shut()
	return true
}

func (v *View) lookAtFilm(ctx context.Context, shown *filmedError) (u lab.LiveUpdate, ok bool, err error) {
	p, err := v.seat.lookAtFilm(shown)
	if err != nil {
		return u, false, err
	}
	if p.made.Equal(v.film) {
		return u, false, lab.Wait(ctx, filmPeriod)
	}
	v.film, v.began = p.made, time.Now()
	whole := lab.LivePart{Area: image.Rectangle{Max: p.size}, Type: "image/png", Bytes: p.PNG}
	return lab.LiveUpdate{Size: p.size, Run: p.Run, Parts: []lab.LivePart{whole}}, true, nil
}

// newest is the update that was made last: several who look share it.
type newest struct {
	mu       sync.Mutex // held while one is made: one at a time is
	screen   *drive.Screen
	from, to int // changes
	made     time.Time
	update   lab.LiveUpdate
	copies   [2]drive.Copy // of the update's picture, and of the one before
	finder   diff.Finder
	mover    diff.Mover
	buffers  buffers
}

// forget lets the pictures go of a screen that is closed.
func (n *newest) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.screen, n.update, n.copies = nil, lab.LiveUpdate{}, [2]drive.Copy{}
}

// has says whether the update that was made last fits a view that has seen so many changes. A move fits only the picture
// that it was made from.
func (n *newest) has(screen *drive.Screen, after int) bool {
	return n.screen == screen && time.Since(n.made) < freshTime &&
		(n.from == after || n.from < after && after < n.to && n.update.Move == nil)
}

// update returns what has changed after so many changes, and how many there are with it.
func (s *Seat) update(screen *drive.Screen, after int) (lab.LiveUpdate, int, error) {
	n := &s.newest
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.has(screen, after) {
		return n.update, n.to, nil
	}
	if n.screen != screen {
		n.screen, n.copies = screen, [2]drive.Copy{}
	}
	n.copies[0], n.copies[1] = n.copies[1], n.copies[0]
	now, before := &n.copies[0], &n.copies[1]
	n.made = time.Time{} // until it is
	times, areas := screen.Since(after, now)
	f := screen.Format()
	u := lab.LiveUpdate{Size: image.Pt(f.Width, f.Height)}
	if len(times) > 0 {
		u.Taken = times[len(times)-1]
	}
	if f.Pixels == lab.MJPEG {
		code := mjpeg.WithTables(bytes.Clone(now.Pix))
		if mjpeg.Check(code, f) == nil { // a damaged one is left out
			u.Parts = []lab.LivePart{{Area: f.Bounds(), Type: "image/jpeg", Bytes: code}}
		}
	} else {
		u.Changes = times
		if after > 0 && before.Count == after {
			u.Move, areas = n.moved(f, before.Pix, now.Pix, areas)
		}
		var err error
		if u.Parts, err = n.buffers.parts(f, now.Pix, areas); err != nil {
			return u, 0, err
		}
	}
	n.from, n.to, n.made, n.update = after, now.Count, time.Now(), u
	return u, now.Count, nil
}

// moved looks for scrolling: if at least half of the changed rows stood higher or lower in the picture before, it returns
// their move, and the areas that are still to be drawn after it.
func (n *newest) moved(f lab.Format, before, now []byte, areas []image.Rectangle) (*lab.Move, []image.Rectangle) {
	planes := diff.Planes(f)
	if len(planes) != 1 {
		return nil, areas
	}
	p := planes[0]
	var all, r image.Rectangle // r bounds all differences, in the plane's units
	for _, a := range areas {
		all = all.Union(a)
	}
	if all.Dy() < leastMoved {
		return nil, areas
	}
	for _, c := range n.finder.Plane(nil, p, before, now, p.FromPixels(all)) {
		r = r.Union(c)
	}
	by := n.mover.Find(p, before, now, r)
	if by == 0 {
		return nil, areas
	}
	is := func(y int) bool {
		return y+by >= 0 && y+by < p.Rows && bytes.Equal(p.Row(now, y, r.Min.X, r.Max.X), p.Row(before, y+by, r.Min.X, r.Max.X))
	}
	move, rows := image.Rectangle{image.Pt(r.Min.X, r.Max.Y), image.Pt(r.Max.X, r.Min.Y)}, 0
	var left []image.Rectangle // bands of rows
	for y := r.Min.Y; y < r.Max.Y; {
		from, moved := y, is(y)
		for y++; y < r.Max.Y && is(y) == moved; y++ {
		}
		if last := len(left) - 1; moved && y-from >= leastMoved {
			move.Min.Y, move.Max.Y, rows = min(move.Min.Y, from), y, rows+y-from
		} else if last >= 0 && left[last].Max.Y == from {
			left[last].Max.Y = y
		} else {
			left = append(left, image.Rect(r.Min.X, from, r.Max.X, y))
		}
	}
	if rows < r.Dy()/2 {
		return nil, areas
	}
	var draw []image.Rectangle
	for _, band := range left {
		b := p.ToPixels(band).Intersect(f.Bounds())
		if band.In(move) { // the move spoils it, also where it has not changed
			draw = append(draw, b)
			continue
		}
		for _, a := range areas {
			if a = a.Intersect(b); !a.Empty() {
				draw = append(draw, a)
			}
		}
	}
	return &lab.Move{R: p.ToPixels(move), DY: by * p.SY}, draw
}

// leastMoved is the fewest rows in a row that are moved.
const leastMoved = 16

// buffers are those of PNG's encoders, which are large.
type buffers struct{ pool sync.Pool }

// Get implements [png.EncoderBufferPool].
func (b *buffers) Get() *png.EncoderBuffer {
	e, _ := b.pool.Get().(*png.EncoderBuffer)
	return e
}

// Put implements [png.EncoderBufferPool].
func (b *buffers) Put(e *png.EncoderBuffer) { b.pool.Put(e) }

// parts are the areas of a picture.
func (b *buffers) parts(f lab.Format, pix []byte, areas []image.Rectangle) ([]lab.LivePart, error) {
	parts := make([]lab.LivePart, len(areas))
	var group errgroup.Group
	group.SetLimit(encoders)
	for i, area := range areas {
		group.Go(func() (err error) {
			p, err := visual.PictureOf(f, pix, area)
			if err == nil {
				parts[i], err = b.encode(p)
			}
			return err
		})
	}
	return parts, group.Wait()
}

// jpegEncoder writes parts of many colours.
var jpegEncoder = sync.OnceValues(func() (*mjpeg.Encoder, error) { return mjpeg.NewEncoder(quality) }) // constant

// encode writes a part: one of few colours, such as text, exactly.
func (b *buffers) encode(p *visual.Picture) (part lab.LivePart, err error) {
	part.Area = p.Area
	if few := paletted(p); few != nil {
		var out bytes.Buffer
		part.Type = "image/png"
		err = (&png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: b}).Encode(&out, few)
		part.Bytes = out.Bytes()
		return part, err
	}
	part.Type = "image/jpeg"
	e, err := jpegEncoder()
	if err == nil {
		part.Bytes, err = e.Encode(p.Pix, p.Area.Dx())
	}
	return part, err
}

// paletted is a picture of few colours; nil for another one.
func paletted(p *visual.Picture) *image.Paletted {
	img := image.NewPaletted(image.Rectangle{Max: p.Area.Size()}, nil)
	index := make(map[uint32]uint8, mostColours)
	var last uint32
	var at uint8
	for i, c := range p.Pix {
		if i == 0 || c != last {
			known, ok := index[c]
			if !ok {
				if len(index) == mostColours {
					return nil
				}
				known = uint8(len(index))
				index[c] = known
				img.Palette = append(img.Palette, color.RGBA{byte(c >> 16), byte(c >> 8), byte(c), 255})
			}
			last, at = c, known
		}
		img.Pix[i] = at
	}
	return img
}
