package visual

import (
	"fmt"
	"image"
	"image/color"

	"eidetic/internal/lab"
)

// Picture is a part of one frame in colour, whatever the format of the frames.
type Picture struct {
	Area image.Rectangle // in frame coordinates
	Pix  []uint32        // 0x00RRGGBB, rows from the top, Area.Dx() each
}

// PictureOf reads an area of a frame.
func PictureOf(f lab.Format, pix []byte, area image.Rectangle) (*Picture, error) {
	p, err := newPlane(f)
	if err == nil {
		err = p.check(pix)
	}
	if err != nil {
		return nil, err
	}
	if area.Empty() || !area.In(f.Bounds()) {
		return nil, fmt.Errorf("the area %v is not inside the frame %v", area, f.Bounds())
	}
	out := &Picture{Area: area, Pix: make([]uint32, area.Dx()*area.Dy())}
	for y := range area.Dy() {
		row := out.Pix[y*area.Dx():][:area.Dx()]
		p.row(row, pix, area.Min.Y+y, area.Min.X)
		if p.same {
			continue
		}
		for i, c := range row {
			row[i] = p.rgb(c)
		}
	}
	return out, nil
}

// Row returns the pixels of row y from x0 to x1, in frame coordinates.
func (p *Picture) Row(y, x0, x1 int) []uint32 {
	at := (y-p.Area.Min.Y)*p.Area.Dx() + x0 - p.Area.Min.X
	return p.Pix[at:][:x1-x0]
}

// HasColour says whether 99 % of the rectangles' pixels have a colour, by the rule of Shows.
func (p *Picture) HasColour(parts []image.Rectangle, c color.RGBA) bool {
	hits, n := 0, 0
	for _, r := range parts {
		r = r.Intersect(p.Area)
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for _, v := range p.Row(y, r.Min.X, r.Max.X) {
				if isNear(v, c) {
					hits++
				}
			}
		}
		n += r.Dx() * r.Dy()
	}
	return n > 0 && isFilled(hits, n)
}

// Image converts the picture.
func (p *Picture) Image() *image.RGBA {
	img := image.NewRGBA(image.Rectangle{Max: p.Area.Size()})
	for i, v := range p.Pix {
		img.Pix[4*i], img.Pix[4*i+1], img.Pix[4*i+2], img.Pix[4*i+3] = byte(v>>16), byte(v>>8), byte(v), 255
	}
	return img
}

// Without returns the rectangles that cover an area without the masks.
func Without(area image.Rectangle, masks []image.Rectangle) []image.Rectangle {
	parts := []image.Rectangle{area}
	for _, m := range masks {
		parts = subtract(parts, m)
	}
	return parts
}
