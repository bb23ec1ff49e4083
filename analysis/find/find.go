// Package find finds a small picture, a template, on a picture of a screen: a button, a
// product. Pixels flow in, a rectangle flows out.
//
// A template is found where at least 95 % of its pixels differ by at most a tolerance in each
// channel: exact search, neither scaled nor turned, because a step must hit what a person
// meant, and nothing that merely resembles it. Pixels that are more than half transparent in
// the template match anything. Of several places the most similar counts.
package find

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"

	"eidetic/analysis/visual"
)

// Bounds of a template.
const (
	MaxBytes = 4 << 20
	maxSide  = 2000
	minSide  = 4
)

// maxWork bounds the pixels that one search compares: some seconds at most.
const maxWork = 1 << 30

// wrongShare is the share of a template's pixels that may differ by more than the tolerance.
const wrongShare = 0.05

// Template is a picture to be found.
type Template struct {
	size    image.Point
	pix     []uint32 // 0x00RRGGBB
	any     []bool   // pixels that match anything
	count   int      // pixels that do not
	anchors []anchor
	spread  int // the largest difference between two pixels in one channel
}

// anchor is a pixel that is compared before all others.
type anchor struct {
	at    image.Point
	value uint32
}

// Read reads a template from a PNG file's content.
func Read(content []byte) (*Template, error) {
	if len(content) > MaxBytes {
		return nil, fmt.Errorf("the picture has more than %d MiB", MaxBytes>>20)
	}
	config, err := png.DecodeConfig(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("the picture is no PNG: %w", err)
	}
	if config.Width > maxSide || config.Height > maxSide || config.Width < minSide || config.Height < minSide {
		return nil, fmt.Errorf("the picture has %d×%d pixels; %d×%d to %d×%d can be searched for", config.Width, config.Height,
			minSide, minSide, maxSide, maxSide)
	}
	img, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("the picture is no PNG: %w", err)
	}
	return New(img)
}

// New makes a template of a picture.
func New(img image.Image) (*Template, error) {
	b := img.Bounds()
	t := &Template{size: b.Size(), pix: make([]uint32, b.Dx()*b.Dy()), any: make([]bool, b.Dx()*b.Dy())}
	low, high := [3]int{255, 255, 255}, [3]int{}
	for y := range b.Dy() {
		for x := range b.Dx() {
			c := color.NRGBAModel.Convert(img.At(b.Min.X+x, b.Min.Y+y)).(color.NRGBA)
			i := y*b.Dx() + x
			if c.A < 128 {
				t.any[i] = true
				continue
			}
			t.count++
			t.pix[i] = uint32(c.R)<<16 | uint32(c.G)<<8 | uint32(c.B)
			for k, v := range []uint8{c.R, c.G, c.B} {
				low[k], high[k] = min(low[k], int(v)), max(high[k], int(v))
			}
		}
	}
	if t.count < minSide*minSide {
		return nil, fmt.Errorf("the picture has only %d pixels that are not transparent", t.count)
	}
	for k := range low {
		t.spread = max(t.spread, high[k]-low[k])
	}
	t.choose()
	return t, nil
}

// Size is that of the template.
func (t *Template) Size() image.Point { return t.size }

// choose picks anchors: pixels of a coarse grid, those least like the others first, so that
// most places are ruled out by the first comparisons.
func (t *Template) choose() {
	const columns, rows = 8, 6
	var sum [3]int
	for i, v := range t.pix {
		if !t.any[i] {
			sum[0], sum[1], sum[2] = sum[0]+int(v>>16), sum[1]+int(v>>8&255), sum[2]+int(v&255)
		}
	}
	mean := uint32(sum[0]/t.count)<<16 | uint32(sum[1]/t.count)<<8 | uint32(sum[2]/t.count)
	for r := range rows {
		for c := range columns {
			at := image.Pt((2*c+1)*t.size.X/(2*columns), (2*r+1)*t.size.Y/(2*rows))
			if i := at.Y*t.size.X + at.X; !t.any[i] {
				t.anchors = append(t.anchors, anchor{at, t.pix[i]})
			}
		}
	}
	slices.SortStableFunc(t.anchors, func(a, b anchor) int { return apart(b.value, mean) - apart(a.value, mean) })
}

// apart is the largest difference of two pixels in one channel.
func apart(a, b uint32) int {
	d := func(shift int) int {
		v := int(a>>shift&255) - int(b>>shift&255)
		return max(v, -v)
	}
	return max(d(16), d(8), d(0))
}

// Match is a place where a template was found.
type Match struct {
	Area image.Rectangle // in frame coordinates
	// Difference is the mean of the pixels' largest channel differences there.
	Difference float64
}

// ErrNotFound says that no place is similar enough.
var ErrNotFound = errors.New("it is not on the screen") // constant

// In finds the template within an area of a picture. Tolerance is how much a channel of a
// pixel may differ. The error is ErrNotFound, or says why the search is impossible.
func (t *Template) In(p *visual.Picture, area image.Rectangle, tolerance int) (Match, error) {
	area = area.Intersect(p.Area)
	if t.size.X > area.Dx() || t.size.Y > area.Dy() {
		return Match{}, fmt.Errorf("the picture of %d×%d is larger than the area of %d×%d", t.size.X, t.size.Y, area.Dx(), area.Dy())
	}
	if t.spread <= 2*tolerance {
		return Match{}, fmt.Errorf("the picture has hardly any contrast (%d of 255) and would be found everywhere with a tolerance of %d: "+
			"cut out more of its surroundings, or lower the tolerance", t.spread, tolerance)
	}
	s := search{t: t, p: p, tolerance: tolerance, best: Match{Difference: 256}}
	for y := area.Min.Y; y <= area.Max.Y-t.size.Y; y++ {
		for x := area.Min.X; x <= area.Max.X-t.size.X; x++ {
			s.try(image.Pt(x, y))
		}
		if s.work > maxWork {
			return Match{}, errors.New("the screen resembles the picture in too many places: give it a region to be searched in, or cut out another part")
		}
	}
	if s.best.Area.Empty() {
		return Match{}, ErrNotFound
	}
	return s.best, nil
}

// search is a search in progress.
type search struct {
	t         *Template
	p         *visual.Picture
	tolerance int
	best      Match
	work      int
}

// try compares the template with one place.
func (s *search) try(at image.Point) {
	t, stride := s.t, s.p.Area.Dx()
	base := (at.Y-s.p.Area.Min.Y)*stride + at.X - s.p.Area.Min.X
	wrong, most := 0, max(1, len(t.anchors)/6)
	for i, a := range t.anchors {
		if apart(s.p.Pix[base+a.at.Y*stride+a.at.X], a.value) > s.tolerance {
			if wrong++; wrong > most {
				s.work += i
				return
			}
		}
	}
	wrong, most = 0, int(wrongShare*float64(t.count))
	sum, limit := 0, int(s.best.Difference*float64(t.count))
	for y := range t.size.Y {
		row := s.p.Pix[base+y*stride:][:t.size.X]
		mine := t.pix[y*t.size.X:][:t.size.X]
		for x, v := range mine {
			if row[x] == v || t.any[y*t.size.X+x] {
				continue
			}
			d := apart(row[x], v)
			if d > s.tolerance {
				wrong++
			}
			sum += d
		}
		if wrong > most || sum > limit {
			s.work += (y + 1) * t.size.X
			return
		}
	}
	s.work += len(t.pix)
	if difference := float64(sum) / float64(t.count); difference < s.best.Difference {
		s.best = Match{image.Rectangle{at, at.Add(t.size)}, difference}
	}
}
