package visual

import (
	"errors"
	"fmt"
	"image"
	"image/color"

	"eidetic/internal/lab"
)

// Access reads the pixels of any format as numbers, for the packages that measure
// motion, tearing and the rest from the same frames.
type Access struct{ plane plane }

// NewAccess refuses formats whose pixels cannot be read at any place.
func NewAccess(f lab.Format) (Access, error) {
	p, err := newPlane(f)
	return Access{p}, err
}

// Row writes the pixels x0 … x0+len(dst)−1 of row y as numbers that are equal
// exactly when the captured pixels are: 0x00RRGGBB or 0x00YYUUVV.
func (a Access) Row(dst []uint32, r Raster, y, x0 int) {
	mem, at := r.line(y)
	a.plane.row(dst, mem, at, x0)
}

// RGB turns such a number into 0x00RRGGBB.
func (a Access) RGB(c uint32) uint32 { return a.plane.rgb(c) }

// Colours turns such numbers into 0x00RRGGBB, in place.
func (a Access) Colours(row []uint32) {
	if a.plane.same {
		return
	}
	for i, c := range row {
		row[i] = a.plane.rgb(c)
	}
}

// Luma is Pillow's grey value of such a number, 0 … 255.
func (a Access) Luma(c uint32) int { return luma(a.plane.rgb(c)) }

// IsNear says whether a pixel (0x00RRGGBB) has the colour, by Eideticker's rule:
// |ΔR|+|ΔG|+|ΔB| < 30.
func IsNear(rgb uint32, c color.RGBA) bool { return isNear(rgb, c) }

// Tolerance is how far a pixel's three channels may each move, in their own
// codes (R, G, B or Y, U, V), without counting as changed. The zero value
// lets nothing pass, which is right for a lossless source.
type Tolerance [3]uint8

// Same says whether two pixels are equal within the tolerance.
func (t Tolerance) Same(a, b uint32) bool {
	if a == b {
		return true
	}
	if t == (Tolerance{}) {
		return false
	}
	within := func(shift int, limit uint8) bool {
		d := int(a>>shift&255) - int(b>>shift&255)
		return max(d, -d) <= int(limit)
	}
	return within(16, t[0]) && within(8, t[1]) && within(0, t[2])
}

// String writes the tolerance for a method's text.
func (t Tolerance) String() string { return fmt.Sprintf("%d,%d,%d", t[0], t[1], t[2]) }

// Region is a named part of the frame.
type Region struct {
	Name string          `json:"name"`
	Area image.Rectangle `json:"area"` // in frame coordinates
}

// ChangeOptions says what Changes counts.
type ChangeOptions struct {
	Start, End int // frames; zero End: all
	// EndPage ends the frames as in Options.
	EndPage color.RGBA
	// Regions in frame coordinates; none: the whole frame.
	Regions []Region
	// Ignore is left out of every region.
	Ignore []image.Rectangle
	// Tolerance of a pixel before it counts as changed. A pixel is compared with the
	// value that it last changed to, so that a slow fade is seen when it adds up.
	Tolerance Tolerance
	// LumaStep is the step of luma that LumaChanged asks for; zero: Eideticker's 5.
	LumaStep int
	// Any asks only whether any pixel of a region differs: Changed is 1 then, and LumaChanged 0.
	Any bool
	// NoLuma leaves LumaChanged at 0, which is quicker.
	NoLuma bool
}

// Curve is what changed in one region, frame by frame from Start on.
type Curve struct {
	Region
	Pixels      int   // in the region, without what is ignored
	Changed     []int // pixels that differ from the frame before
	LumaChanged []int // those whose luma differs by LumaStep or more
}

// Curves is the outcome of Changes.
type Curves struct {
	Start, End int
	Format     lab.Format
	Tolerance  Tolerance
	LumaStep   int
	Infos      []lab.FrameInfo // of the same frames; Changed is nil in them
	Regions    []Curve
}

// Changes counts, in one walk, the changed pixels of several regions.
func Changes(frames Frames, o ChangeOptions) (*Curves, error) {
	f := frames.Format()
	if len(o.Regions) == 0 {
		o.Regions = []Region{{"frame", f.Bounds()}}
	}
	if o.LumaStep == 0 {
		o.LumaStep = lumaStep
	}
	base, err := Options{Start: o.Start, End: o.End, EndPage: o.EndPage, Content: o.Regions[0].Area}.withDefaults(f, frames.Len())
	if err != nil {
		return nil, fmt.Errorf("count changes: %w", err)
	}
	w, err := newChangeWalk(f, o)
	if err != nil {
		return nil, fmt.Errorf("count changes: %w", err)
	}
	if o.EndPage.A != 0 {
		s, err := newScreen(f, base.Content, o.Ignore)
		if err != nil {
			return nil, fmt.Errorf("count changes: %w", err)
		}
		if base.End, err = s.contentEnd(frames, base); err != nil {
			return nil, fmt.Errorf("count changes: %w", err)
		}
	}
	out := &Curves{Start: base.Start, End: base.End, Format: f, Tolerance: o.Tolerance, LumaStep: o.LumaStep}
	n := base.End - base.Start
	for _, g := range w.regions {
		out.Regions = append(out.Regions, Curve{g.Region, g.pixels, make([]int, n), make([]int, n)})
	}
	for i := range n {
		info := frames.Info(base.Start + i)
		changed := info.Changed
		info.Changed = nil
		out.Infos = append(out.Infos, info)
		if i > 0 && len(changed) == 0 {
			continue
		}
		pix, err := Access{w.plane}.Read(frames, base.Start+i)
		if err != nil {
			return nil, fmt.Errorf("count changes: frame %d: %w", base.Start+i, err)
		}
		if i == 0 {
			w.first(pix)
			continue
		}
		for k := range w.regions {
			w.regions[k].changed, w.regions[k].luma = 0, 0
		}
		w.apply(pix, changed)
		for k, g := range w.regions {
			out.Regions[k].Changed[i], out.Regions[k].LumaChanged[i] = g.changed, g.luma
		}
	}
	return out, nil
}

// changeWalk holds the picture that the next frame is compared with.
type changeWalk struct {
	plane    plane
	bounds   image.Rectangle // of all regions
	regions  []changeRegion
	cur, row []code
	last     Raster // instead of cur, of BGRX without a tolerance: the frame before
	isRaw    bool
	o        ChangeOptions
}

type changeRegion struct {
	Region
	parts                 []image.Rectangle // without what is ignored
	pixels, changed, luma int
}

func newChangeWalk(f lab.Format, o ChangeOptions) (*changeWalk, error) {
	p, err := newPlane(f)
	if err != nil {
		return nil, err
	}
	w := &changeWalk{plane: p, o: o}
	for _, g := range o.Regions {
		if g.Area.Empty() || !g.Area.In(f.Bounds()) {
			return nil, fmt.Errorf("region %q: the area %v is empty or not inside the frame %v", g.Name, g.Area, f.Bounds())
		}
		c := changeRegion{Region: g, parts: []image.Rectangle{g.Area}}
		for _, r := range o.Ignore {
			c.parts = subtract(c.parts, r)
		}
		for _, r := range c.parts {
			c.pixels += r.Dx() * r.Dy()
		}
		if c.pixels == 0 {
			return nil, fmt.Errorf("region %q: the ignored areas cover the whole of %v", g.Name, g.Area)
		}
		w.bounds = w.bounds.Union(g.Area)
		w.regions = append(w.regions, c)
	}
	if p.bgrx && o.Tolerance == (Tolerance{}) {
		w.isRaw = true
		return w, nil
	}
	w.cur, w.row = make([]code, w.bounds.Dx()*w.bounds.Dy()), make([]code, w.bounds.Dx())
	return w, nil
}

func (w *changeWalk) first(pix Raster) {
	if w.isRaw {
		w.last = pix.Copy(w.last)
		return
	}
	width := w.bounds.Dx()
	for y := w.bounds.Min.Y; y < w.bounds.Max.Y; y++ {
		Access{w.plane}.Row(w.cur[(y-w.bounds.Min.Y)*width:][:width], pix, y, w.bounds.Min.X)
	}
}

func (w *changeWalk) apply(pix Raster, changed []image.Rectangle) {
	if w.isRaw {
		var seen []image.Rectangle
		for _, r := range changed {
			for _, part := range Without(r.Intersect(w.bounds), seen) { // no pixel counts twice
				w.applyRaw(pix, part)
			}
			seen = append(seen, r)
		}
		if pix.Lasting() || w.last.Lasting() {
			w.last = pix.Copy(Raster{})
		}
		return
	}
	for _, r := range changed {
		r = r.Intersect(w.bounds)
		for y := r.Min.Y; y < r.Max.Y; y++ {
			next := w.row[:r.Dx()]
			Access{w.plane}.Row(next, pix, y, r.Min.X)
			cur := w.cur[(y-w.bounds.Min.Y)*w.bounds.Dx()+r.Min.X-w.bounds.Min.X:][:len(next)]
			from := firstDifference(cur, next)
			if from == len(next) {
				continue
			}
			for k := range w.regions {
				w.regions[k].count(cur, next, r.Min.X, from, y, w)
			}
			if w.o.Tolerance == (Tolerance{}) {
				copy(cur, next)
				continue
			}
			for x := from; x < len(next); x++ {
				if !w.o.Tolerance.Same(cur[x], next[x]) {
					cur[x] = next[x]
				}
			}
		}
	}
}

// count adds the pixels of a row that differ; x0 is the frame's x of the row's first.
func (g *changeRegion) count(cur, next []code, x0, from, y int, w *changeWalk) {
	for _, part := range g.parts {
		if y < part.Min.Y || y >= part.Max.Y {
			continue
		}
		end := min(part.Max.X-x0, len(next))
		for x := max(part.Min.X-x0, from); x < end; x++ {
			if cur[x] == next[x] || !w.differ(cur[x], next[x]) {
				continue
			}
			g.changed++
			if d := luma(w.plane.rgb(cur[x])) - luma(w.plane.rgb(next[x])); d >= w.o.LumaStep || -d >= w.o.LumaStep {
				g.luma++
			}
		}
	}
}

func (w *changeWalk) differ(a, b code) bool {
	return w.o.Tolerance == (Tolerance{}) || !w.o.Tolerance.Same(a, b)
}

// ErrNoStill is returned by Noise where there are no two frames to compare.
var ErrNoStill = errors.New("noise can be measured only in two or more frames of a still picture")

// Noise measures a source's noise where the screen is known to be still: the
// synchronisation page. The tolerance is, for each channel, the largest
// difference of a pixel from the mean of its extremes over the frames first … last,
// doubled (two pixels are compared), and a quarter more for what so few frames have
// not shown. It is zero for a source without noise. A lossy source that is clean
// on a flat colour may still be noisy at edges: a tolerance can be set by hand.
func Noise(frames Frames, area image.Rectangle, first, last int) (Tolerance, error) {
	p, err := newPlane(frames.Format())
	if err != nil {
		return Tolerance{}, err
	}
	if area = area.Intersect(frames.Format().Bounds()); area.Empty() || last <= first || first < 0 || last >= frames.Len() {
		return Tolerance{}, ErrNoStill
	}
	// The page's edge may still be painted in the first frame, and a second is enough.
	const most = 30
	last = min(last, first+most)
	n := area.Dx() * area.Dy()
	low, high, row := make([]code, n), make([]code, n), make([]code, area.Dx())
	for i := first; i <= last; i++ {
		if i > first && len(frames.Info(i).Changed) == 0 {
			continue
		}
		pix, err := Access{p}.Read(frames, i)
		if err != nil {
			return Tolerance{}, fmt.Errorf("measure noise: frame %d: %w", i, err)
		}
		for y := range area.Dy() {
			Access{p}.Row(row, pix, area.Min.Y+y, area.Min.X)
			lo, hi := low[y*area.Dx():][:len(row)], high[y*area.Dx():][:len(row)]
			if i == first {
				copy(lo, row)
				copy(hi, row)
				continue
			}
			for x, c := range row {
				lo[x], hi[x] = extremes(lo[x], hi[x], c)
			}
		}
	}
	return toleranceOf(low, high), nil
}

// extremes widens the range of each channel to hold c.
func extremes(lo, hi, c code) (code, code) {
	if lo == c && hi == c {
		return lo, hi
	}
	var l, h code
	for shift := 0; shift <= 16; shift += 8 {
		v := c >> shift & 255
		l |= min(lo>>shift&255, v) << shift
		h |= max(hi>>shift&255, v) << shift
	}
	return l, h
}

func toleranceOf(low, high []code) Tolerance {
	var most [3]int
	for i := range low {
		for c := range most {
			shift := 16 - 8*c
			most[c] = max(most[c], int(high[i]>>shift&255)-int(low[i]>>shift&255))
		}
	}
	var t Tolerance
	for c, span := range most {
		t[c] = uint8(min((span*5+3)/4, 255))
	}
	return t
}

// LargestRectangle returns the largest rectangle of set pixels in a picture of a width.
func LargestRectangle(set []bool, width int) image.Rectangle {
	if width < 1 {
		return image.Rectangle{}
	}
	m := &mask{bounds: image.Rect(0, 0, width, len(set)/width), set: set}
	return m.largestRectangle()
}
