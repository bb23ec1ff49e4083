package settle

import (
	"image"
	"slices"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// Unrest notes where a screen goes on changing, so that a person can be told what to mask: a blinking
// caret, a carousel. A place counts that has changed at two instants or more.
type Unrest struct {
	content image.Rectangle
	columns int
	times   [][]lab.Time // of each cell, the latest instants of change
}

// The grain of Unrest: cells of 8 × 8 pixels, of which the latest instants of change are kept.
const (
	unrestCell  = 8
	unrestTimes = 4
)

// NewUnrest watches a content area.
func NewUnrest(content image.Rectangle) *Unrest {
	columns, rows := (content.Dx()+unrestCell-1)/unrestCell, (content.Dy()+unrestCell-1)/unrestCell
	return &Unrest{content: content, columns: columns, times: make([][]lab.Time, columns*rows)}
}

// Add takes in what differs between two pictures of the content area, the later one of an instant.
func (u *Unrest) Add(at lab.Time, before, after *visual.Picture) {
	for y := u.content.Min.Y; y < u.content.Max.Y; y++ {
		a, b := before.Row(y, u.content.Min.X, u.content.Max.X), after.Row(y, u.content.Min.X, u.content.Max.X)
		row := (y - u.content.Min.Y) / unrestCell * u.columns
		for x := range b {
			if a[x] == b[x] {
				continue
			}
			times := &u.times[row+x/unrestCell]
			if n := len(*times); n > 0 && (*times)[n-1] == at {
				continue
			}
			if *times = append(*times, at); len(*times) > unrestTimes {
				*times = slices.Delete(*times, 0, 1)
			}
		}
	}
}

// Regions returns the boxes, in pixels of the screen, of what has changed at two instants or more since
// an instant, largest first and at most eight. Places nearer than two cells are one.
func (u *Unrest) Regions(since lab.Time) []image.Rectangle {
	restless := make([]bool, len(u.times))
	for i, times := range u.times {
		n := 0
		for _, at := range times {
			if at >= since {
				n++
			}
		}
		restless[i] = n >= 2
	}
	var all []image.Rectangle
	for i := range restless {
		if restless[i] {
			all = append(all, u.box(u.connected(restless, i)))
		}
	}
	slices.SortStableFunc(all, func(a, b image.Rectangle) int { return b.Dx()*b.Dy() - a.Dx()*a.Dy() })
	return all[:min(len(all), 8)]
}

// connected takes a cell, and all that are near it, out of the restless ones, and returns their box in
// cells.
func (u *Unrest) connected(restless []bool, from int) (box image.Rectangle) {
	const near = 2
	rows := len(restless) / u.columns
	stack := []int{from}
	restless[from] = false
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		x, y := i%u.columns, i/u.columns
		box = box.Union(image.Rect(x, y, x+1, y+1))
		for ny := max(0, y-near); ny <= min(rows-1, y+near); ny++ {
			for nx := max(0, x-near); nx <= min(u.columns-1, x+near); nx++ {
				if k := ny*u.columns + nx; restless[k] {
					restless[k] = false
					stack = append(stack, k)
				}
			}
		}
	}
	return box
}

func (u *Unrest) box(cells image.Rectangle) image.Rectangle {
	r := image.Rect(cells.Min.X*unrestCell, cells.Min.Y*unrestCell, cells.Max.X*unrestCell, cells.Max.Y*unrestCell)
	return r.Add(u.content.Min).Intersect(u.content)
}
