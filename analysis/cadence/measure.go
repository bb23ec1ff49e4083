package cadence

import (
	"fmt"

	"eidetic/internal/lab"
)

// Names returns the names of the measurements of one region.
func Names() []string {
	return []string{"animation_fps", "unique_frames", "duplicate_frames", "lost_frames", "longest_gap_ms", "frame_interval_p50_ms",
		"frame_interval_p95_ms", "frame_interval_p99_ms", "missed_refreshes", "missed_refreshes_worst_percent", "jank_count", "stalls"}
}

// Measurements returns the result as named numbers. rule says which frames counted
// as unique. A number that means nothing, such as a rate of fewer than two
// pictures, is left out.
func (r *Result) Measurements(rule string) []lab.Measurement {
	ends := []int{r.First, r.Last}
	if r.First < 0 {
		ends = nil
	}
	count := func(name string, n int, method string) lab.Measurement {
		return lab.Measurement{Name: name, Value: float64(n), Unit: "frames", Method: method, Frames: ends}
	}
	out := []lab.Measurement{
		count("unique_frames", r.Unique, rule+" (Eideticker specification)"),
		count("duplicate_frames", r.Duplicates, "frames equal to the one before, between the first and the last unique frame; unique: "+rule),
		count("lost_frames", r.Lost, "frames missing by the source's own numbers"),
	}
	if len(r.Intervals) == 0 || r.SpanMS <= 0 {
		return out
	}
	interval := fmt.Sprintf("interval between neighbouring unique frames (%s), refresh %.3f ms", rule, r.RefreshMS)
	number := func(name string, v float64, unit, method string) {
		out = append(out, lab.Measurement{Name: name, Value: v, Unit: unit, Method: method, Frames: ends})
	}
	number("animation_fps", r.FPS, "frames/s", "unique frames from the first to before the last ÷ the time between; unique: "+rule)
	out = append(out, lab.Measurement{Name: "longest_gap_ms", Value: r.LongestMS, Unit: "ms", Method: "longest " + interval,
		Frames: []int{r.LongestAt}})
	for _, p := range []int{50, 95, 99} {
		number(fmt.Sprintf("frame_interval_p%d_ms", p), Percentile(r.Intervals, float64(p)/100), "ms",
			fmt.Sprintf("%d. percentile (type 7) of the %s", p, interval))
	}
	number("missed_refreshes", float64(r.Missed), "refreshes", "refreshes between the first and the last unique frame that brought "+
		"no new picture; "+interval)
	number("missed_refreshes_worst_percent", r.WorstShare, "%", "largest share of refreshes without a new picture in a window of one "+
		"second, as Chromium's dropped frames (cc/metrics); "+interval)
	number("jank_count", float64(r.Jank), "janks", "intervals longer than the one before by more than half a refresh (Chromium, "+
		"cc/metrics/jank_metrics.cc); "+interval)
	number("stalls", float64(len(r.Stalls)), "stalls", "intervals of more than one and a half times the median; "+interval)
	return out
}
