package gesture

import (
	"context"
	"fmt"
	"image"
	"math"
	"time"

	"eidetic/control"
	"eidetic/internal/lab"
)

// Gestures of several fingers. Two fingers that turn or move apart keep within a circle around the target whose radius
// is a quarter of the shorter side of the screen; fingers side by side are an eighth of that side apart, as those of a
// hand are.
const (
	circle = 4
	apart  = 8
)

// pinch moves two fingers apart, or together.
func (d *Doer) pinch(ctx context.Context, s lab.Step) (Log, error) {
	around, factor, err := lab.ParsePinch(s.Pinch)
	if err != nil {
		return Log{}, err
	}
	return d.around(ctx, s, around, func(radius, t float64) (float64, float64) {
		from, to := radius/max(factor, 1), radius*min(factor, 1)
		if factor > 1 {
			to = radius
		}
		return from + t*(to-from), 0
	})
}

// rotate turns two fingers.
func (d *Doer) rotate(ctx context.Context, s lab.Step) (Log, error) {
	around, degrees, err := lab.ParseRotate(s.Rotate)
	if err != nil {
		return Log{}, err
	}
	return d.around(ctx, s, around, func(radius, t float64) (float64, float64) { return radius, t * degrees * math.Pi / 180 })
}

// around moves two fingers, which are opposite each other: at gives their distance from the middle and their angle, of
// which positive ones are clockwise, after the share t of the time.
func (d *Doer) around(ctx context.Context, s lab.Step, target lab.Target, at func(radius, t float64) (r, angle float64)) (Log, error) {
	area, err := d.Find(ctx, target)
	if err != nil {
		return Log{}, err
	}
	centre, radius := middle(area), float64(d.side())/circle
	log, err := d.fingers(ctx, s, 2, func(t float64) []image.Point {
		r, angle := at(radius, t)
		by := image.Pt(int(math.Round(r*math.Cos(angle))), int(math.Round(r*math.Sin(angle))))
		return []image.Point{centre.Sub(by), centre.Add(by)}
	})
	log.At, log.Area = centre, area
	return log, err
}

// sideBySide drags with several fingers.
func (d *Doer) sideBySide(ctx context.Context, s lab.Step, verb, value string) (Log, error) {
	from, to, err := d.way(ctx, value)
	if err != nil {
		return Log{}, err
	}
	ease := steady
	if verb == lab.VerbPan {
		ease = finger
	}
	a, b, gap := middle(from), middle(to), d.side()/apart
	log, err := d.fingers(ctx, s, s.Fingers, func(t float64) (at []image.Point) {
		way := ease(t)
		hand := a.Add(image.Pt(int(math.Round(way*float64(b.X-a.X))), int(math.Round(way*float64(b.Y-a.Y)))))
		for i := range s.Fingers {
			at = append(at, hand.Add(image.Pt((2*i-s.Fingers+1)*gap/2, 0)))
		}
		return at
	})
	log.At, log.Area = a, from
	return log, err
}

// side is the shorter side of the screen.
func (d *Doer) side() int { return min(d.Screen.Dx(), d.Screen.Dy()) }

// errNoTouch refuses a gesture of fingers.
var errNoTouch = fmt.Errorf("%w: it has no touch screen for several fingers (adb has one, a USB gadget with touch, and the virtual device)", errRefused) // constant

// fingers touches the screen with n fingers, moves them and lifts them, at the places after each share of the time. All
// of the way is looked at before the first finger comes down, and they are lifted where it could not be completed.
func (d *Doer) fingers(ctx context.Context, s lab.Step, n int, at func(t float64) []image.Point) (Log, error) {
	hand, ok := d.Controller.(control.Toucher)
	if !ok {
		return Log{}, errNoTouch
	}
	rate := usualRate
	if s.Rate > 0 {
		rate = s.Rate
	}
	over := overOf(s, usualOver)
	times := spread(max(1, int(math.Round(over.Seconds()*rate)))+1, over)
	points := make([][]image.Point, 0, len(times))
	for _, after := range times {
		all := at(float64(after) / float64(max(over, time.Nanosecond)))
		for i, p := range all {
			if !p.In(d.Screen) {
				return Log{}, fmt.Errorf("finger %d of %d would leave the screen at %d,%d: aim nearer to its middle", i+1, n, p.X, p.Y)
			}
		}
		points = append(points, all)
	}
	log, err := d.scheduled(ctx, s, times, func(i int) (lab.Event, error) { return hand.Touch(ctx, points[i]...) })
	return log.lifted(err, func() (lab.Event, error) { return hand.Touch(ctx) })
}
