package execute

import (
	"slices"
	"testing"

	"eidetic/internal/lab"
)

// TestSummaryBeginsWithTheControl: also if the first trial is one of the treatment.
func TestSummaryBeginsWithTheControl(t *testing.T) {
	trial := func(arm string, value float64, valid bool) *lab.Trial {
		return &lab.Trial{Arm: arm, Valid: valid, Measurements: []lab.Measurement{{Name: "a", Unit: "ms", Value: value},
			{Name: "b", Unit: "ms", Value: 2 * value}}}
	}
	trials := []*lab.Trial{trial(lab.Treatment, 30, true), trial(lab.Control, 10, true), trial(lab.Control, 99, false),
		trial(lab.Treatment, 50, true)}
	first := trials[0]
	var got []string
	for _, s := range summarise(trials) {
		got = append(got, s.Arm+" "+s.Metric)
		if want := map[string]float64{"control a": 10, "control b": 20, "treatment a": 40,
			"treatment b": 80}[s.Arm+" "+s.Metric]; s.Median != want {
			t.Errorf("%s %s: median %v, want %v", s.Arm, s.Metric, s.Median, want)
		}
	}
	if want := []string{"control a", "control b", "treatment a", "treatment b"}; !slices.Equal(got, want) {
		t.Errorf("summarise() order = %q; want %q", got, want)
	}
	if trials[0] != first {
		t.Error("summarise() changed the order of its argument")
	}
}
