package measure

import (
	"fmt"

	"eidetic/analysis/settle"
	"eidetic/internal/lab"
)

// proposed finds what never settles, such as a caret, a clock or a carousel, and says how to
// leave it out.
func (m *run) proposed() (out []lab.Area, err error) {
	boxes, err := settle.Restless(m.frames, settle.RestlessOptions{Options: settle.Options{Start: m.o.Start, End: m.o.End, Area: m.o.Content},
		Ignore: m.o.Ignore, Tolerance: m.o.Tolerance})
	if err != nil {
		return nil, err
	}
	for i, box := range boxes {
		out = append(out, AreaOf(fmt.Sprintf("restless %d", i+1), box))
		at := box.Sub(m.o.Content.Min)
		m.note("%dx%d+%d+%d changes until the end while the rest is still: ignore it with --ignore %dx%d+%d+%d, in a plan with measure.ignore: "+
			"[\"%d,%d,%d,%d\"]", box.Dx(), box.Dy(), box.Min.X, box.Min.Y, box.Dx(), box.Dy(), box.Min.X, box.Min.Y,
			at.Min.X, at.Min.Y, box.Dx(), box.Dy())
	}
	return out, nil
}
