package change_test

import (
	"testing"

	"eidetic/analysis/change"
	"eidetic/analysis/change/known"
)

// TestKnownSteps: of 50 series with one to four steps of 2 standard deviations, precision and recall within ±5 values
// are at least 0.95, and at most 3 % of flat series have a point.
func TestKnownSteps(t *testing.T) {
	// With few permutations the test is quick, and its level the same.
	find := func(s known.Series, seed uint64) (out []int) {
		points, err := change.Points(s.Values, change.Options{Level: change.SeriesLevel, Permutations: 399, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			if p.P > change.SeriesLevel*(1+1e-9) {
				t.Errorf("a point has p = %v", p.P)
			}
			out = append(out, p.Index)
		}
		return out
	}
	var sum known.Score
	for n := range uint64(50) {
		s := known.New(1, n, known.Normal, 2, 20)
		sum.Add(s.Judge(find(s, n), 5))
	}
	if sum.Precision() < 0.95 || sum.Recall() < 0.95 {
		t.Errorf("%+v: precision %.3f, recall %.3f; want 0.95", sum, sum.Precision(), sum.Recall())
	}
	const flat = 300
	alarms := 0
	for n := range uint64(flat) {
		if len(find(known.New(2, n, known.Normal, 0, 20), n)) > 0 {
			alarms++
		}
	}
	if alarms > flat*3/100 {
		t.Errorf("%d of %d flat series have a point; want at most 3 %%", alarms, flat)
	}
	t.Logf("precision %.3f, recall %.3f of %d steps; %d of %d flat series with a point", sum.Precision(), sum.Recall(), sum.Steps, alarms, flat)
}
