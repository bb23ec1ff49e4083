package camera

import (
	"errors"
	"fmt"
	"math"

	"eidetic/internal/lab"
)

// Point is a place in the camera's picture, in pixels.
type Point struct{ X, Y float64 }

func (p Point) String() string { return fmt.Sprintf("%.1f,%.1f", p.X, p.Y) }

func (p Point) to(q Point) float64 { return math.Hypot(p.X-q.X, p.Y-q.Y) }

// Quad is the screen in the camera's picture: top left, top right, bottom right, bottom left.
type Quad [4]Point

// distance is how far the corner lies apart that moved farthest.
func (q Quad) distance(other Quad) (far float64) {
	for i := range q {
		far = max(far, q[i].to(other[i]))
	}
	return far
}

// reader returns the colour of a pixel, counted in rows from the top left.
type reader func(pix []byte, at int) (r, g, b byte)

// newReader reads a format; nil for one that is compressed.
func newReader(f lab.Format) reader {
	width, luma, yuv := f.Width, 0, f.YCbCr()
	switch f.Pixels {
	case lab.BGRX:
		return func(p []byte, at int) (r, g, b byte) { return p[4*at+2], p[4*at+1], p[4*at] }
	case lab.BGR24:
		return func(p []byte, at int) (r, g, b byte) { return p[3*at+2], p[3*at+1], p[3*at] }
	case lab.UYVY:
		luma = 1
		fallthrough
	case lab.YUYV:
		return func(p []byte, at int) (r, g, b byte) {
			pair := p[at&^1*2:][:4]
			return yuv.RGB(pair[at&1*2+luma], pair[1-luma], pair[3-luma])
		}
	case lab.NV12:
		return func(p []byte, at int) (r, g, b byte) {
			x, y := at%width, at/width
			uv := p[width*f.Height+y/2*2*((width+1)/2)+x&^1:][:2]
			return yuv.RGB(p[at], uv[0], uv[1])
		}
	}
	return nil
}

// greenness is positive for the green page under any light.
func greenness(r, g, b byte) float64 { return float64(g) - 1.25*float64(max(r, b)) - 10 }

// findQuad returns the corners of the biggest green area, which has four straight sides.
func findQuad(f lab.Format, read reader, pix []byte) (q Quad, ok bool) {
	const step = 4
	across, down := f.Width/step, f.Height/step
	green := make([]bool, across*down)
	for y := range down {
		for x := range across {
			green[y*across+x] = greenness(read(pix, y*step*f.Width+x*step)) > 0
		}
	}
	area := biggest(green, across)
	if 64*len(area) < across*down {
		return q, false
	}
	best := [4]int{math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt}
	for _, at := range area {
		x, y := at%across, at/across
		for i, far := range [4]int{x + y, y - x, -x - y, x - y} {
			if far < best[i] {
				best[i], q[i] = far, Point{float64(x*step) + step/2, float64(y*step) + step/2}
			}
		}
	}
	q, ok = refine(f, read, pix, q)
	if !ok {
		return q, false
	}
	// The area fills its corners' quadrilateral, or it is no screen.
	filled := float64(len(area)*step*step) / q.area()
	return q, filled > 0.85 && filled < 1.15
}

// area is that of the quadrilateral (shoelace formula).
func (q Quad) area() (sum float64) {
	for i, p := range q {
		n := q[(i+1)%4]
		sum += p.X*n.Y - n.X*p.Y
	}
	return math.Abs(sum) / 2
}

// biggest returns the places of the biggest connected area.
func biggest(set []bool, across int) (area []int) {
	seen := make([]bool, len(set))
	for start := range set {
		if !set[start] || seen[start] {
			continue
		}
		seen[start] = true
		part := []int{start}
		for i := 0; i < len(part); i++ {
			at := part[i]
			for _, next := range [4]int{at - 1, at + 1, at - across, at + across} {
				if next < 0 || next >= len(set) || (next == at-1 && at%across == 0) || (next == at+1 && next%across == 0) {
					continue
				}
				if set[next] && !seen[next] {
					seen[next] = true
					part = append(part, next)
				}
			}
		}
		if len(part) > len(area) {
			area = part
		}
	}
	return area
}

// refine fits a line to each side at the places where green ends, and returns where they meet.
func refine(f lab.Format, read reader, pix []byte, q Quad) (Quad, bool) {
	var sides [4]line
	for i := range sides {
		a, b := q[i], q[(i+1)%4]
		length := a.to(b)
		if length < 32 {
			return q, false
		}
		// Outwards, as the corners go round clockwise.
		out := Point{(b.Y - a.Y) / length, (a.X - b.X) / length}
		var edge []Point
		const places = 60
		for k := range places {
			along := 0.08 + 0.84*float64(k)/(places-1)
			p := Point{a.X + (b.X-a.X)*along, a.Y + (b.Y-a.Y)*along}
			if e, ok := edgeNear(f, read, pix, p, out); ok {
				edge = append(edge, e)
			}
		}
		var ok bool
		if sides[i], ok = fit(edge); !ok {
			return q, false
		}
	}
	for i := range q {
		p, ok := sides[(i+3)%4].meets(sides[i])
		if !ok {
			return q, false
		}
		q[i] = p
	}
	return q, true
}

// edgeNear walks outwards past a point and returns where green ends, between two pixels.
func edgeNear(f lab.Format, read reader, pix []byte, p, out Point) (Point, bool) {
	const reach = 14
	before, inside := 0.0, false
	for d := -float64(reach); d <= reach; d += 0.5 {
		x, y := int(p.X+out.X*d), int(p.Y+out.Y*d)
		if x < 0 || y < 0 || x >= f.Width || y >= f.Height {
			return Point{p.X + out.X*d, p.Y + out.Y*d}, inside // the screen goes beyond the picture
		}
		now := greenness(read(pix, y*f.Width+x))
		if inside && now <= 0 {
			at := d - 0.5*now/min(now-before, -1e-9)
			return Point{p.X + out.X*at, p.Y + out.Y*at}, true
		}
		inside = inside && now > 0 || now > 0
		before = now
	}
	return Point{}, false
}

// line is a·x + b·y = c, with a² + b² = 1.
type line struct{ a, b, c float64 }

// fit is the line with the least squared distances; the worst third is left out at the second try.
func fit(points []Point) (l line, ok bool) {
	for range 2 {
		n := float64(len(points))
		if n < 12 {
			return l, false
		}
		var m Point
		for _, p := range points {
			m.X, m.Y = m.X+p.X/n, m.Y+p.Y/n
		}
		var xx, xy, yy float64
		for _, p := range points {
			dx, dy := p.X-m.X, p.Y-m.Y
			xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
		}
		angle := math.Atan2(2*xy, xx-yy) / 2 // of the line
		l = line{-math.Sin(angle), math.Cos(angle), 0}
		l.c = l.a*m.X + l.b*m.Y
		var sum float64
		for _, p := range points {
			sum += math.Abs(l.a*p.X + l.b*p.Y - l.c)
		}
		bound := 1.5*sum/n + 0.1
		var near []Point
		for _, p := range points {
			if math.Abs(l.a*p.X+l.b*p.Y-l.c) <= bound {
				near = append(near, p)
			}
		}
		points = near
	}
	return l, true
}

func (l line) meets(m line) (Point, bool) {
	det := l.a*m.b - m.a*l.b
	if math.Abs(det) < 0.05 {
		return Point{}, false
	}
	return Point{(l.c*m.b - m.c*l.b) / det, (l.a*m.c - m.a*l.c) / det}, true
}

// mapping is a homography; its last element is 1.
type mapping [9]float64

func (m mapping) at(x, y float64) Point {
	w := m[6]*x + m[7]*y + m[8]
	return Point{(m[0]*x + m[1]*y + m[2]) / w, (m[3]*x + m[4]*y + m[5]) / w}
}

// homography maps the rectangle of a size to a quadrilateral.
func homography(width, height int, q Quad) (mapping, error) {
	w, h := float64(width), float64(height)
	var rows [8][9]float64
	for i, from := range [4]Point{{0, 0}, {w, 0}, {w, h}, {0, h}} {
		x, y, u, v := from.X, from.Y, q[i].X, q[i].Y
		rows[2*i] = [9]float64{x, y, 1, 0, 0, 0, -u * x, -u * y, u}
		rows[2*i+1] = [9]float64{0, 0, 0, x, y, 1, -v * x, -v * y, v}
	}
	for c := range rows { // Gauss and Jordan, with the largest element as the pivot
		pivot := c
		for r := c + 1; r < len(rows); r++ {
			if math.Abs(rows[r][c]) > math.Abs(rows[pivot][c]) {
				pivot = r
			}
		}
		if math.Abs(rows[pivot][c]) < 1e-12 {
			return mapping{}, errors.New("the four corners are no quadrilateral")
		}
		rows[c], rows[pivot] = rows[pivot], rows[c]
		for r := range rows {
			if r == c {
				continue
			}
			k := rows[r][c] / rows[c][c]
			for i := c; i < 9; i++ {
				rows[r][i] -= k * rows[c][i]
			}
		}
	}
	m := mapping{8: 1}
	for i := range rows {
		m[i] = rows[i][8] / rows[i][i]
	}
	return m, nil
}
