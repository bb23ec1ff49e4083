package motion

import (
	"fmt"
	"image"
	"time"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// ShiftOptions says where layout instability is looked for.
type ShiftOptions struct {
	Start, End int
	Area       image.Rectangle
	Ignore     []image.Rectangle
	// Inputs excuse what moves from their beginning until half a second after their end.
	Inputs []lab.Event
}

// Shift is the layout instability of a recording.
type Shift struct {
	Start  int
	Scores []float64 // of each frame: impact × distance, 0 … 1
	Worst  int       // the frame with the largest, −1 for none
	Sum    float64   // the largest sum of a session of frames
	First  int       // of that session, −1 for none
	Last   int
}

// The widths of the Layout Instability specification and of Cumulative Layout Shift: what follows an
// input is expected; a session ends after a second without a shift, and lasts at most five.
const (
	excuse      = 500 * time.Millisecond
	sessionGap  = time.Second
	sessionMost = 5 * time.Second
)

// Pieces of a picture that can be recognised: columns of a strip of a width, of a number of rows
// that are not all of one colour. Shorter ones are found anywhere by chance.
const (
	shiftWidth = 32
	shiftRows  = 8
	shiftLeast = 3 // pixels; the specification leaves smaller movements out
)

// Shifts measures how much of the picture stands elsewhere than in the frame before, in the way of
// Cumulative Layout Shift (W3C Layout Instability; web.dev/cls): the share of the area that moved
// pieces cover before or after, times the largest distance ÷ the area's larger side. What a browser
// knows of its elements is found in pixels: pieces of 32 pixels' width that are equal at another
// height, or of 32 pixels' height at another place across.
func Shifts(frames visual.Frames, o ShiftOptions) (*Shift, error) {
	access, err := visual.NewAccess(frames.Format())
	if err != nil {
		return nil, fmt.Errorf("measure layout shifts: %w", err)
	}
	if o.Area.Empty() {
		o.Area = frames.Format().Bounds()
	}
	if o.End == 0 {
		o.End = frames.Len()
	}
	if o.Start < 0 || o.Start >= o.End || o.End > frames.Len() || !o.Area.In(frames.Format().Bounds()) {
		return nil, fmt.Errorf("measure layout shifts: frames %d … %d of %d in %v: start must be before end and all inside", o.Start, o.End-1,
			frames.Len(), o.Area)
	}
	down, across := newTiles(access, o, false), newTiles(access, o, true)
	s := &Shift{Start: o.Start, Scores: make([]float64, o.End-o.Start), Worst: -1, First: -1, Last: -1}
	for i := o.Start; i < o.End; i++ {
		info := frames.Info(i)
		if i > o.Start && len(info.Changed) == 0 {
			continue
		}
		pix, err := access.Read(frames, i)
		if err != nil {
			return nil, fmt.Errorf("measure layout shifts: frame %d: %w", i, err)
		}
		down.read(pix)
		across.read(pix)
		if i == o.Start || excused(info.Time, o.Inputs) {
			continue
		}
		moved := newCover(o.Area)
		far := max(down.moved(moved), across.moved(moved))
		if n := moved.count(o.Ignore); n > 0 {
			s.Scores[i-o.Start] = float64(n) / float64(o.Area.Dx()*o.Area.Dy()) * min(float64(far)/float64(max(o.Area.Dx(), o.Area.Dy())), 1)
			if s.Worst < 0 || s.Scores[i-o.Start] > s.Scores[s.Worst-o.Start] {
				s.Worst = i
			}
		}
	}
	s.sessions(frames)
	return s, nil
}

func excused(at lab.Time, inputs []lab.Event) bool {
	for _, e := range inputs {
		if at >= e.Earliest && at <= e.Latest.Add(excuse) {
			return true
		}
	}
	return false
}

// sessions finds the session of shifts with the largest sum.
func (s *Shift) sessions(frames visual.Frames) {
	var sum float64
	first, last := -1, -1
	for i, v := range s.Scores {
		if v == 0 {
			continue
		}
		at := frames.Info(s.Start + i).Time
		if first < 0 || at.Sub(frames.Info(s.Start+last).Time) > sessionGap || at.Sub(frames.Info(s.Start+first).Time) > sessionMost {
			sum, first = 0, i
		}
		last = i
		if sum += v; sum > s.Sum {
			s.Sum, s.First, s.Last = sum, s.Start+first, s.Start+last
		}
	}
}

// Measurements returns the layout instability as named numbers.
func (s *Shift) Measurements() []lab.Measurement {
	sum, worst := metric.Instability.Measure(s.Sum, nil), metric.InstabilityWorst.Measure(0, nil)
	if s.Worst >= 0 {
		sum.Frames, worst.Frames, worst.Value = []int{s.First, s.Last}, []int{s.Worst}, s.Scores[s.Worst-s.Start]
	}
	return []lab.Measurement{sum, worst}
}
