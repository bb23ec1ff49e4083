package drive

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"time"

	"eidetic/analysis/visual"
	"eidetic/control"
)

// Calibration is how a device moves its pointer when a relative mouse moves.
type Calibration struct {
	Gain float64 `json:"gain"` // pixels of the device's screen for each count
	// From is where what the pointer shows begins, from the point that it points to.
	From image.Point `json:"-"`
}

// Miss is how far from a point the pointer was afterwards, in pixels of the device's screen.
type Miss struct {
	At    image.Point `json:"at"`
	Pixel float64     `json:"miss_px"`
}

const (
	// drawn is how long a device may take to show its pointer where it was moved.
	drawn = 500 * time.Millisecond
	// codes is by how much a channel of a pixel differs at least where the pointer has come or gone: noise moves less.
	codes = 40
	// leastPixels of a screen differ where there is a pointer.
	leastPixels = 8
)

// Calibrate measures the gain of a relative mouse, whose controller has none yet, on a screen of that size that shows nothing
// else that moves. The pointer is found by the pixels in which pictures differ from one in which it is in the corner.
func Calibrate(ctx context.Context, c control.Controller, size image.Point, s *Screen) (Calibration, error) {
	const parts = 16
	found, err := calibrate(ctx, c, size, s, size.Div(parts))
	if err == nil && found.Gain < 0.5 { // the pointer has hardly left the corner
		found, err = calibrate(ctx, c, size, s, size.Mul(15).Div(parts).Div(places))
	}
	return found, err
}

// places are at how many multiples of a step the pointer is looked for.
const places = 4

func calibrate(ctx context.Context, c control.Controller, size image.Point, s *Screen, step image.Point) (out Calibration, err error) {
	corner, err := shown(ctx, c, s, image.Point{})
	if err != nil {
		return out, err
	}
	var all [places][]bool
	for k := range all {
		p, err := shown(ctx, c, s, step.Mul(k+1))
		if err != nil {
			return out, err
		}
		all[k] = differs(corner, p)
	}
	left := cornerOf(all[:], corner.Area)
	perPixel := [2]float64{float64(size.X) / float64(corner.Area.Dx()), float64(size.Y) / float64(corner.Area.Dy())}
	var counts, at [2][]float64
	for k, d := range all {
		where, err := pointerIn(d, corner.Area, left)
		if err != nil {
			return out, err
		}
		if where.Max.X == corner.Area.Max.X || where.Max.Y == corner.Area.Max.Y {
			break // it has reached the edge
		}
		counts[0], counts[1] = append(counts[0], float64(step.X*(k+1))), append(counts[1], float64(step.Y*(k+1)))
		at[0], at[1] = append(at[0], float64(where.Min.X)*perPixel[0]), append(at[1], float64(where.Min.Y)*perPixel[1])
	}
	if len(at[0]) < 2 {
		return out, errors.New("the pointer reaches the edge of the screen at once: set the device's pointer speed lower")
	}
	x, fromX := line(counts[0], at[0])
	y, fromY := line(counts[1], at[1])
	const alike = 0.1
	if !(x > 0 && y > 0) || math.Abs(x-y) > alike*(x+y)/2 {
		return out, fmt.Errorf("the pointer moves by %.2f pixels for each count to the right and by %.2f down: "+
			"is the size of the device's screen right, and does it show nothing else that moves?", x, y)
	}
	return Calibration{Gain: (x + y) / 2, From: image.Pt(int(math.Round(fromX)), int(math.Round(fromY)))}, nil
}

// Misses has the pointer go to five points, and says how far it was from each. The controller has the gain.
func Misses(ctx context.Context, c control.Controller, size image.Point, s *Screen, by Calibration) (all []Miss, err error) {
	corner, err := shown(ctx, c, s, image.Point{})
	if err != nil {
		return nil, err
	}
	var found [][]bool
	points := []image.Point{size.Div(2), size.Div(4), {size.X * 3 / 4, size.Y / 4}, {size.X / 4, size.Y * 3 / 4}, size.Mul(3).Div(4)}
	for _, at := range points {
		p, err := shown(ctx, c, s, at)
		if err != nil {
			return nil, err
		}
		found = append(found, differs(corner, p))
	}
	left := cornerOf(found, corner.Area)
	for i, at := range points {
		where, err := pointerIn(found[i], corner.Area, left)
		if err != nil {
			return nil, err
		}
		x := float64(where.Min.X)*float64(size.X)/float64(corner.Area.Dx()) - float64(by.From.X)
		y := float64(where.Min.Y)*float64(size.Y)/float64(corner.Area.Dy()) - float64(by.From.Y)
		all = append(all, Miss{at, math.Hypot(x-float64(at.X), y-float64(at.Y))})
	}
	return all, nil
}

// shown moves the pointer, and returns what the screen shows afterwards.
func shown(ctx context.Context, c control.Controller, s *Screen, to image.Point) (*visual.Picture, error) {
	moved, err := c.Move(ctx, to.X, to.Y)
	if err != nil {
		return nil, err
	}
	return s.picture(ctx, moved.Latest.Add(drawn))
}

// differs says of each pixel whether two pictures differ there.
func differs(a, b *visual.Picture) []bool {
	out := make([]bool, len(a.Pix))
	for i, p := range a.Pix {
		for shift := 0; shift < 24; shift += 8 {
			d := int(p>>shift&0xff) - int(b.Pix[i]>>shift&0xff)
			out[i] = out[i] || d >= codes || d <= -codes
		}
	}
	return out
}

// cornerOf is where all pictures differ from that of the corner: there the pointer was.
func cornerOf(all [][]bool, area image.Rectangle) (where image.Rectangle) {
	for i, d := range all[0] {
		for _, other := range all[1:] {
			d = d && other[i]
		}
		if d {
			where = where.Union(pixel(i, area))
		}
	}
	return where
}

// pointerIn is where the pointer is: the pixels that differ elsewhere than where it was.
func pointerIn(d []bool, area, corner image.Rectangle) (where image.Rectangle, err error) {
	n := 0
	for i, differs := range d {
		if p := pixel(i, area); differs && !p.In(corner) {
			n++
			where = where.Union(p)
		}
	}
	switch {
	case n < leastPixels:
		return where, errors.New("no pointer is seen to move: is it the device's screen that the source films, and does the device show a pointer?")
	case where.Dx() > area.Dx()/8 || where.Dy() > area.Dy()/4:
		return where, fmt.Errorf("more than a pointer changes, in %v: let the device show a page of one colour that is still, such as http://box.test/start",
			where)
	}
	return where, nil
}

func pixel(i int, area image.Rectangle) image.Rectangle {
	p := image.Pt(i%area.Dx(), i/area.Dx()).Add(area.Min)
	return image.Rectangle{p, p.Add(image.Pt(1, 1))}
}

// line is the least-squares line through points.
func line(x, y []float64) (slope, at0 float64) {
	var sx, sy, sxx, sxy float64
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	n := float64(len(x))
	slope = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return slope, (sy - slope*sx) / n
}
