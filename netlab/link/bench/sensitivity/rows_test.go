package main

import (
	"math"
	"testing"
	"time"

	"eidetic/internal/metric"
)

// The test has a metric that a stall delays by its whole length, and one that it does
// not change.
func TestRows(t *testing.T) {
	firstChange, speedIndex, lastChange := metric.FirstChange.String(), metric.SpeedIndex.String(), metric.LastChange.String()
	var loads []load
	for i := range 40 {
		noise := float64(i%5) - 2
		loads = append(
			loads,
			load{-1, map[string]float64{firstChange: 500 + noise, speedIndex: 800 + noise, lastChange: 1500 + noise}},
		)
		l := load{float64(i * 50), map[string]float64{firstChange: 500 + noise, speedIndex: 800 + noise, lastChange: 1500 + noise}}
		if l.stalled < 500 {
			l.metrics[firstChange] += 100
		}
		if l.stalled < 1500 {
			l.metrics[lastChange] += 50
		}
		loads = append(loads, l)
	}
	want := map[string]float64{
		"before the first change " + firstChange: 1, "until half of the rest " + firstChange: 0,
		"before the first change " + lastChange: 0.5, "until the last change " + lastChange: 0.5, "after it " + lastChange: 0,
	}
	for _, r := range rows(loads, 100*time.Millisecond) {
		if slope, ok := want[r.phase+" "+r.metric]; ok && math.Abs(r.slope-slope) > 0.01 {
			t.Errorf("%s, %s: %.3f per ms, want %v", r.phase, r.metric, r.slope, slope)
		}
		delete(want, r.phase+" "+r.metric)
	}
	if len(want) > 0 {
		t.Errorf("no row for %v", want)
	}
}
