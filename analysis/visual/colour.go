package visual

import (
	"image"
	"image/color"

	"eidetic/internal/lab"
)

// colourTolerance is the largest sum of channel differences, exclusive, that
// still counts as a colour (Eideticker's value).
const colourTolerance = 30

// isNear says whether a pixel (0x00RRGGBB) has the colour.
func isNear(rgb uint32, c color.RGBA) bool {
	d := func(x uint32, y uint8) int {
		v := int(x&255) - int(y)
		return max(v, -v)
	}
	return d(rgb>>16, c.R)+d(rgb>>8, c.G)+d(rgb, c.B) < colourTolerance
}

// isFilled says whether hits of n pixels make an area one colour: a mouse
// pointer or a blinking caret, at most 1 % of the area, does not count.
func isFilled(hits, n int) bool { return 100*hits >= 99*n }

// ShowsIn says whether an area of a picture is all of one colour, by the rule that
// FindContent and Options.EndPage follow too. Only every 8th pixel of every 8th row is
// read, since a running trial asks 50 times a second. A picture whose pixels
// cannot be read at any place (MJPEG, too few bytes) does not show the colour.
func ShowsIn(f lab.Format, pix []byte, area image.Rectangle, c color.RGBA) bool {
	p, err := newPlane(f)
	if err != nil || len(pix) < f.FrameSize() || area.Empty() || !area.In(f.Bounds()) {
		return false
	}
	const step = 8
	n := ((area.Dx() + step - 1) / step) * ((area.Dy() + step - 1) / step)
	return isFilled(p.count(pix, area, step, c), n)
}

// count returns how many pixels of an area have the colour, of every step-th
// pixel in every step-th row.
func (p plane) count(pix []byte, area image.Rectangle, step int, c color.RGBA) int {
	hits := 0
	row := make([]code, area.Dx())
	lastCode, lastHit := ^code(0), false
	for y := area.Min.Y; y < area.Max.Y; y += step {
		p.row(row, pix, y, area.Min.X)
		for x := 0; x < len(row); x += step {
			if row[x] != lastCode {
				lastCode, lastHit = row[x], isNear(p.rgb(row[x]), c)
			}
			if lastHit {
				hits++
			}
		}
	}
	return hits
}
