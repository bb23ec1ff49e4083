package visual

import (
	"fmt"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// measurements are those of a load, and the indices that were asked for.
func (r *Result) measurements() []lab.Measurement {
	ms := []lab.Measurement{}
	at := func(m metric.ID, frame int, details ...string) {
		if frame >= 0 {
			ms = append(ms, r.instant(m, frame, details...))
		}
	}
	at(metric.FirstChange, r.FirstChange)
	at(metric.FirstContent, r.FirstContent)
	at(metric.LastChange, r.LastChange)
	from := "from " + r.Baseline.String()
	ms = append(ms, r.speedIndex(metric.SpeedIndex, r.SpeedIndex, "frame times floored to ms, frames scaled to fit 400×400 by area mean, 256 bins a "+
		"channel, pixels with R, G and B ≥ 250 dropped", from))
	for _, also := range []struct {
		asked   Indices
		metric  metric.ID
		value   float64
		details []string
	}{
		{WPT, metric.SpeedIndexWPT, r.SpeedIndexWPT, []string{from}},
		{Perceptual, metric.PerceptualIndex, r.PerceptualIndex, nil},
		{Contentful, metric.ContentfulIndex, r.ContentfulIndex, nil},
		{Speedline, metric.SpeedlineIndex, r.SpeedlineIndex, nil},
		{Speedline, metric.SpeedlinePerceptual, r.SpeedlinePerceptual, nil},
	} {
		if r.opts.Also&also.asked != 0 {
			ms = append(ms, r.speedIndex(also.metric, also.value, also.details...))
		}
	}
	at(metric.TimeToStable, r.Stable)
	for _, c := range r.opts.completeness() {
		at(c.metric, r.Complete[c.percent], "by browsertime's histogram flavour")
	}
	if r.opts.Also&Completeness != 0 && r.FirstChange >= 0 {
		first, last := r.FirstChange-r.Start, r.LastChange-r.Start
		ms = append(ms, metric.VisualReadiness.Measure(r.Times[last]-r.Times[first], []int{r.FirstChange, r.LastChange}))
		if r.fresh > 0 {
			ms = append(ms, metric.MeanFirstChange.Measure(r.freshMS/float64(r.fresh), []int{r.FirstChange, r.LastChange}))
		}
		ms = append(ms, metric.MeanChanges.Measure(r.Heat.Mean(), []int{r.FirstChange, r.LastChange}))
	}
	if rate, ok := r.UniqueRate(); ok {
		ms = append(ms, metric.UniqueRate.Measure(rate, r.ends(), r.uniqueRule()))
	}
	ms = append(ms, metric.UniqueFrames.Measure(float64(r.Unique), r.ends(), r.uniqueRule()+", after the start frame"))
	if t := r.opts.Tolerance; t != (Tolerance{}) {
		for i := range ms {
			ms[i].Method += "; tolerance of a pixel " + t.String()
		}
	}
	return ms
}

// complete is a share of the final picture, and the metric that tells when it is there.
type complete struct {
	percent int
	metric  metric.ID
}

// completeness returns the shares of visual complete that are told.
func (o Options) completeness() []complete {
	if o.Also&Completeness != 0 {
		return []complete{{50, metric.Complete50}, {75, metric.Complete75}, {85, metric.Complete85}, {90, metric.Complete90},
			{95, metric.Complete95}, {99, metric.Complete99}, {100, metric.Complete100}}
	}
	return []complete{{85, metric.Complete85}, {95, metric.Complete95}, {99, metric.Complete99}}
}

func (r *Result) ends() []int { return []int{r.Start, r.End - 1} }

func (r *Result) uniqueRule() string {
	if n := r.opts.UniquePixels; n > 0 {
		return fmt.Sprintf("frames with at least %d pixels whose luma differs by %d or more from the frame before", n, lumaStep)
	}
	return "frames in which any pixel differs from the frame before"
}

// instant measures when frame first showed something. It happened after the
// frame before it was taken, and before it was taken itself.
func (r *Result) instant(what metric.ID, frame int, details ...string) lab.Measurement {
	i := frame - r.Start
	m := what.Measure(r.Times[i], []int{frame}, details...)
	low, high := 0.0, milliseconds(r.infos[i].time.Sub(r.Origin.Earliest))
	if i > 0 {
		before := r.infos[i-1]
		low = max(milliseconds(before.time.Sub(r.Origin.Latest)-before.uncertainty), 0)
		m.Frames = []int{frame - 1, frame}
	}
	m.Low, m.High = &low, &high
	return m
}

// speedIndex bounds an index as if every change had come as early, and as
// late, as the frames and the origin allow. Where nobody looked for longer than two
// periods before a change, any picture may have stood on the screen meanwhile.
func (r *Result) speedIndex(what metric.ID, value float64, details ...string) lab.Measurement {
	gap, unseen := 0.0, 0.0
	usual := 2e3 / r.Format.Rate
	for i := 1; i < len(r.infos); i++ {
		if r.Changed[i] == 0 {
			continue // whatever time passed since the frame before, nothing moved in it
		}
		before := r.infos[i-1]
		since := milliseconds(r.infos[i].time.Sub(before.time))
		gap = max(gap, since+milliseconds(before.uncertainty))
		if r.infos[i].look && since > usual {
			unseen += since + milliseconds(before.uncertainty)
		}
	}
	half := milliseconds(r.Origin.Latest.Sub(r.Origin.Earliest)) / 2
	low, high := max(value-max(gap, unseen)-half, 0), value+unseen+half+1
	m := what.Measure(value, r.ends(), details...)
	m.Low, m.High = &low, &high
	return m
}

// String names the baseline in a method's text.
func (b Baseline) String() string {
	switch b {
	case BaselineStart:
		return "the start frame"
	case BaselineWhite:
		return "a white page"
	default:
		return "a white page or the start frame"
	}
}

// Instant measures when a frame of the result first showed something, with the bounds of the
// true value.
func (r *Result) Instant(what metric.ID, frame int, details ...string) lab.Measurement {
	return r.instant(what, min(max(frame, r.Start), r.End-1), details...)
}
