package motion

import (
	"fmt"
	"math"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// SummaryOptions say what the movement is held against.
type SummaryOptions struct {
	// Input began the movement; without it there is no latency.
	Input *lab.Event
	// Uncertainty is how much earlier than its stamp a frame may have been taken.
	Uncertainty func(frame int) time.Duration
}

// Summary is a movement in single numbers.
type Summary struct {
	First, Last int // frames of the first and the last movement, −1 without any
	Frames      int // frames from First to Last
	Moves       int // of these, frames that moved
	Unexplained int // frames whose change is no movement of the whole
	X, Y        float64
	Zoom        float64
	Speed       float64 // px/s between First and Last, along the path
	Longest     float64 // px, the largest step
	// Unevenness is the root mean square, over the frames between First and Last, of how far
	// a frame's step is from the mean of its neighbours', in pixels. 0 for an even pace
	// and for one that changes evenly.
	Unevenness float64
	// Overshoot is how far, in pixels, the picture went beyond where it stopped, along the
	// direction from its start to its end.
	Overshoot float64

	Latency *lab.Measurement // from the input to the first movement

	path *Path
}

// Summarise returns the single numbers of a path.
func (p *Path) Summarise(o SummaryOptions) *Summary {
	s := &Summary{First: -1, Last: -1, Zoom: 1, path: p}
	for i, step := range p.Steps {
		if step.How == None {
			s.Unexplained++
		}
		if !step.Moved() {
			continue
		}
		if o.Input != nil && step.Time < o.Input.Earliest {
			continue // what moved before is not the input's doing
		}
		if s.First < 0 {
			s.First = i
		}
		s.Last = i
		s.Moves++
		s.Longest = max(s.Longest, math.Hypot(step.DX, step.DY))
	}
	if s.First < 0 {
		return s
	}
	before := p.Steps[max(s.First-1, 0)]
	end := p.Steps[s.Last]
	s.Frames = s.Last - s.First + 1
	s.X, s.Y, s.Zoom = end.X-before.X, end.Y-before.Y, end.Zoom/before.Zoom
	length := 0.0
	for _, step := range p.Steps[s.First : s.Last+1] {
		length += math.Hypot(step.DX, step.DY)
	}
	if span := end.Time.Sub(before.Time).Seconds(); span > 0 {
		s.Speed = length / span
	}
	s.Unevenness = p.unevenness(s.First, s.Last)
	s.Overshoot = p.overshoot(s.First, s.Last, before)
	if o.Input != nil {
		s.Latency = p.latency(s.First, o)
	}
	s.First, s.Last = p.Steps[s.First].Frame, p.Steps[s.Last].Frame
	return s
}

func (p *Path) unevenness(first, last int) float64 {
	sum, n := 0.0, 0
	for i := first + 1; i < last; i++ {
		a, b, c := p.Steps[i-1], p.Steps[i], p.Steps[i+1]
		sum += square(b.DX-(a.DX+c.DX)/2) + square(b.DY-(a.DY+c.DY)/2)
		n++
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(sum / float64(n))
}

func (p *Path) overshoot(first, last int, before Step) float64 {
	end := p.Steps[last]
	x, y := end.X-before.X, end.Y-before.Y
	length := math.Hypot(x, y)
	if length == 0 {
		return 0
	}
	beyond := 0.0
	for _, s := range p.Steps[first : last+1] {
		along := ((s.X-before.X)*x + (s.Y-before.Y)*y) / length
		beyond = max(beyond, along-length)
	}
	return beyond
}

// latency is from the input to the first frame that shows movement: the picture
// moved after the frame before was taken and before this one was.
func (p *Path) latency(first int, o SummaryOptions) *lab.Measurement {
	middle := o.Input.Earliest + (o.Input.Latest-o.Input.Earliest)/2
	at := p.Steps[first]
	low, high := 0.0, milliseconds(at.Time.Sub(o.Input.Earliest))
	m := metric.InputToMovement.Measure(milliseconds(at.Time.Sub(middle)), []int{at.Frame}, fmt.Sprintf("the input is %q", o.Input.Name))
	if first > 0 {
		before := p.Steps[first-1]
		shift := time.Duration(0)
		if o.Uncertainty != nil {
			shift = o.Uncertainty(before.Frame)
		}
		low = max(milliseconds(before.Time.Sub(o.Input.Latest)-shift), 0)
		m.Frames = []int{before.Frame, at.Frame}
	}
	m.Low, m.High = &low, &high
	return &m
}

// Measurements returns the summary as named numbers.
func (s *Summary) Measurements() []lab.Measurement {
	const how = "displacement from frame to frame (rows or columns that are equal; else Gauss–Newton on reduced pictures)"
	if s.First < 0 {
		return []lab.Measurement{metric.MovementFrames.Measure(0, nil, how)}
	}
	ends := []int{s.First, s.Last}
	of := func(m metric.ID, v float64, details ...string) lab.Measurement { return m.Measure(v, ends, details...) }
	out := []lab.Measurement{
		of(metric.MovementFrames, float64(s.Moves), how),
		of(metric.MovementX, s.X, how),
		of(metric.MovementY, s.Y, how),
		of(metric.MovementZoom, s.Zoom, how),
		of(metric.MovementSpeed, s.Speed),
		of(metric.MovementLongestStep, s.Longest, how),
		of(metric.MovementUnevenness, s.Unevenness),
		of(metric.MovementOvershoot, s.Overshoot),
	}
	if s.Latency != nil {
		out = append(out, *s.Latency)
	}
	return out
}

func square(v float64) float64 { return v * v }

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
