package gesture

import (
	"image"
	"math"
	"time"
)

// defaults of gestures.
const (
	usualRate = 125.0 // events a second, as an ordinary USB mouse sends
	usualOver = 300 * time.Millisecond
	// UsualLate is how late an event may be unless a step says otherwise: one frame.
	UsualLate = time.Second / 60
)

// point is one place of a gesture, at an offset from its beginning.
type point struct {
	After time.Duration
	At    image.Point
}

// line is the way of a drag: rate events a second for the time over, from and to included. The
// share of the way after the share t of the time is ease(t).
func line(from, to image.Point, over time.Duration, rate float64, ease func(float64) float64) []point {
	n := max(1, int(math.Round(over.Seconds()*rate)))
	points := make([]point, 0, n+1)
	for i := range n + 1 {
		t := float64(i) / float64(n)
		way := ease(t)
		points = append(points, point{
			After: time.Duration(t * float64(over)),
			At: image.Pt(from.X+int(math.Round(way*float64(to.X-from.X))),
				from.Y+int(math.Round(way*float64(to.Y-from.Y)))),
		})
	}
	return points
}

// steady moves at constant speed.
func steady(t float64) float64 { return t }

// finger starts at rest and is fast at the end, as a finger that leaves the glass: page and
// browser go on from that speed.
func finger(t float64) float64 { return t * t }

// spread lays n events evenly over a time, the first at its beginning.
func spread(n int, over time.Duration) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		if n > 1 {
			out[i] = time.Duration(float64(over) * float64(i) / float64(n-1))
		}
	}
	return out
}
