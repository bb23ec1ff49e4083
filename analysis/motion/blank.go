package motion

import (
	"fmt"
	"image"
	"image/color"
	"maps"
	"math"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// BlankOptions says what is blank.
type BlankOptions struct {
	// Colour is the colour of what has not been drawn yet, such as Eideticker's magenta. A zero
	// alpha: blank is what has one colour now and is filled later, found by following the
	// movement.
	Colour color.RGBA
	Ignore []image.Rectangle
	// Within bounds, without a colour, the frames in which a blank piece is drawn; what is drawn
	// later is another thing that happened. Zero: 120.
	Within int
}

// Magenta returns the colour that Eideticker had the browser paint undrawn areas with.
func Magenta() color.RGBA { return color.RGBA{R: 255, B: 255, A: 255} }

// Blank is how much of the area was not drawn.
type Blank struct {
	Start  int
	Share  []float64 // % of the area in each frame
	Boxes  []float64 // % of the area: the biggest box of the colour (Eideticker); nil without a colour
	How    string
	Period float64 // ms from frame to frame
	// Filled holds, for each blank spell of a piece of the picture, the frames until it was drawn.
	Filled []int
}

// cellSide is the side of the pieces whose fill is followed.
const cellSide = 8

// Blanks measures each frame of a path. With a colour, its pixels are counted. Without, the
// picture is cut into pieces of 8 × 8 pixels that move with it: a piece is blank
// from the frame with movement in which it came into view, or took one colour, until it first
// shows more than one colour. A piece that never does was no blank but is what it is: paper.
func (p *Path) Blanks(frames visual.Frames, o BlankOptions) (*Blank, error) {
	access, err := visual.NewAccess(frames.Format())
	if err != nil {
		return nil, fmt.Errorf("measure blank areas: %w", err)
	}
	b := &blanks{frames: frames, access: access, path: p, o: o, row: make([]uint32, p.Area.Dx())}
	if o.Within <= 0 {
		b.o.Within = 120
	}
	out := &Blank{Share: make([]float64, len(p.Steps)), Period: 1e3 / frames.Format().Rate}
	if len(p.Steps) > 0 {
		out.Start = p.Steps[0].Frame
	}
	if o.Colour.A != 0 {
		out.How = fmt.Sprintf("pixels near #%02x%02x%02x (|ΔR|+|ΔG|+|ΔB| < 30)", o.Colour.R, o.Colour.G, o.Colour.B)
		err = b.coloured(out)
	} else {
		out.How = fmt.Sprintf("pieces of %d × %d pixels of one colour that are drawn later, followed along the movement", cellSide, cellSide)
		err = b.learned(out)
	}
	if err != nil {
		return nil, fmt.Errorf("measure blank areas: %w", err)
	}
	return out, nil
}

type blanks struct {
	frames visual.Frames
	access visual.Access
	path   *Path
	o      BlankOptions
	row    []uint32
}

func (b *blanks) pixels(i int) ([]byte, error) {
	frame := b.path.Steps[i].Frame
	pix, err := b.frames.Pixels(frame)
	if err == nil {
		err = b.access.Check(pix)
	}
	if err != nil {
		return nil, fmt.Errorf("frame %d: %w", frame, err)
	}
	return pix, nil
}

func (b *blanks) ignored(x, y int) bool {
	for _, r := range b.o.Ignore {
		if image.Pt(x, y).In(r) {
			return true
		}
	}
	return false
}

// coloured counts pixels, and finds the biggest box as Eideticker does.
func (b *blanks) coloured(out *Blank) error {
	a := b.path.Area
	set := make([]bool, a.Dx()*a.Dy())
	out.Boxes = make([]float64, len(b.path.Steps))
	since := -1
	for i, s := range b.path.Steps {
		if i > 0 && len(b.frames.Info(s.Frame).Changed) == 0 {
			out.Share[i], out.Boxes[i] = out.Share[i-1], out.Boxes[i-1]
			continue
		}
		pix, err := b.pixels(i)
		if err != nil {
			return err
		}
		n := 0
		last, hit := ^uint32(0), false
		for y := range a.Dy() {
			b.access.Row(b.row, pix, a.Min.Y+y, a.Min.X)
			for x, c := range b.row {
				if c != last {
					last, hit = c, visual.IsNear(b.access.RGB(c), b.o.Colour)
				}
				is := hit && (len(b.o.Ignore) == 0 || !b.ignored(a.Min.X+x, a.Min.Y+y))
				set[y*a.Dx()+x] = is
				if is {
					n++
				}
			}
		}
		all := float64(len(set))
		out.Share[i] = 100 * float64(n) / all
		if n > 0 {
			box := visual.LargestRectangle(set, a.Dx())
			out.Boxes[i] = 100 * float64(box.Dx()*box.Dy()) / all
		}
		switch {
		case n > 0 && since < 0:
			since = i
		case n == 0 && since >= 0:
			out.Filled, since = append(out.Filled, i-since), -1
		}
	}
	return nil
}

// cell is a piece of the picture that has one colour.
type cell struct {
	since int // index of the step since which it has
	seen  int // the last step at which it was in view
}

// learned follows the pieces.
func (b *blanks) learned(out *Blank) error {
	a := b.path.Area
	cells := map[image.Point]cell{}
	delta := make([]int, len(b.path.Steps)+1) // blank pieces: changes of their number
	in := make([]int, len(b.path.Steps))      // pieces in view
	for i, s := range b.path.Steps {
		if i > 0 && len(b.frames.Info(s.Frame).Changed) == 0 {
			in[i] = in[i-1]
			continue
		}
		pix, err := b.pixels(i)
		if err != nil {
			return err
		}
		flat, origin, size := b.pieces(pix, s)
		in[i] = size.X * size.Y
		for k, one := range flat {
			at := origin.Add(image.Pt(k%size.X, k/size.X))
			box := image.Rect(0, 0, cellSide, cellSide).Add(b.onScreen(at, s)).Add(a.Min)
			if b.ignored(box.Min.X, box.Min.Y) || b.ignored(box.Max.X-1, box.Max.Y-1) {
				continue
			}
			c, there := cells[at]
			if there && c.seen < i-1 && b.left(c.seen, i, at) {
				there = false // it had left the view, and begins anew
			}
			switch {
			case one && !there:
				cells[at] = cell{i, i}
			case one:
				cells[at] = cell{c.since, i}
			default:
				delete(cells, at)
				if there && i-c.since <= b.o.Within && b.path.Steps[c.since].Moved() {
					delta[c.since]++
					delta[i]--
					out.Filled = append(out.Filled, i-c.since)
				}
			}
		}
		if i%256 == 255 { // pieces that left the view and never came back
			maps.DeleteFunc(cells, func(_ image.Point, c cell) bool { return c.seen < i-b.o.Within })
		}
	}
	n := 0
	for i := range out.Share {
		n += delta[i]
		if in[i] > 0 {
			out.Share[i] = 100 * float64(n) / float64(in[i])
		}
	}
	return nil
}

// left says whether a piece was out of view in a frame between two that showed it.
func (b *blanks) left(from, to int, at image.Point) bool {
	for i := from + 1; i < to; i++ {
		p := b.onScreen(at, b.path.Steps[i])
		if p.X < 0 || p.Y < 0 || p.X+cellSide > b.path.Area.Dx() || p.Y+cellSide > b.path.Area.Dy() {
			return true
		}
	}
	return false
}

// onScreen is the corner of a piece within the area.
func (b *blanks) onScreen(at image.Point, s Step) image.Point {
	return image.Pt(at.X*cellSide+int(math.Round(s.X)), at.Y*cellSide+int(math.Round(s.Y)))
}

// pieces says of each piece that is in view as a whole whether it has one colour.
func (b *blanks) pieces(pix []byte, s Step) (flat []bool, origin, size image.Point) {
	a := b.path.Area
	ceil := func(n int) int { return int(math.Ceil(float64(n) / cellSide)) }
	floor := func(n int) int { return int(math.Floor(float64(n) / cellSide)) }
	x, y := int(math.Round(s.X)), int(math.Round(s.Y))
	origin = image.Pt(ceil(-x), ceil(-y))
	size = image.Pt(max(floor(a.Dx()-x)-origin.X, 0), max(floor(a.Dy()-y)-origin.Y, 0))
	flat = make([]bool, size.X*size.Y)
	if len(flat) == 0 {
		return flat, origin, size
	}
	left, top := origin.X*cellSide+x, origin.Y*cellSide+y
	row := b.row[:size.X*cellSide]
	first := make([]uint32, size.X)
	for py := range size.Y * cellSide {
		b.access.Row(row, pix, a.Min.Y+top+py, a.Min.X+left)
		cells := flat[py/cellSide*size.X:][:size.X]
		for cx := range size.X {
			px := row[cx*cellSide:][:cellSide]
			if py%cellSide == 0 {
				first[cx], cells[cx] = px[0], true
			}
			if !cells[cx] {
				continue
			}
			for _, c := range px {
				if c != first[cx] {
					cells[cx] = false
					break
				}
			}
		}
	}
	return flat, origin, size
}

// Measurements returns the blank share in single numbers.
func (b *Blank) Measurements() []lab.Measurement {
	sum, most, at := 0.0, 0.0, 0
	for i, s := range b.Share {
		sum += s
		if s > most {
			most, at = s, i
		}
	}
	out := []lab.Measurement{
		{Name: "blank_sum", Value: sum / 100, Unit: "frames", Method: "sum over the frames of the blank share of the area (Eideticker's " +
			"checkerboard, by share instead of by box): " + b.How},
		{Name: "blank_most_percent", Value: most, Unit: "%", Method: "largest blank share of a frame: " + b.How, Frames: []int{b.Start + at}},
		{Name: "blank_mean_percent", Value: sum / float64(max(len(b.Share), 1)), Unit: "%", Method: "mean over the frames of the blank share " +
			"of the area: " + b.How},
	}
	if b.Boxes != nil {
		boxes := 0.0
		for _, s := range b.Boxes {
			boxes += s
		}
		out = append(out, lab.Measurement{Name: "checkerboard", Value: boxes / 100, Unit: "frames", Method: "sum over the frames of the " +
			"biggest box of the colour ÷ the area (Eideticker, checkerboard): " + b.How})
	}
	if n := len(b.Filled); n > 0 {
		longest := 0
		for _, f := range b.Filled {
			longest = max(longest, f)
		}
		out = append(out, lab.Measurement{Name: "blank_longest_frames", Value: float64(longest), Unit: "frames",
			Method: "most frames for which a piece of the picture stayed blank until it was drawn: " + b.How})
	}
	return out
}

// BlankNames returns the names of the measurements of blank areas.
func BlankNames() []string {
	return []string{"blank_sum", "blank_most_percent", "blank_mean_percent", "checkerboard", "blank_longest_frames"}
}
