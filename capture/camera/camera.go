// Package camera makes the screen of a device, which a camera looks at, a source like any other:
// the camera's pictures flow in; flow out pictures of the screen alone, upright and without the
// camera's noise, so that a screen that is still gives equal pictures.
//
// The screen must show the green synchronisation page when the source is opened. Its four corners
// give the perspective (a homography, Hartley and Zisserman, Multiple View Geometry, section 4.1);
// the pictures of the next second, in which nothing moves, give the noise: that of the sensor, from
// pixel to pixel, and that of the light, which rises and falls as a whole or in bands (mains light
// at 100 or 120 Hz, a backlight, the rolling shutter). A block of 8 × 8 pixels has changed when its
// mean leaves the band of the light, or several of its pixels the band of the noise; otherwise it
// stays as it was.
//
// What comes out is not what the screen showed, pixel for pixel, and says so in its notes.
package camera

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"time"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// Options of a camera; zero values are the usual ones.
type Options struct {
	Patience time.Duration // how long the green page is waited for; default 45 s
	Widest   int           // of the pictures that come out; default 1280 pixels
}

// Errors of a camera that looks at no screen.
var (
	// ErrNoPage: the green page was not seen.
	ErrNoPage = errors.New("the camera does not see the green page: is it pointed at the screen, and the screen's brightness up?")
	errFormat = errors.New("the camera delivers compressed pictures: ask it for YUYV or NV12")
)

const (
	block     = 8  // side of the squares that change as a whole
	sightings = 5  // of the page, whose corners are averaged
	learning  = 20 // pictures of the page that give the noise, at least
)

// Source is a capture.Source over the source of the camera's pictures.
type Source struct {
	from   capture.Source
	format lab.Format
	read   reader
	places []int32 // in the camera's picture, of each pixel that comes out
	pix    []byte  // what was delivered last, BGRX
	fresh  []byte  // scratch
	first  bool    // nothing was delivered yet
	page   [3]float64
	noise  Noise
	moves  []bool // scratch: of each block
	quad   Quad
	period time.Duration
}

// Noise is what the camera sees of a screen that does not change.
type Noise struct {
	Pixel float64 // standard deviation of a pixel's green, of 255
	Light float64 // span of a block's mean, as a share of it
}

var _ capture.Source = (*Source)(nil)

// Open finds the screen and learns the noise; it takes the camera over.
func Open(ctx context.Context, from capture.Source, o Options) (*Source, error) {
	s, err := open(ctx, from, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("camera: %w", err), from.Close())
	}
	return s, nil
}

func open(ctx context.Context, from capture.Source, o Options) (*Source, error) {
	if o.Patience == 0 {
		o.Patience = 45 * time.Second
	}
	if o.Widest == 0 {
		o.Widest = 1280
	}
	f := from.Format()
	s := &Source{from: from, first: true, read: newReader(f), period: time.Duration(float64(time.Second) / f.Rate)}
	if s.read == nil {
		return nil, errFormat
	}
	limited, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	if err := s.find(limited); err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			return nil, ErrNoPage
		}
		return nil, err
	}
	if err := s.rectify(f, o.Widest); err != nil {
		return nil, err
	}
	return s, s.learn(ctx)
}

// next returns the camera's next picture, whatever happens between.
func (s *Source) next(ctx context.Context) (lab.Frame, error) {
	for {
		f, err := s.from.Next(ctx)
		var other *capture.Interruption
		if errors.As(err, &other) && other.Ends == nil {
			continue
		}
		return f, err
	}
}

// find looks until the page's corners stand still.
func (s *Source) find(ctx context.Context) error {
	var seen []Quad
	for len(seen) < sightings {
		f, err := s.next(ctx)
		if err != nil {
			return err
		}
		q, ok := findQuad(s.from.Format(), s.read, f.Pix)
		if !ok || len(seen) > 0 && q.distance(seen[len(seen)-1]) > 2 {
			seen = seen[:0]
		}
		if ok {
			seen = append(seen, q)
		}
	}
	for i := range s.quad {
		for _, q := range seen {
			s.quad[i].X += q[i].X / sightings
			s.quad[i].Y += q[i].Y / sightings
		}
	}
	return nil
}

// rectify computes where each pixel of the screen lies in the camera's pictures.
func (s *Source) rectify(f lab.Format, widest int) error {
	q := s.quad
	w := max(q[0].to(q[1]), q[3].to(q[2]))
	h := max(q[0].to(q[3]), q[1].to(q[2]))
	scale := min(1, float64(widest)/max(w, h))
	width, height := int(w*scale)/block*block, int(h*scale)/block*block
	if width < 8*block || height < 8*block {
		return fmt.Errorf("the screen covers %.0f × %.0f pixels of the camera's picture: move the camera closer", w, h)
	}
	s.format = lab.Format{Pixels: lab.BGRX, Width: width, Height: height, Rate: f.Rate}
	m, err := homography(width, height, q)
	if err != nil {
		return err
	}
	s.places = make([]int32, width*height)
	for y := range height {
		for x := range width {
			p := m.at(float64(x)+0.5, float64(y)+0.5)
			px, py := min(max(int(p.X), 0), f.Width-1), min(max(int(p.Y), 0), f.Height-1)
			s.places[y*width+x] = int32(py*f.Width + px)
		}
	}
	s.moves = make([]bool, width/block*height/block)
	s.pix, s.fresh = make([]byte, s.format.FrameSize()), make([]byte, s.format.FrameSize())
	return nil
}

// warp fills fresh with the screen as the camera sees it.
func (s *Source) warp(pix []byte) {
	for i, at := range s.places {
		r, g, b := s.read(pix, int(at))
		o := s.fresh[4*i:][:3]
		o[0], o[1], o[2] = b, g, r
	}
}

// learn measures the noise on the green page.
func (s *Source) learn(ctx context.Context) error {
	wanted := max(learning, int(math.Ceil(s.format.Rate)))
	blocks := s.format.Width / block * (s.format.Height / block)
	least, most := make([]float64, blocks), make([]float64, blocks)
	var before []byte
	var squares float64
	var count int
	for n := range wanted {
		f, err := s.next(ctx)
		if err != nil {
			return err
		}
		s.warp(f.Pix)
		for i := range blocks {
			mean := s.mean(i)
			for c := range mean {
				s.page[c] += mean[c] / float64(blocks*wanted)
			}
			if n == 0 {
				least[i], most[i] = mean[1], mean[1]
			}
			least[i], most[i] = min(least[i], mean[1]), max(most[i], mean[1])
		}
		if before == nil {
			before = make([]byte, len(s.fresh))
		} else {
			for i := 1; i < len(before); i += 4 {
				d := float64(before[i]) - float64(s.fresh[i])
				squares += d * d
			}
			count += len(before) / 4
		}
		copy(before, s.fresh)
	}
	for i := range blocks {
		s.noise.Light = max(s.noise.Light, (most[i]-least[i])/max(most[i], 1))
	}
	s.noise.Pixel = math.Sqrt(squares / 2 / float64(count)) // two pictures' noise
	return nil
}

// corner is the first pixel of a block.
func (s *Source) corner(i int) int {
	across := s.format.Width / block
	return i/across*block*s.format.Width + i%across*block
}

// mean is that of a block of fresh: blue, green, red.
func (s *Source) mean(i int) (sum [3]float64) {
	at := s.corner(i)
	var total [3]int
	for range block {
		row := s.fresh[4*at:][:4*block]
		for x := 0; x < 4*block; x += 4 {
			total[0] += int(row[x])
			total[1] += int(row[x+1])
			total[2] += int(row[x+2])
		}
		at += s.format.Width
	}
	for c := range sum {
		sum[c] = float64(total[c]) / (block * block)
	}
	return sum
}

// Format is that of the screen's pictures.
func (s *Source) Format() lab.Format { return s.format }

// Next returns the screen's next picture.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	f, err := s.from.Next(ctx)
	if err != nil {
		return f, err
	}
	s.warp(f.Pix)
	f.Changed = f.Changed[:0]
	if area := s.keep(); !area.Empty() {
		f.Changed = append(f.Changed, area)
	}
	if s.first {
		f.Changed, s.first = []image.Rectangle{s.format.Bounds()}, false
	}
	f.Pix = s.pix
	// The shutter was open for up to a period before the time stamp, and reads the rows one after
	// another in up to another one.
	f.Uncertainty += s.period
	return f, nil
}

// Close ends the camera.
func (s *Source) Close() error { return s.from.Close() }

// Noise is what was learned of it.
func (s *Source) Noise() Noise { return s.noise }

// Notes are what a recording should remember.
func (s *Source) Notes() map[string]string {
	notes := map[string]string{
		"corners": fmt.Sprint(s.quad),
		"noise":   fmt.Sprintf("σ %.1f of 255 a pixel; light within %.1f %%", s.noise.Pixel, 100*s.noise.Light),
	}
	if s.noise.Light > 0.1 {
		notes["flicker"] = "the light flickers: set the exposure to a multiple of 1/100 s (1/120 s), or darken the room"
	}
	if n, ok := s.from.(interface{ Notes() map[string]string }); ok {
		for k, v := range n.Notes() {
			notes[k] = v
		}
	}
	return notes
}

// NotLossless says why the pictures are not the screen's.
func (s *Source) NotLossless() string {
	return "seen by a camera, set upright, and held still where only its noise moves"
}
