package visual

import (
	"image"

	"eidetic/internal/lab"
)

// HeatImage paints the heat map with a perceptually uniform colour map (matplotlib's
// inferno, from black for never to bright yellow for the most changes) and a
// legend below it.
func HeatImage(r *Result) *image.RGBA { return heatImage(r) }

// DiffImage shows where two frames of one format differ within area: pixels
// that are equal are dimmed to grey, those that differ are red, brighter where
// the difference of luma is larger. It also returns how many pixels differ.
func DiffImage(f lab.Format, a, b []byte, area image.Rectangle) (*image.RGBA, int, error) {
	return diffImage(f, a, b, area)
}
