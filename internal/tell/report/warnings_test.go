package report

import (
	"slices"
	"testing"

	"eidetic/internal/lab"
)

// TestWarningsNameTheirMetrics: a warning names its metrics unless it holds for all.
func TestWarningsNameTheirMetrics(t *testing.T) {
	few, equal := "too few", "all values are equal"
	run := &lab.Run{
		Warnings: []string{"busy"},
		Summary: []lab.Summary{
			{Metric: "speed_index_ms", Arm: "control", Warnings: []string{few}},
			{Metric: "speed_index_ms", Arm: "treatment", Warnings: []string{few, "busy"}},
			{Metric: "first_visual_change_ms", Arm: "control", Warnings: []string{few, equal}},
		},
	}
	want := []string{"busy", few, "First visual change: " + equal}
	if got := warningsOf(run); !slices.Equal(got, want) {
		t.Errorf("warningsOf() = %q; want %q", got, want)
	}
}
