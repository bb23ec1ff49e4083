package visual

import (
	"errors"
	"image"

	"eidetic/internal/lab"
)

func findContent(Frames, SyncOptions) (image.Rectangle, int, int, error) {
	return image.Rectangle{}, 0, 0, errors.ErrUnsupported
}
func analyze(Frames, Options) (*Result, error)    { return nil, errors.ErrUnsupported }
func (r *Result) measurements() []lab.Measurement { return nil }
func heatImage(*Result) *image.RGBA               { return image.NewRGBA(image.Rectangle{}) }
func diffImage(lab.Format, []byte, []byte, image.Rectangle) (*image.RGBA, int, error) {
	return nil, 0, errors.ErrUnsupported
}
