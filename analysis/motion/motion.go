// Package motion says how far the picture moved from frame to frame while somebody
// scrolled, panned or zoomed, to a tenth of a pixel, and how smoothly.
//
// Three ways are tried in turn. Rows (or columns) of a few strips that occur once in
// both frames vote for a displacement: that is exact, and cheap, since most screens move
// by whole pixels. Where they do not agree (fractional movement, noise, a diagonal
// pan), the displacement is searched for on reduced pictures and refined by
// Gauss–Newton steps on the full ones (Lucas and Kanade 1981; Baker and Matthews 2004).
// With Options.Zoom a scale is estimated with it.
package motion

import (
	"fmt"
	"image"
	"math"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// Options says where and how to look.
type Options struct {
	Start, End int             // frames; zero End: all
	Area       image.Rectangle // what moves, in frame coordinates; empty: the whole frame
	Tolerance  visual.Tolerance
	Zoom       bool // the picture may also change its scale
	// Blank asks for what was not drawn yet; nil does not.
	Blank *BlankOptions
}

// How a step was measured.
const (
	Still     = "still"     // nothing changed within the tolerance
	Exact     = "exact"     // whole pixels, by rows or columns that are equal
	Estimated = "estimated" // by the best fit
	None      = "none"      // what changed is no movement of the picture as a whole
)

// Step is the movement of the picture from the frame before to this one. A page that
// is scrolled down moves up: DY is negative.
type Step struct {
	Frame int      `json:"frame"`
	Time  lab.Time `json:"time_ns"`
	DX    float64  `json:"dx"` // pixels
	DY    float64  `json:"dy"`
	Scale float64  `json:"scale"` // about the area's centre; 1: none
	// X, Y and Zoom are added, and multiplied, up since the first frame.
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	Zoom float64 `json:"zoom"`
	// Share is how much, in %, of what changed the movement explains.
	Share float64 `json:"share"`
	How   string  `json:"how"`
}

// Moved says that the picture moved visibly: by a twentieth of a pixel or a
// thousandth of its scale.
func (s Step) Moved() bool {
	return s.How != None && (math.Hypot(s.DX, s.DY) >= 0.05 || math.Abs(s.Scale-1) >= 0.001)
}

// Path is the movement over a recording; Steps[0] is the first frame's.
type Path struct {
	Area  image.Rectangle `json:"-"`
	Steps []Step          `json:"steps"`
	Blank *Blank          `json:"-"` // nil unless it was asked for
}

// tracker compares each frame with the one before.
type tracker struct {
	frames visual.Frames
	access visual.Access
	o      Options

	rows, columns         *lineSet
	beforeLuma, nowLuma   []float32
	lumaFrame             int           // the frame whose luma nowLuma holds, −1 for none
	kept                  visual.Raster // frame keptFrame
	keptFrame, keepUntil  int
	pyramidOld, pyramidIn pyramid
}

// Track measures every frame's displacement.
func Track(frames visual.Frames, o Options) (*Path, error) {
	f := frames.Format()
	if o.End == 0 {
		o.End = frames.Len()
	}
	if o.Start < 0 || o.Start >= o.End || o.End > frames.Len() {
		return nil, fmt.Errorf("measure movement: frames %d … %d of a recording of %d: start must be before end and both inside",
			o.Start, o.End-1, frames.Len())
	}
	if o.Area.Empty() {
		o.Area = f.Bounds()
	}
	if !o.Area.In(f.Bounds()) {
		return nil, fmt.Errorf("measure movement: the area %v is not inside the frame %v", o.Area, f.Bounds())
	}
	access, err := visual.NewAccess(f)
	if err != nil {
		return nil, fmt.Errorf("measure movement: %w", err)
	}
	t := &tracker{frames: frames, access: access, o: o, lumaFrame: -1, keptFrame: -1}
	t.rows, t.columns = newLines(access, o, false), newLines(access, o, true)
	p := &Path{Area: o.Area}
	var blank *blanks
	if o.Blank != nil {
		blank = newBlanks(access, p, f.Rate, *o.Blank)
	}
	at := Step{Scale: 1, Zoom: 1, How: Still, Share: 100}
	for i := o.Start; i < o.End; i++ {
		info := frames.Info(i)
		step := Step{Scale: 1, How: Still, Share: 100}
		var pix visual.Raster
		if i == o.Start || len(info.Changed) > 0 {
			if step, pix, err = t.frame(i, i == o.Start); err != nil {
				return nil, fmt.Errorf("measure movement: frame %d: %w", i, err)
			}
		}
		at.X, at.Y, at.Zoom = at.X+step.DX, at.Y+step.DY, at.Zoom*step.Scale
		step.Frame, step.Time, step.X, step.Y, step.Zoom = i, info.Time, at.X, at.Y, at.Zoom
		p.Steps = append(p.Steps, step)
		if blank != nil {
			blank.step(pix)
		}
	}
	if blank != nil {
		p.Blank = blank.done()
	}
	return p, nil
}

// frame reads a frame and compares it with the one read before.
func (t *tracker) frame(i int, first bool) (step Step, pix visual.Raster, err error) {
	if pix, err = t.access.Read(t.frames, i); err == nil {
		step, pix, err = t.step(pix, i, first)
	}
	return step, pix, err
}

// step compares the frame with the one read before. It returns the frame again, since another may have been
// read meanwhile.
func (t *tracker) step(pix visual.Raster, frame int, first bool) (Step, visual.Raster, error) {
	t.rows.read(pix, !first)
	step := Step{Scale: 1, How: Still, Share: 100}
	if first || !t.rows.changed() {
		t.keep(pix, frame)
		return step, pix, nil
	}
	if dy, share, ok := t.rows.vote(); ok && !(t.o.Zoom && share < 0.9) {
		t.keep(pix, frame)
		return Step{DY: float64(dy), Scale: 1, Share: 100 * share, How: Exact}, pix, nil
	}
	pix, err := t.before(pix, frame)
	if err != nil {
		return step, pix, err
	}
	t.columns.read(t.kept, false)
	t.columns.read(pix, false)
	if dx, share, ok := t.columns.vote(); ok && !(t.o.Zoom && share < 0.9) {
		step = Step{DX: float64(dx), Scale: 1, Share: 100 * share, How: Exact}
	} else {
		step = t.estimate(pix, frame)
	}
	t.keep(pix, frame)
	return step, pix, nil
}

// keepFrames is for how many frames after one that the rows did not explain each frame
// is kept: those that follow will need it too, and reading backwards costs more.
const keepFrames = 120

// keep keeps the frame if the next one is likely to be compared with it, or if that costs nothing.
func (t *tracker) keep(pix visual.Raster, frame int) {
	if frame < t.keepUntil || pix.Lasting() {
		t.kept, t.keptFrame = pix.Copy(t.kept), frame
	}
}

// before makes kept the frame before, and returns the frame again.
func (t *tracker) before(pix visual.Raster, frame int) (visual.Raster, error) {
	t.keepUntil = frame + keepFrames
	// A frame that equals the one before it was not read.
	last := frame - 1
	for last > t.o.Start && len(t.frames.Info(last).Changed) == 0 {
		last--
	}
	if t.keptFrame == last {
		return pix, nil
	}
	old, err := t.access.Read(t.frames, last)
	if err != nil {
		return pix, fmt.Errorf("the frame before: %w", err)
	}
	t.kept, t.keptFrame = old.Copy(t.kept), last
	return t.access.Read(t.frames, frame)
}

// estimate fits a displacement, and a scale with Options.Zoom, to the two pictures.
func (t *tracker) estimate(pix visual.Raster, frame int) Step {
	if t.lumaFrame != t.keptFrame {
		t.nowLuma = t.luma(t.nowLuma, t.kept)
	}
	t.beforeLuma, t.nowLuma = t.nowLuma, t.luma(t.beforeLuma, pix)
	t.lumaFrame = frame
	size := t.o.Area.Size()
	t.pyramidOld.build(t.beforeLuma, size)
	t.pyramidIn.build(t.nowLuma, size)
	fit := align(&t.pyramidOld, &t.pyramidIn, t.o.Zoom)
	if fit.share < 0.5 {
		return Step{Scale: 1, Share: 100 * fit.share, How: None}
	}
	s := Step{DX: fit.dx, DY: fit.dy, Scale: fit.scale, Share: 100 * fit.share, How: Estimated}
	// A movement by whole pixels of a source without noise is exactly that.
	if t.o.Tolerance == (visual.Tolerance{}) && fit.scale == 1 {
		if x, y := math.Round(fit.dx), math.Round(fit.dy); math.Hypot(fit.dx-x, fit.dy-y) < 0.3 &&
			equalShare(t.beforeLuma, t.nowLuma, size, int(x), int(y)) > 0.7 {
			s.DX, s.DY, s.How = x, y, Exact
		}
	}
	return s
}

// luma reads the area's grey values.
func (t *tracker) luma(dst []float32, pix visual.Raster) []float32 {
	w, h := t.o.Area.Dx(), t.o.Area.Dy()
	if dst == nil {
		dst = make([]float32, w*h)
	}
	row := make([]uint32, w)
	for y := range h {
		t.access.Row(row, pix, t.o.Area.Min.Y+y, t.o.Area.Min.X)
		out := dst[y*w:][:w]
		for x, c := range row {
			out[x] = float32(t.access.Luma(c))
		}
	}
	return dst
}

// equalShare is the share of pixels with detail that are equal after the displacement.
func equalShare(old, now []float32, size image.Point, dx, dy int) float64 {
	equal, all := 0, 0
	for y := max(0, dy); y < min(size.Y, size.Y+dy); y += 2 {
		for x := max(1, dx+1); x < min(size.X, size.X+dx); x += 2 {
			a, b := old[(y-dy)*size.X+x-dx], now[y*size.X+x]
			if a == old[(y-dy)*size.X+x-dx-1] {
				continue // flat: says nothing
			}
			all++
			if a == b {
				equal++
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(equal) / float64(all)
}
