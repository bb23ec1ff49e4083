package measure

import (
	"fmt"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// LargestPaint is the name of the element of the largest contentful paint, and MostHeroes how many elements
// are measured.
const (
	LargestPaint = "largest paint"
	MostHeroes   = 24
)

// Heroes measures when elements of a page were painted for good: the frame from which the element's
// rectangle stays as it is at the end. Each has hero_ms@NAME, the element of the largest paint
// largest_painted_ms, and the last of them last_painted_ms (browsertime's hero elements, which take the
// first frame that resembles the end).
func Heroes(frames visual.Frames, r *visual.Result, elements []visual.Region, o Options) ([]lab.Measurement, error) {
	if len(elements) == 0 {
		return nil, nil
	}
	c, err := visual.Changes(frames, visual.ChangeOptions{Start: r.Start, End: r.End, Regions: elements, Tolerance: o.Tolerance, NoLuma: true})
	if err != nil {
		return nil, fmt.Errorf("measure the elements that the page reported: %w", err)
	}
	var out []lab.Measurement
	latest := r.Start
	for _, region := range c.Regions {
		last := 0
		for i, n := range region.Changed {
			if n > 0 {
				last = i
			}
		}
		if last == 0 {
			continue // it was there before the load, or never shows
		}
		frame, what := r.Start+last, metric.Hero
		if region.Name == LargestPaint {
			what = metric.LargestPainted
		}
		latest = max(latest, frame)
		one := r.Instant(what, frame, fmt.Sprintf("the rectangle %v of the element %q", region.Area, region.Name))
		if what == metric.Hero {
			one.Name = what.OfRegion(region.Name)
		}
		out = append(out, one)
	}
	if latest > r.Start {
		out = append(out, r.Instant(metric.LastPainted, latest))
	}
	return out, nil
}
