// Package diff finds which parts of a frame differ from the frame before, and which have only moved.
//
// Two frames of one format go in; rectangles come out that cover every
// differing byte and little else. Rows are compared whole first, because most
// rows of a screen do not change from one frame to the next and bytes.Equal
// runs at the speed of memory; only rows that differ are looked at in tiles.
package diff

import (
	"image"

	"eidetic/internal/lab"
)

// Plane is one array of a frame: rows of units. A unit is the smallest group
// of bytes that holds whole samples: a BGRX pixel, a YUYV pair, a UV pair.
type Plane struct {
	Off    int // bytes from the start of the frame
	Stride int // bytes of a row
	Rows   int
	Unit   int // bytes of a unit
	SX, SY int // pixels that a unit covers, across and down
}

// Planes returns the planes of a format; one of a single byte row for MJPEG is
// not meaningful, so it has none.
func Planes(f lab.Format) []Plane {
	w, h := f.Width, f.Height
	switch f.Pixels {
	case lab.BGRX:
		return []Plane{{0, 4 * w, h, 4, 1, 1}}
	case lab.BGR24:
		return []Plane{{0, 3 * w, h, 3, 1, 1}}
	case lab.YUYV, lab.UYVY:
		if w%2 == 1 { // the last pair is cut: fall back to single samples
			return []Plane{{0, 2 * w, h, 2, 1, 1}}
		}
		return []Plane{{0, 2 * w, h, 4, 2, 1}}
	case lab.NV12:
		return []Plane{{0, w, h, 1, 1, 1}, {w * h, 2 * ((w + 1) / 2), (h + 1) / 2, 2, 2, 2}}
	case lab.Grey:
		return []Plane{{0, w, h, 1, 1, 1}}
	default:
		return nil
	}
}

// Units returns the number of units in a row.
func (p Plane) Units() int { return p.Stride / p.Unit }

// Size returns the bytes of the plane.
func (p Plane) Size() int { return p.Stride * p.Rows }

// Bounds is the whole plane in units and rows.
func (p Plane) Bounds() image.Rectangle { return image.Rect(0, 0, p.Units(), p.Rows) }

// Row returns the bytes of row y between units x0 and x1.
func (p Plane) Row(pix []byte, y, x0, x1 int) []byte {
	start := p.Off + y*p.Stride
	return pix[start+x0*p.Unit : start+x1*p.Unit]
}

// Copy copies areas of pixels from one frame of format f to another.
func Copy(f lab.Format, to, from []byte, areas []image.Rectangle) {
	for _, p := range Planes(f) {
		for _, a := range areas {
			r := p.FromPixels(a)
			for y := r.Min.Y; y < r.Max.Y; y++ {
				copy(p.Row(to, y, r.Min.X, r.Max.X), p.Row(from, y, r.Min.X, r.Max.X))
			}
		}
	}
}

// FromPixels returns the units that cover the rectangle r of pixels.
func (p Plane) FromPixels(r image.Rectangle) image.Rectangle {
	return image.Rect(r.Min.X/p.SX, r.Min.Y/p.SY, (r.Max.X+p.SX-1)/p.SX, (r.Max.Y+p.SY-1)/p.SY).Intersect(p.Bounds())
}

// ToPixels returns the pixels that the units of r cover.
func (p Plane) ToPixels(r image.Rectangle) image.Rectangle {
	return image.Rect(r.Min.X*p.SX, r.Min.Y*p.SY, r.Max.X*p.SX, r.Max.Y*p.SY)
}
