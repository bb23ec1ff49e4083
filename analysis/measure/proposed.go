package measure

import (
	"fmt"
	"image"

	"eidetic/analysis/settle"
	"eidetic/analysis/visual"
)

// proposed finds what never settles, such as a caret, a clock or a carousel, and says how to
// leave it out.
func (m *run) proposed(o settle.Options) part {
	var boxes []image.Rectangle
	return part{func(frames visual.Frames) (err error) {
		boxes, err = settle.Restless(frames, settle.RestlessOptions{Options: o, Tolerance: m.o.Tolerance})
		return err
	}, func() error {
		for i, box := range boxes {
			m.r.Proposed = append(m.r.Proposed, AreaOf(fmt.Sprintf("restless %d", i+1), box))
			at := box.Sub(m.o.Content.Min)
			m.note("%dx%d+%d+%d changes until the end while the rest is still: ignore it with --ignore %dx%d+%d+%d, in a plan with "+
				"measure.ignore: [\"%d,%d,%d,%d\"]", box.Dx(), box.Dy(), box.Min.X, box.Min.Y, box.Dx(), box.Dy(), box.Min.X, box.Min.Y,
				at.Min.X, at.Min.Y, box.Dx(), box.Dy())
		}
		return nil
	}}
}
