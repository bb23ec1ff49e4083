package settle

import (
	"fmt"
	"image"
	"slices"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// RestlessOptions says where Restless looks.
type RestlessOptions struct {
	Options
	Tolerance visual.Tolerance
}

// restlessCell is the side of the cells whose changes are counted, and restlessGap how far, in
// cells, parts of one thing may be apart, as the letters of a clock are.
const (
	restlessCell = 8
	restlessGap  = 2
)

// mostRestless is the largest share of the area, in per cent, that may be restless: where more moves
// until the end, the picture as a whole has not settled, and nothing is proposed. mostBoxes
// bounds the list.
const (
	mostRestless = 25
	mostBoxes    = 8
)

// Restless proposes what to ignore: boxes around what changes again and again until the end, while
// the rest is still, as a caret, a clock or a carousel does. A cell is restless if it changes in both
// halves of the second half of the recording.
func Restless(frames visual.Frames, o RestlessOptions) ([]image.Rectangle, error) {
	w, err := newWalk(frames, o.Options)
	if err != nil {
		return nil, fmt.Errorf("look for what never settles: %w", err)
	}
	first, last := frames.Info(w.o.Start).Time, frames.Info(w.o.End-1).Time
	half, quarter := first.Add(last.Sub(first)/2), last.Add(-last.Sub(first)/4)
	g := newGrid(w, o)
	for i := w.o.Start + 1; i < w.o.End; i++ {
		info := frames.Info(i)
		if info.Time < half || len(info.Changed) == 0 {
			continue
		}
		if err := g.look(i, info, info.Time >= quarter); err != nil {
			return nil, fmt.Errorf("look for what never settles: frame %d: %w", i, err)
		}
	}
	return g.boxes(), nil
}

// grid notes which cells of the area changed in each of two spans.
type grid struct {
	w        *walk
	o        RestlessOptions
	nx, ny   int
	seen     [2][]bool
	old, row []uint32
	have     bool // old is a frame
}

func newGrid(w *walk, o RestlessOptions) *grid {
	g := &grid{w: w, o: o}
	g.nx, g.ny = (w.o.Area.Dx()+restlessCell-1)/restlessCell, (w.o.Area.Dy()+restlessCell-1)/restlessCell
	for k := range g.seen {
		g.seen[k] = make([]bool, g.nx*g.ny)
	}
	g.old, g.row = make([]uint32, w.o.Area.Dx()*w.o.Area.Dy()), make([]uint32, w.o.Area.Dx())
	return g
}

// look compares a frame with the one before, where it may differ.
func (g *grid) look(frame int, info lab.FrameInfo, late bool) error {
	a := g.w.o.Area
	if !g.have {
		pix, err := g.w.access.Read(g.w.frames, frame-1)
		if err != nil {
			return err
		}
		for y := range a.Dy() {
			g.w.access.Row(g.old[y*a.Dx():][:a.Dx()], pix, a.Min.Y+y, a.Min.X)
		}
		g.have = true
	}
	pix, err := g.w.access.Read(g.w.frames, frame)
	if err != nil {
		return err
	}
	seen := g.seen[0]
	if late {
		seen = g.seen[1]
	}
	var parts []image.Rectangle
	for _, r := range info.Changed {
		parts = append(parts, visual.Without(r.Intersect(a), g.o.Ignore)...)
	}
	for _, r := range parts {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			row := g.row[:r.Dx()]
			g.w.access.Row(row, pix, y, r.Min.X)
			old := g.old[(y-a.Min.Y)*a.Dx()+r.Min.X-a.Min.X:][:len(row)]
			for x, c := range row {
				if c == old[x] || g.o.Tolerance.Same(c, old[x]) {
					continue
				}
				old[x] = c
				seen[(y-a.Min.Y)/restlessCell*g.nx+(r.Min.X-a.Min.X+x)/restlessCell] = true
			}
		}
	}
	return nil
}

// boxes joins the restless cells, the largest box first.
func (g *grid) boxes() []image.Rectangle {
	restless, n := make([]bool, g.nx*g.ny), 0
	for i := range restless {
		if restless[i] = g.seen[0][i] && g.seen[1][i]; restless[i] {
			n++
		}
	}
	if n == 0 || 100*n > mostRestless*len(restless) {
		return nil
	}
	var out []image.Rectangle
	for from := range restless {
		if !restless[from] {
			continue
		}
		cells := image.Rect(from%g.nx, from/g.nx, from%g.nx+1, from/g.nx+1)
		stack := []int{from}
		restless[from] = false
		for len(stack) > 0 {
			at := image.Pt(stack[len(stack)-1]%g.nx, stack[len(stack)-1]/g.nx)
			stack = stack[:len(stack)-1]
			cells = cells.Union(image.Rectangle{at, at.Add(image.Pt(1, 1))})
			near := image.Rect(at.X-restlessGap, at.Y-restlessGap, at.X+restlessGap+1, at.Y+restlessGap+1).Intersect(image.Rect(0, 0, g.nx, g.ny))
			for y := near.Min.Y; y < near.Max.Y; y++ {
				for x := near.Min.X; x < near.Max.X; x++ {
					if k := y*g.nx + x; restless[k] {
						restless[k] = false
						stack = append(stack, k)
					}
				}
			}
		}
		box := image.Rectangle{cells.Min.Mul(restlessCell), cells.Max.Mul(restlessCell)}.Add(g.w.o.Area.Min).Intersect(g.w.o.Area)
		if !slices.ContainsFunc(g.o.Ignore, func(r image.Rectangle) bool { return box.In(r) }) {
			out = append(out, box)
		}
	}
	slices.SortStableFunc(out, func(a, b image.Rectangle) int { return b.Dx()*b.Dy() - a.Dx()*a.Dy() })
	return out[:min(len(out), mostBoxes)]
}
