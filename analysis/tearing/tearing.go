// Package tearing finds frames that show parts of two pictures at once, as a screen does
// that is drawn to without waiting for its refresh.
//
// Two ways. Known follows the Eideticker specification: a test draws images of which no two
// share a pixel value at any place; two successive frames that differ and share pixels
// are torn. It cannot be wrong, and works with noise. Find needs no such images: it
// looks for bands of rows that are ahead of the rest and are caught up with, in pages
// that scroll and in pictures that are replaced as a whole. What a page paints piece by
// piece is no tear. Find compares rows exactly, so a source with noise needs Known.
package tearing

import (
	"fmt"
	"image"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Options says where Find looks.
type Options struct {
	Start, End int             // frames; zero End: all
	Area       image.Rectangle // empty: the whole frame
}

// Tear is one torn frame.
type Tear struct {
	Frame int   `json:"frame"`
	Rows  []int `json:"rows"` // where one picture gives way to the other, from the top of the area
	How   string
}

// Result lists torn frames.
type Result struct {
	Tears  []Tear
	Looked int // frames that differ from the one before
	Run    int // most successive torn frames
	Method string
}

// Known compares successive frames of a region by the specification's rule. Each
// torn frame makes two pairs that share pixels, with the frame before and the one after
// it; the frame that completes a picture is not counted: the pixels that it shares with the
// torn one are just those that had changed there.
func Known(c *visual.Curves, region int) *Result {
	r := &Result{Method: "successive frames that differ and share pixels, of images that share none (Eideticker specification)"}
	curve := c.Regions[region]
	torn := 0 // pixels that the last picture had changed, if it was torn and is to be completed; it may have stayed for several frames
	for i := 1; i < len(curve.Changed); i++ {
		n := curve.Changed[i]
		if n == 0 {
			continue
		}
		r.Looked++
		shares := n < curve.Pixels
		if shares && torn > 0 && n == curve.Pixels-torn {
			torn = 0 // this frame shows the rest of the picture
			continue
		}
		torn = 0
		if shares {
			torn = n
			r.Tears = append(r.Tears, Tear{Frame: c.Start + i, How: "known images"})
		}
	}
	r.runs()
	return r
}

// runs finds the most successive torn frames.
func (r *Result) runs() {
	n := 0
	for i, t := range r.Tears {
		if i > 0 && t.Frame == r.Tears[i-1].Frame+1 {
			n++
		} else {
			n = 1
		}
		r.Run = max(r.Run, n)
	}
}

// Measurements returns the result as named numbers.
func (r *Result) Measurements() []lab.Measurement {
	var frames []int
	for _, t := range r.Tears {
		if len(frames) < 100 {
			frames = append(frames, t.Frame)
		}
	}
	out := []lab.Measurement{
		metric.TornFrames.Measure(float64(len(r.Tears)), frames, r.Method),
		metric.TornRun.Measure(float64(r.Run), nil, r.Method),
	}
	if r.Looked > 0 {
		out = append(out, metric.TornPercent.Measure(100*float64(len(r.Tears))/float64(r.Looked), nil, r.Method))
	}
	return out
}

// Find looks for torn frames without knowing what was drawn.
func Find(frames visual.Frames, o Options) (*Result, error) {
	f := frames.Format()
	if o.End == 0 {
		o.End = frames.Len()
	}
	if o.Start < 0 || o.Start >= o.End || o.End > frames.Len() {
		return nil, fmt.Errorf("look for tears: frames %d … %d of a recording of %d: start must be before end and both inside",
			o.Start, o.End-1, frames.Len())
	}
	if o.Area.Empty() {
		o.Area = f.Bounds()
	}
	if !o.Area.In(f.Bounds()) {
		return nil, fmt.Errorf("look for tears: the area %v is not inside the frame %v", o.Area, f.Bounds())
	}
	access, err := visual.NewAccess(f)
	if err != nil {
		return nil, fmt.Errorf("look for tears: %w", err)
	}
	r := &Result{Method: "bands of rows ahead of the rest that catches up: rows compared exactly along the movement of a scrolled page, " +
		"or between two pictures that replace each other as a whole"}
	s := newScroll()
	w := &replaced{scroll: s}
	rows := newRows(access, o.Area)
	var now *lineSet
	for i := o.Start; i < o.End; i++ {
		changed := frames.Info(i).Changed
		if i > o.Start && len(changed) == 0 {
			continue
		}
		pix, err := access.Read(frames, i)
		if err != nil {
			return nil, fmt.Errorf("look for tears: frame %d: %w", i, err)
		}
		now = rows.read(pix, now)
		now.frame = i + 1
		if i > o.Start {
			r.Looked++
		}
		s.frame(i, now)
		w.frame(i, now)
	}
	w.finish()
	r.Tears = merge(s.tears, w.tears)
	r.runs()
	return r, nil
}

// merge sorts two lists by frame, each frame once.
func merge(a, b []Tear) (out []Tear) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Frame < b[0].Frame:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0].Frame < a[0].Frame:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return out
}

// rows hashes each row of a frame, whole and in strips.
type rows struct {
	access visual.Access
	area   image.Rectangle
	row    []uint32
}

// lineSet are the sums of one frame. A strip's sum of 0 says that its row has one colour.
type lineSet struct {
	whole  []uint64
	strips [][]uint64
	// parts are the strips' shares of whole: a sum, or the colour of a strip that has one.
	parts [][]uint64
	once  [][]bool // rows of each strip whose sum no other has; nil until it is asked for

	frame       int // from 1 on
	follows     int // of the last call of leading with this frame: the earlier one, and the answer
	lead, leads int
}

const strips = 12

func newRows(a visual.Access, area image.Rectangle) *rows {
	return &rows{a, area, make([]uint32, area.Dx())}
}

// read sums a frame. What stood in the frame before, nil for the first, is taken from its sums.
func (r *rows) read(pix visual.Raster, before *lineSet) *lineSet {
	h, w := r.area.Dy(), r.area.Dx()
	n := min(strips, w)
	l := &lineSet{whole: make([]uint64, h), strips: make([][]uint64, n), parts: make([][]uint64, n)}
	sums := make([]uint64, 2*h*n)
	for s := range l.strips {
		l.strips[s], l.parts[s], sums = sums[:h:h], sums[h:2*h:2*h], sums[2*h:]
	}
	known := r.known(l, pix.Moves(), before)
	for y := range h {
		whole := uint64(1)
		for s := range l.strips {
			if !known[s*h+y] {
				from, to := w*s/n, w*(s+1)/n
				at := r.area.Min.X + from
				sum := r.access.StretchSum(pix, r.area.Min.Y+y, at, to-from, r.row)
				l.strips[s][y] = sum
				if sum == 0 { // of one colour, which counts for the whole row
					r.access.Row(r.row[:1], pix, r.area.Min.Y+y, at)
					sum = uint64(r.row[0])
				}
				l.parts[s][y] = sum
			}
			whole = (whole ^ l.parts[s][y]) * 0x9e3779b97f4a7c15
			whole ^= whole >> 31
		}
		l.whole[y] = whole
	}
	return l
}

// known copies the sums of rows that moved up or down, and says which.
func (r *rows) known(l *lineSet, moves []lab.Move, before *lineSet) []bool {
	h, w, n := r.area.Dy(), r.area.Dx(), len(l.strips)
	known := make([]bool, n*h)
	if before == nil {
		return known
	}
	for _, m := range moves {
		if m.DX != 0 {
			continue
		}
		box := m.R.Sub(r.area.Min).Intersect(image.Rect(0, 0, w, h))
		for s := range n {
			if w*s/n < box.Min.X || w*(s+1)/n > box.Max.X {
				continue
			}
			for y := max(box.Min.Y, -m.DY); y < min(box.Max.Y, h-m.DY); y++ {
				l.strips[s][y], l.parts[s][y], known[s*h+y] = before.strips[s][y+m.DY], before.parts[s][y+m.DY], true
			}
		}
	}
	return known
}
