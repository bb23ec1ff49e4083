// Package response measures how soon the screen answers an input, and finds the
// window that opened. Times are intervals: the input was somewhere in its own
// interval, and what a frame shows first came after the frame before was taken.
package response

import (
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
	if end == 0 {
		end = frames.Len()
	}
	if start < 0 || start >= end || end > frames.Len() {
		return image.Rectangle{}, fmt.Errorf("find the window: frames %d … %d of a recording of %d", start, end-1, frames.Len())
	}
	d, err := newDifference(frames, start, tolerance)
	if err != nil {
		return image.Rectangle{}, fmt.Errorf("find the window: %w", err)
	}
	if err := d.look(end-1, frames.Format().Bounds()); err != nil {
		return image.Rectangle{}, fmt.Errorf("find the window: %w", err)
	}
	box, ok := d.window()
	if !ok {
		return image.Rectangle{}, fmt.Errorf("find the window: %w", ErrNoWindow)
	}
	return box, nil
}

// FirstWindow finds the first frame after start that shows a window, by the rule of [Window]: a splash screen counts. It
// is 0 where none does.
func FirstWindow(frames visual.Frames, start, end int) (frame int, err error) {
	if start < 0 || start >= end || end > frames.Len() {
		return 0, fmt.Errorf("find the first window: frames %d … %d of a recording of %d", start, end-1, frames.Len())
	}
	d, err := newDifference(frames, start, visual.Tolerance{})
	if err != nil {
		return 0, fmt.Errorf("find the first window: %w", err)
	}
	for i := start + 1; i < end; i++ {
		changed := frames.Info(i).Changed
		if len(changed) == 0 {
			continue
		}
		if err := d.look(i, changed...); err != nil {
			return 0, fmt.Errorf("find the first window: %w", err)
		}
		if _, ok := d.window(); ok {
			return i, nil
		}
	}
	return 0, nil
}

// side is the side of a cell, in pixels.
const side = 8

// difference is where a frame differs from an earlier one, which is read once for all frames that are compared.
type difference struct {
	frames    visual.Frames
	access    visual.Access
	tolerance visual.Tolerance
	first     []uint32          // the pixels of the earlier frame
	row       []uint32          // of the frame that is looked at
	nx        int               // cells in a row
	boxes     []image.Rectangle // of the pixels that differ, by cell; empty: none does
}

func newDifference(frames visual.Frames, first int, tolerance visual.Tolerance) (*difference, error) {
	f := frames.Format()
	access, err := visual.NewAccess(f)
	if err != nil {
		return nil, err
	}
	pix, err := access.Read(frames, first)
	if err != nil {
		return nil, fmt.Errorf("frame %d: %w", first, err)
	}
	nx, ny := (f.Width+side-1)/side, (f.Height+side-1)/side
	d := &difference{frames: frames, access: access, tolerance: tolerance, nx: nx,
		first: make([]uint32, f.Width*f.Height), row: make([]uint32, f.Width), boxes: make([]image.Rectangle, nx*ny)}
	for y := range f.Height {
		access.Row(d.first[y*f.Width:][:f.Width], pix, y, 0)
	}
	return d, nil
}

// look compares a frame where it may differ from the frame that was looked at before.
func (d *difference) look(frame int, where ...image.Rectangle) error {
	pix, err := d.access.Read(d.frames, frame)
	if err != nil {
		return fmt.Errorf("frame %d: %w", frame, err)
	}
	f := d.frames.Format()
	for _, area := range where {
		area = wholeCells(area).Intersect(f.Bounds())
		row := d.row[:area.Dx()]
		for y := area.Min.Y; y < area.Max.Y; y++ {
			cells := d.boxes[y/side*d.nx:][:d.nx]
			if y%side == 0 {
				clear(cells[area.Min.X/side : (area.Max.X+side-1)/side])
			}
			old := d.first[y*f.Width+area.Min.X:]
			d.access.Row(row, pix, y, area.Min.X)
			for i, c := range row {
				if !d.tolerance.Same(c, old[i]) {
					x := area.Min.X + i
					cells[x/side] = cells[x/side].Union(image.Rect(x, y, x+1, y+1))
				}
			}
		}
	}
	return nil
}

// wholeCells is the smallest area of whole cells that covers another, which has no negative coordinates.
func wholeCells(r image.Rectangle) image.Rectangle {
	up := func(n int) int { return (n + side - 1) / side * side }
	return image.Rect(r.Min.X/side*side, r.Min.Y/side*side, up(r.Max.X), up(r.Max.Y))
}

// window is the box of the largest connected part that differs, if it has the size of a window.
func (d *difference) window() (box image.Rectangle, ok bool) {
	box = largest(d.boxes, d.nx)
	return box, 200*box.Dx()*box.Dy() >= len(d.first)
}

// largest returns the box of the connected part with the largest box.
func largest(boxes []image.Rectangle, nx int) (best image.Rectangle) {
	var stack []int
	seen := make([]bool, len(boxes))
	for from := range boxes {
		if seen[from] || boxes[from].Empty() {
			continue
		}
		var box image.Rectangle
		stack = append(stack[:0], from)
		seen[from] = true
		for len(stack) > 0 {
			k := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			box = box.Union(boxes[k])
			for dy := -1; dy <= 1; dy++ {
				for dx := -1; dx <= 1; dx++ {
					x, y := k%nx+dx, k/nx+dy
					if n := y*nx + x; x >= 0 && x < nx && n >= 0 && n < len(boxes) && !seen[n] && !boxes[n].Empty() {
						seen[n] = true
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
