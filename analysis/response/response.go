// Package response measures how soon the screen answers an input, and finds the
// window that opened. Times are intervals: the input was somewhere in its own
// interval, and what a frame shows first came after the frame before was taken.
package response

import (
	"errors"
	"fmt"
	"image"
	"time"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Options of Measure.
type Options struct {
	// Pixels that have to change for an answer; zero: 1.
	Pixels int
	// Quiet is how long the region has to stay unchanged to count as settled; zero: 500 ms.
	Quiet time.Duration
}

// Interval is a time between two instants that are known only within bounds.
type Interval struct {
	MS   float64 `json:"ms"`
	Low  float64 `json:"low_ms"`
	High float64 `json:"high_ms"`
}

// Answer is what one input brought about in a region.
type Answer struct {
	Event   lab.Event `json:"event"`
	First   int       `json:"first_frame"`   // −1: nothing changed before the next input
	Settled int       `json:"settled_frame"` // the last change before the quiet, −1: none, or no quiet came
	ToFirst Interval  `json:"to_first_change"`
	ToStill Interval  `json:"to_settled"`
}

// Measure finds each event's answer in a region: the first frame that changed after it,
// and the last one before the region was quiet. A change that may have been made before
// the input is none of its doing; frames up to the next event belong to this one.
func Measure(c *visual.Curves, region int, events []lab.Event, o Options) ([]Answer, error) {
	if region < 0 || region >= len(c.Regions) {
		return nil, fmt.Errorf("responsiveness: there is no region %d of %d", region, len(c.Regions))
	}
	if o.Pixels < 1 {
		o.Pixels = 1
	}
	if o.Quiet <= 0 {
		o.Quiet = 500 * time.Millisecond
	}
	changed := c.Regions[region].Changed
	out := []Answer{}
	for k, e := range events {
		if e.Latest < e.Earliest {
			return nil, fmt.Errorf("responsiveness: event %d, %q: latest is before earliest", k, e.Name)
		}
		until := lab.Time(1<<63 - 1)
		if k+1 < len(events) {
			until = events[k+1].Earliest
		}
		a := Answer{Event: e, First: -1, Settled: -1}
		last := -1
		for i := 1; i < len(changed); i++ {
			at := c.Infos[i].Time
			if at >= until {
				break
			}
			if last >= 0 && at.Sub(c.Infos[last].Time) >= o.Quiet {
				break
			}
			if changed[i] < o.Pixels || at < e.Earliest {
				continue
			}
			if a.First < 0 {
				a.First = c.Start + i
				a.ToFirst = interval(c, i, e)
			}
			last = i
		}
		if last >= 0 && quiet(c, last, until, o.Quiet) {
			a.Settled = c.Start + last
			a.ToStill = interval(c, last, e)
		}
		out = append(out, a)
	}
	return out, nil
}

// quiet says whether the recording goes on for long enough after frame last.
func quiet(c *visual.Curves, last int, until lab.Time, long time.Duration) bool {
	end := min(c.Infos[len(c.Infos)-1].Time, until)
	return end.Sub(c.Infos[last].Time) >= long
}

// interval is from the event to when frame i came to show what it shows.
func interval(c *visual.Curves, i int, e lab.Event) Interval {
	middle := e.Earliest + (e.Latest-e.Earliest)/2
	before := c.Infos[i-1]
	return Interval{
		MS:   ms(c.Infos[i].Time.Sub(middle)),
		Low:  max(ms(before.Time.Sub(e.Latest)-before.Uncertainty), 0),
		High: ms(c.Infos[i].Time.Sub(e.Earliest)),
	}
}

// Measurements returns the answers as named numbers, one pair for each event that has one.
func Measurements(answers []Answer, region string) []lab.Measurement {
	var out []lab.Measurement
	for _, a := range answers {
		add := func(what metric.ID, frame int, v Interval) {
			if frame >= 0 {
				m := what.Measure(v.MS, []int{frame - 1, frame}, fmt.Sprintf("the input is %q %s, the region %s", a.Event.Name, a.Event.Detail, region))
				m.Low, m.High = &v.Low, &v.High
				out = append(out, m)
			}
		}
		add(metric.InputToChange, a.First, a.ToFirst)
		add(metric.InputToSettled, a.Settled, a.ToStill)
	}
	return out
}

// ErrNoWindow says that nothing of the size of a window differs.
var ErrNoWindow = fmt.Errorf("no window: what differs between the first and the last frame covers less than 1/200 of the screen")

// Window finds the rectangle of what opened: the box of the largest connected part, in cells
// of 8 × 8 pixels, in which the last frame differs from the first. The load histogram over
// it is the specification's window-open histogram.
func Window(frames visual.Frames, start, end int, tolerance visual.Tolerance) (image.Rectangle, error) {
	f := frames.Format()
	if end == 0 {
		end = frames.Len()
	}
	if start < 0 || start >= end || end > frames.Len() {
		return image.Rectangle{}, fmt.Errorf("find the window: frames %d … %d of a recording of %d", start, end-1, frames.Len())
	}
	access, err := visual.NewAccess(f)
	if err != nil {
		return image.Rectangle{}, fmt.Errorf("find the window: %w", err)
	}
	first := make([]uint32, f.Width*f.Height)
	row := make([]uint32, f.Width)
	const side = 8
	nx, ny := (f.Width+side-1)/side, (f.Height+side-1)/side
	cells, boxes := make([]bool, nx*ny), make([]image.Rectangle, nx*ny)
	for n, frame := range []int{start, end - 1} {
		pix, err := access.Read(frames, frame)
		if err != nil {
			return image.Rectangle{}, fmt.Errorf("find the window: frame %d: %w", frame, err)
		}
		for y := range f.Height {
			old := first[y*f.Width:][:f.Width]
			if n == 0 {
				access.Row(old, pix, y, 0)
				continue
			}
			access.Row(row, pix, y, 0)
			for x, c := range row {
				if !tolerance.Same(c, old[x]) {
					k := y/side*nx + x/side
					cells[k] = true
					boxes[k] = boxes[k].Union(image.Rect(x, y, x+1, y+1))
				}
			}
		}
	}
	box := largest(cells, boxes, nx)
	if 200*box.Dx()*box.Dy() < f.Width*f.Height {
		return image.Rectangle{}, fmt.Errorf("find the window: %w", ErrNoWindow)
	}
	return box, nil
}

// FirstWindow finds the first frame after start that shows a window, by the rule of [Window]: a splash screen counts. It
// is 0 where none does.
func FirstWindow(frames visual.Frames, start, end int) (frame int, err error) {
	for i := start + 1; i < end; i++ {
		if len(frames.Info(i).Changed) == 0 {
			continue
		}
		switch _, err := Window(frames, start, i+1, visual.Tolerance{}); {
		case err == nil:
			return i, nil
		case !errors.Is(err, ErrNoWindow):
			return 0, err
		}
	}
	return 0, nil
}

// largest returns the box of the connected part with the largest box.
func largest(cells []bool, boxes []image.Rectangle, nx int) (best image.Rectangle) {
	var stack []int
	for from := range cells {
		if !cells[from] {
			continue
		}
		var box image.Rectangle
		stack = append(stack[:0], from)
		cells[from] = false
		for len(stack) > 0 {
			k := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			box = box.Union(boxes[k])
			for dy := -1; dy <= 1; dy++ {
				for dx := -1; dx <= 1; dx++ {
					x, y := k%nx+dx, k/nx+dy
					if n := y*nx + x; x >= 0 && x < nx && n >= 0 && n < len(cells) && cells[n] {
						cells[n] = false
						stack = append(stack, n)
					}
				}
			}
		}
		if box.Dx()*box.Dy() > best.Dx()*best.Dy() {
			best = box
		}
	}
	return best
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
