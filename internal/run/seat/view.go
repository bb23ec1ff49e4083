package seat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/analysis/visual"
	"eidetic/capture/mjpeg"
	"eidetic/internal/lab"
	"eidetic/internal/run/drive"
)

const (
	// MostViews is how many may look at one device at the same time.
	MostViews = 8
	// viewPeriod is the shortest time between two updates; during a run on this box it is measuredPeriod, so that what
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
	screen *drive.Screen // that of the update before
	after  int           // changes of it
	film   time.Time     // of the picture of a film before
	made   time.Time     // the update before
}

// View begins to look; the caller closes it.
func (s *Seat) View() (*View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.views >= MostViews {
		return nil, ErrManyViews
	}
	s.views++
	return &View{seat: s}, nil
}

// Close ends looking.
func (v *View) Close() {
	s := v.seat
	s.eyes.Lock()
	defer s.eyes.Unlock()
	s.mu.Lock()
	s.views--
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
	err := lab.Wait(ctx, time.Until(v.made.Add(period)))
	for err == nil {
		var u lab.LiveUpdate
		var ok bool
		if u, ok, err = v.look(ctx); err == nil && ok {
			v.made = time.Now()
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
		u, v.after, err = s.update(screen, v.after)
	}
	switch {
	case err == nil:
		return u, len(u.Parts) > 0, nil
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
	v.film = p.made
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
	buffers  buffers
}

// forget lets the pictures go of a screen that is closed.
func (n *newest) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.screen, n.update = nil, lab.LiveUpdate{}
}

// update returns what has changed after so many changes, and how many there are with it.
func (s *Seat) update(screen *drive.Screen, after int) (lab.LiveUpdate, int, error) {
	n := &s.newest
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.screen == screen && n.from <= after && after < n.to && time.Since(n.made) < freshTime {
		return n.update, n.to, nil
	}
	count, times, areas := screen.Since(after)
	f := screen.Format()
	u := lab.LiveUpdate{Size: image.Pt(f.Width, f.Height)}
	if f.Pixels == lab.MJPEG {
		code := mjpeg.WithTables(screen.JPEG())
		if mjpeg.Check(code, f) == nil { // a damaged one is left out
			u.Parts = []lab.LivePart{{Area: f.Bounds(), Type: "image/jpeg", Bytes: code}}
		}
	} else {
		u.Changes, u.Parts = times, make([]lab.LivePart, len(areas))
		var group errgroup.Group
		group.SetLimit(encoders)
		for i, area := range areas {
			group.Go(func() (err error) {
				p, err := screen.Area(area)
				if err == nil {
					u.Parts[i], err = n.buffers.encode(p)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return u, 0, err
		}
	}
	n.screen, n.from, n.to, n.made, n.update = screen, after, count, time.Now(), u
	return u, count, nil
}

// buffers are those of PNG's encoders, which are large.
type buffers struct{ pool sync.Pool }

// Get implements [png.EncoderBufferPool].
func (b *buffers) Get() *png.EncoderBuffer {
	e, _ := b.pool.Get().(*png.EncoderBuffer)
	return e
}

// Put implements [png.EncoderBufferPool].
func (b *buffers) Put(e *png.EncoderBuffer) { b.pool.Put(e) }

// encode writes a part: one of few colours, such as text, exactly.
func (b *buffers) encode(p *visual.Picture) (lab.LivePart, error) {
	part := lab.LivePart{Area: p.Area, Type: "image/png"}
	var out bytes.Buffer
	var err error
	if few := paletted(p); few != nil {
		err = (&png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: b}).Encode(&out, few)
	} else {
		part.Type = "image/jpeg"
		err = jpeg.Encode(&out, p.Image(), &jpeg.Options{Quality: quality})
	}
	part.Bytes = out.Bytes()
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
