package cadence

import (
	"fmt"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Measurements returns the result as named numbers. rule says which frames counted
// as unique. A number that means nothing, such as a rate of fewer than two
// pictures, is left out.
func (r *Result) Measurements(rule string) []lab.Measurement {
	ends := []int{r.First, r.Last}
	if r.First < 0 {
		ends = nil
	}
	of := func(m metric.ID, v float64, details ...string) lab.Measurement { return m.Measure(v, ends, details...) }
	unique := "unique: " + rule
	out := []lab.Measurement{
		of(metric.UniqueFrames, float64(r.Unique), unique),
		of(metric.DuplicateFrames, float64(r.Duplicates), unique),
		of(metric.LostFrames, float64(r.Lost)),
	}
	if len(r.Intervals) == 0 || r.SpanMS <= 0 {
		return out
	}
	refresh := fmt.Sprintf("refresh %.3f ms", r.RefreshMS)
	quantile := func(share float64) float64 { return Percentile(r.Intervals, share) }
	return append(out,
		of(metric.AnimationRate, r.FPS, unique),
		metric.LongestGap.Measure(r.LongestMS, []int{r.LongestAt}, unique),
		of(metric.IntervalP50, quantile(0.50), unique),
		of(metric.IntervalP95, quantile(0.95), unique),
		of(metric.IntervalP99, quantile(0.99), unique),
		of(metric.MissedRefreshes, float64(r.Missed), unique, refresh),
		of(metric.MissedWorst, r.WorstShare, unique, refresh),
		of(metric.Janks, float64(r.Jank), unique, refresh),
		of(metric.Stalls, float64(len(r.Stalls)), unique))
}
