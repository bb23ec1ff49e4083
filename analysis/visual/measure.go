package visual

import (
	"fmt"

	"eidetic/internal/lab"
)

// The methods, as they stand beside each number.
const (
	methodSpeedIndex = "SpeedIndex, browsertime's histogram flavour (sitespeed.io visualmetrics-portable): " +
		"Σ(t[k]−t[k−1])·(1−p[k−1]/100), frame times floored to ms, frames scaled to fit 400×400 by area mean, 256 bins a channel, " +
		"pixels with R, G and B ≥ 250 dropped, progress floored to whole percent, sum truncated; from %s"
	methodWPT = "SpeedIndex, WebPageTest's histogram flavour (WPO visualmetrics.py): as browsertime's, but a bin may be met by " +
		"changes in bins i−5 … i+4, greedily from below; from %s"
	methodPerceptual = "Perceptual Speed Index, browsertime's: t[1] + Σ(t[k+1]−t[k])·(1−SSIM(frame k, final frame)), SSIM as pyssim " +
		"computes it (Gaussian σ 1.5 of 11 taps centred at 5.5), over frames that changed, scaled to fit 400×400 by area mean, truncated"
	methodContentful = "Contentful Speed Index, browsertime's: t[1] + Σ(t[k+1]−t[k])·(1−C[k+1]), C the Canny edge pixels relative to " +
		"the frame with the most, over frames that changed, scaled to fit 400×400 by area mean, truncated"
	methodSpeedline = "SpeedIndex, speedline's flavour (Lighthouse): from a white page, pixels with R, G and B ≥ 249 dropped, progress " +
		"floored to whole percent, times not floored, sum not truncated"
	methodSpeedlinePerceptual = "speedline's perceptual index: the same sum over 100·(SSIM(k) − SSIM(white)) ÷ (1 − SSIM(white)), SSIM as " +
		"image-ssim computes it (windows of 8 × 8 that do not overlap, luma of BT.709)"
	methodComplete = "first frame from which the visual progress (browsertime's histogram flavour) stays at %d %% or more"
)

// Names returns the names of all measurements, in the order of the report.
func Names() []string {
	return []string{"first_visual_change_ms", "first_content_ms", "last_visual_change_ms", "speed_index_ms",
		"speed_index_wpt_ms", "perceptual_speed_index_ms", "contentful_speed_index_ms", "speedline_index_ms",
		"speedline_perceptual_index_ms", "time_to_stable_ms", "visual_complete_50_ms", "visual_complete_75_ms", "visual_complete_85_ms",
		"visual_complete_90_ms", "visual_complete_95_ms", "visual_complete_99_ms", "visual_complete_100_ms", "visual_readiness_ms",
		"unique_fps", "unique_frames"}
}

func (r *Result) measurements() []lab.Measurement {
	ms := []lab.Measurement{}
	at := func(name string, frame int, method string) {
		if frame >= 0 {
			ms = append(ms, r.instant(name, frame, method))
		}
	}
	at("first_visual_change_ms", r.FirstChange, fmt.Sprintf("first frame in which any pixel of the content area differs from frame %d, "+
		"the start frame", r.Start))
	at("first_content_ms", r.FirstContent, "first changed frame whose content area is not one flat colour (WebPageTest's start render, "+
		"for any background)")
	at("last_visual_change_ms", r.LastChange, "last frame in which any pixel of the content area differs from the frame before")
	ms = append(ms, r.speedIndex("speed_index_ms", r.SpeedIndex, fmt.Sprintf(methodSpeedIndex, r.Baseline)))
	for _, also := range []struct {
		asked  Indices
		name   string
		value  float64
		method string
	}{
		{WPT, "speed_index_wpt_ms", r.SpeedIndexWPT, fmt.Sprintf(methodWPT, r.Baseline)},
		{Perceptual, "perceptual_speed_index_ms", r.PerceptualIndex, methodPerceptual},
		{Contentful, "contentful_speed_index_ms", r.ContentfulIndex, methodContentful},
		{Speedline, "speedline_index_ms", r.SpeedlineIndex, methodSpeedline},
		{Speedline, "speedline_perceptual_index_ms", r.SpeedlinePerceptual, methodSpeedlinePerceptual},
	} {
		if r.opts.Also&also.asked != 0 {
			ms = append(ms, r.speedIndex(also.name, also.value, also.method))
		}
	}
	at("time_to_stable_ms", r.Stable, fmt.Sprintf("the frame after the last one with more than %d pixels whose luma differs by %d or "+
		"more from the frame before (Eideticker, get_stable_frame)", stablePixels, lumaStep))
	for _, percent := range r.opts.completeness() {
		at(fmt.Sprintf("visual_complete_%d_ms", percent), r.Complete[percent], fmt.Sprintf(methodComplete, percent))
	}
	if r.opts.Also&Completeness != 0 && r.FirstChange >= 0 {
		first, last := r.FirstChange-r.Start, r.LastChange-r.Start
		ms = append(ms, lab.Measurement{Name: "visual_readiness_ms", Value: r.Times[last] - r.Times[first], Unit: "ms",
			Method: "from the first to the last visual change (sitespeed.io)", Frames: []int{r.FirstChange, r.LastChange}})
	}
	if rate, ok := r.UniqueRate(); ok {
		ms = append(ms, lab.Measurement{Name: "unique_fps", Value: rate, Unit: "frames/s",
			Method: r.uniqueRule() + ", from the first to before the last of them ÷ the time between (Eideticker " +
				"specification)", Frames: r.ends()})
	}
	ms = append(ms, lab.Measurement{Name: "unique_frames", Value: float64(r.Unique), Unit: "frames",
		Method: r.uniqueRule() + ", after the start frame", Frames: r.ends()})
	if t := r.opts.Tolerance; t != (Tolerance{}) {
		for i := range ms {
			ms[i].Method += "; tolerance of a pixel " + t.String()
		}
	}
	return ms
}

// completeness returns the shares of visual complete that are told.
func (o Options) completeness() []int {
	if o.Also&Completeness != 0 {
		return []int{50, 75, 85, 90, 95, 99, 100}
	}
	return []int{85, 95, 99}
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
func (r *Result) instant(name string, frame int, method string) lab.Measurement {
	i := frame - r.Start
	m := lab.Measurement{Name: name, Value: r.Times[i], Unit: "ms", Method: method, Frames: []int{frame}}
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
func (r *Result) speedIndex(name string, value float64, method string) lab.Measurement {
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
	return lab.Measurement{Name: name, Value: value, Unit: "ms", Method: method, Frames: r.ends(), Low: &low, High: &high}
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
func (r *Result) Instant(name string, frame int, method string) lab.Measurement {
	return r.instant(name, min(max(frame, r.Start), r.End-1), method)
}
