package main

import (
	"math"
	"slices"
	"time"

	"eidetic/internal/metric"
)

// row is the effect on a metric of stalls of one length that began in one phase.
type row struct {
	phase, metric        string
	n                    int
	shift                float64 // ms, of the mean
	slope, standardError float64 // per ms of stall
	most                 float64 // of one load against the mean without a stall, per ms of stall
}

// rows groups the stalls by the phase of the load in which they began, relative to when
// the page usually changes first and last.
func rows(loads []load, length time.Duration) (out []row) {
	var without []load
	for _, l := range loads {
		if l.stalled < 0 {
			without = append(without, l)
		}
	}
	first, last := middle(without, metric.FirstChange), middle(without, metric.LastChange)
	d := length.Seconds() * 1e3
	for _, phase := range []struct {
		name     string
		from, to float64
	}{
		{"before the first change", 0, first},
		{"until half of the rest", first, (first + last) / 2},
		{"until the last change", (first + last) / 2, last},
		{"after it", last, math.Inf(1)},
	} {
		for _, m := range []metric.ID{metric.FirstChange, metric.SpeedIndex, metric.LastChange} {
			var values []float64
			for _, l := range loads {
				if l.stalled >= 0 && phase.from <= l.stalled && l.stalled < phase.to {
					values = append(values, l.metrics[m.String()])
				}
			}
			var base []float64
			for _, l := range without {
				base = append(base, l.metrics[m.String()])
			}
			if len(values) < 2 || len(base) < 2 {
				continue
			}
			mean, variance := describe(values)
			zero, variance0 := describe(base)
			out = append(out, row{
				phase.name, m.String(), len(values), mean - zero, (mean - zero) / d,
				math.Sqrt(variance/float64(len(values))+variance0/float64(len(base))) / d, (slices.Max(values) - zero) / d,
			})
		}
	}
	return out
}

func middle(loads []load, m metric.ID) float64 {
	var values []float64
	for _, l := range loads {
		values = append(values, l.metrics[m.String()])
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func describe(values []float64) (mean, variance float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		variance += (v - mean) * (v - mean) / float64(len(values)-1)
	}
	return mean, variance
}
